"""A client for programs with threads: ``send`` never waits, a thread of its own does the talking.

Events wait in an `Outbox`, which is bounded and never drops a terminal, until livesign has acknowledged
them; a lost connection is made again under the same session, and what is left is sent again.
"""

from __future__ import annotations

import logging
import ssl
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

from protocol.client.link import Address, Link
from protocol.client.outbox import CAPACITY, Outbox, OutboxFullError
from protocol.client.run_handle import RunHandle
from protocol.codec import DecodeError, encode, normalise
from protocol.events import Ack, Closing, Event, Hello, Pong, Rejected, Reply, Stats, StatsReply, Welcome

__all__ = ["Address", "Client", "DecodeError", "OutboxFullError"]

log = logging.getLogger("livesign.client")


class Client:
    """A session with livesign at ``address``.

    ``token`` is needed on TCP; ``session`` is the name to go on under (a new one by default); ``tls`` a
    context that verifies the server. ``on_reply`` gets every reply but pongs, in the client's thread.
    Usable from any thread.
    """

    def __init__(
        self,
        address: Address,
        *,
        token: str | None = None,
        session: str | None = None,
        tls: ssl.SSLContext | None = None,
        role: Literal["send", "subscribe"] = "send",
        name: str = "livesign-python",
        on_reply: Callable[[Reply], None] | None = None,
        capacity: int = CAPACITY,
        backoff_s: tuple[float, float] = (0.1, 10.0),
    ) -> None:
        self.session = session or uuid.uuid4().hex
        self._on_reply = on_reply
        self._changed = threading.Condition()
        self._outbox = Outbox(capacity)
        self._answers: dict[str, Ack | Rejected | None] = {}
        """Of the events that somebody waits for."""
        self._welcome: Welcome | None = None
        self._counters: dict[str, int] = {}
        self.last_error: str | None = None
        """Why there is no connection, or was none."""
        hello = encode(normalise(Hello(client=name, session=self.session, token=token, role=role)))
        self._link = Link(address, tls, hello, backoff_s, self._begin, self._take, self._heard, self._lost)
        self._link.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for the program -----------------------------------------------------------------------------------

    def send(self, event: Event | Mapping[str, Any]) -> str:
        """Hand over an event; returns its id. Does not wait.

        Raises `DecodeError` for an event that livesign would reject, `OutboxFullError` if nothing may be
        dropped.
        """
        with self._changed:
            if self._link.stopping:
                raise RuntimeError("the client is closed")
            event_id = self._outbox.add(normalise(event))
        self._link.wake()
        return event_id

    def request(self, event: Event | Mapping[str, Any], timeout_s: float = 5.0) -> Ack | Rejected:
        """Send, and wait for the answer. Raises TimeoutError; the event stays on its way then."""
        checked = normalise(event)
        with self._changed:
            event_id = self.send(checked)
            self._answers[event_id] = None
            try:
                if not self._changed.wait_for(lambda: self._answers[event_id], timeout_s):
                    raise TimeoutError(f"no answer within {timeout_s:g} s: {self.last_error or 'connected'}")
            finally:
                answer = self._answers.pop(event_id)
            assert answer is not None
            return answer

    def stats(self, timeout_s: float = 5.0) -> dict[str, int]:
        """livesign's counters. Raises TimeoutError, or PermissionError if they are not for us."""
        answer = self.request(Stats(), timeout_s)
        if isinstance(answer, Rejected):
            raise PermissionError(answer.detail)
        return self._counters

    def wait_connected(self, timeout_s: float = 5.0) -> Welcome:
        """Wait for the server's welcome. Raises ConnectionError with the last reason."""
        with self._changed:
            self._changed.wait_for(lambda: self._welcome, timeout_s)
            if self._welcome is None:
                raise ConnectionError(self.last_error or f"no welcome within {timeout_s:g} s")
            return self._welcome

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything is acknowledged; False: it is not."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._outbox, timeout_s)

    def run(
        self,
        *,
        conversation: str,
        account: str | None = None,
        message: str | None = None,
        run: str | None = None,
        thread: str | None = None,
        lease_ms: int | None = None,
        **received: Any,
    ) -> RunHandle:
        """A run for a ``with`` block. ``direct=`` and other fields of `Received` open it as an accepted
        message."""
        return RunHandle(
            self.send,
            conversation=conversation,
            account=account,
            message=message,
            run=run,
            thread=thread,
            lease_ms=lease_ms,
            received=received,
        )

    def close(self, timeout_s: float = 2.0) -> bool:
        """Wait for the last acks, then disconnect; False: some are missing."""
        complete = self.flush(timeout_s)
        self._link.stop()
        return complete

    @property
    def unacknowledged(self) -> int:
        """Events that livesign has not answered yet."""
        return len(self._outbox)

    @property
    def dropped(self) -> int:
        """Events that had to make room."""
        return self._outbox.dropped

    # --- called by the link, in its thread -----------------------------------------------------------------

    def _begin(self) -> None:
        with self._changed:
            self._outbox.begin_again()

    def _take(self, max_bytes: int) -> bytes:
        with self._changed:
            return b"" if self._welcome is None else self._outbox.take(max_bytes)

    def _lost(self, reason: str) -> bool:
        """Returns whether the lost connection had been a good one."""
        if reason != self.last_error:
            log.warning("no connection to livesign: %s", reason)
        with self._changed:
            was_good = self._welcome is not None
            self._welcome = None
            self.last_error = reason
        return was_good

    def _heard(self, reply: Reply) -> None:
        if isinstance(reply, Pong):
            return
        with self._changed:
            if isinstance(reply, (Ack, Rejected)):
                self._settle(reply)
            elif isinstance(reply, Welcome):
                self._welcome = reply
                self.last_error = None
            elif isinstance(reply, StatsReply):
                self._counters = reply.counters
            self._changed.notify_all()
        if self._on_reply is not None:
            try:
                self._on_reply(reply)
            except Exception:
                log.exception("on_reply failed")
        if isinstance(reply, Closing):
            raise ConnectionError(reply.reason)

    def _settle(self, reply: Ack | Rejected) -> None:
        if reply.id is not None:
            self._outbox.settle(reply.id)
        if reply.id in self._answers:
            self._answers[reply.id] = reply
        elif isinstance(reply, Rejected):
            log.warning("livesign rejected an event: %s: %s", reply.code, reply.detail)
