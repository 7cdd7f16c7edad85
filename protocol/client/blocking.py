"""A client for programs with threads: ``send`` never waits, a thread of its own does the talking.

Events wait in an `Outbox`, which is bounded and never drops a terminal, until livesign has acknowledged
them; a lost connection is made again under the same session, what is left is sent again, and a livesign that was started
anew hears of the runs that are open (`OpenRuns`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Self

from protocol.client.core import Core, OnState, outcome_by_ack
from protocol.client.execution import Callbacks
from protocol.client.executor import Executor
from protocol.client.keeper import Keeper
from protocol.client.link import Address, Link
from protocol.client.outbox import CAPACITY, OutboxFullError
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RunHandle
from protocol.client.runs import RunMaker
from protocol.codec import DecodeError, normalise
from protocol.events import Ack, Event, Hello, Pong, Rejected, Reply, State, Stats, Subscribe, Welcome

__all__ = ["Address", "Client", "DecodeError", "OutboxFullError"]

log = logging.getLogger("livesign.client")


class Client(RunMaker):
    """A session with livesign at ``address``.

    ``token`` is needed on TCP; ``session`` is the name to go on under (a new one by default); ``tls`` a
    context that verifies the server. ``on_reply`` gets every reply but pongs, in the client's thread. ``follow``: ask for
    the states of all runs, so that `RunHandle.outcome` knows what showed; without it knows only how the run was ended.
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
        follow: bool = False,
    ) -> None:
        self.session = session or uuid.uuid4().hex
        self._on_reply = on_reply
        self._changed = threading.Condition()
        self._core = Core(Hello(client=name, session=self.session, token=token, role=role), capacity)
        self.keeper = Keeper(self.put)
        self._executors: list[Executor] = []
        self._open_link = partial(Link, address, tls, backoff_s)
        self._hello = Hello(client=name, token=token, role="execute")
        if follow:
            self._core.follow()
        self._link = self._open_link(
            self._begin, self._take, self._heard, self._lost, self.keeper.beat, lambda: self._core.welcome is not None
        )
        self._link.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- for the program -----------------------------------------------------------------------------------

    @property
    def last_error(self) -> str | None:
        """Why there is no connection, or was none."""
        return self._core.last_error

    def send(self, event: Event | Mapping[str, Any]) -> str:
        """Hand over an event; returns its id. Does not wait.

        Raises `DecodeError` for an event that livesign would reject, `OutboxFullError` if nothing may be
        dropped.
        """
        return self.put(normalise(event))

    def put(self, event: Event) -> str:
        """The same for an event that is known to be good."""
        with self._changed:
            if self._link.stopping:
                raise RuntimeError("the client is closed")
            event_id = self._core.add(event)
        self._link.wake()
        return event_id

    def request(self, event: Event | Mapping[str, Any], timeout_s: float = 5.0) -> Ack | Rejected:
        """Send, and wait for the answer. Raises TimeoutError; the event stays on its way then."""
        checked = normalise(event)
        answers = self._core.answers
        with self._changed:
            event_id = self.send(checked)
            answers[event_id] = None
            try:
                if not self._changed.wait_for(lambda: answers[event_id], timeout_s):
                    raise TimeoutError(f"no answer within {timeout_s:g} s: {self.last_error or 'connected'}")
            finally:
                answer = answers.pop(event_id)
            assert answer is not None
            return answer

    def stats(self, timeout_s: float = 5.0) -> dict[str, int]:
        """livesign's counters. Raises TimeoutError, or PermissionError if they are not for us."""
        answer = self.request(Stats(), timeout_s)
        if isinstance(answer, Rejected):
            raise PermissionError(answer.detail)
        return self._core.counters

    def subscribe(self, on_state: OnState, *, conversation: str | None = None, account: str | None = None) -> None:
        """Have ``on_state`` called with the `State` of every run, of one conversation or account if given.

        First with the states of the runs that are open, then with each change; after a reconnect anew. In the client's
        thread: it must not wait. The client's token needs the grant to subscribe; without, nothing comes and the log
        says why.
        """
        wanted = normalise(Subscribe(conversation=conversation, account=account))
        assert isinstance(wanted, Subscribe)
        with self._changed:
            self._core.subscribe(wanted, on_state)
        self._link.wake()

    def execute(
        self,
        callbacks: Callbacks,
        *,
        account: str | None = None,
        workers: int = 4,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Executor:
        """Make the calls of a ``remote`` account (None: of all that the token may use) by the bot's own functions.

        They are called in ``workers`` threads, coroutine functions in ``loop``. Over a connection of its own, until the
        client or the `Executor` is closed; the newest executor of an account gets its calls.
        """
        wanted = normalise(Subscribe(account=account, what="calls"))
        assert isinstance(wanted, Subscribe)
        executor = Executor(callbacks, wanted, self._hello, self._open_link, workers, loop)
        self._executors.append(executor)
        return executor

    def wait_connected(self, timeout_s: float = 5.0) -> Welcome:
        """Wait for the server's welcome. Raises ConnectionError with the last reason."""
        with self._changed:
            self._changed.wait_for(lambda: self._core.welcome, timeout_s)
            if self._core.welcome is None:
                raise ConnectionError(self.last_error or f"no welcome within {timeout_s:g} s")
            return self._core.welcome

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything is acknowledged; False: it is not."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._core.outbox, timeout_s)

    def close(self, timeout_s: float = 2.0) -> bool:
        """Wait for the last acks, then disconnect; False: some are missing."""
        complete = self.flush(timeout_s)
        self._link.stop()
        for executor in self._executors:
            executor.close()
        return complete

    @property
    def unacknowledged(self) -> int:
        """Events that livesign has not answered yet."""
        return len(self._core.outbox)

    @property
    def dropped(self) -> int:
        """Events that had to make room."""
        return self._core.outbox.dropped

    # --- for run handles -----------------------------------------------------------------------------------

    def _made(self, run: RunHandle) -> None:
        with self._changed:
            self._core.made(run)

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.outcome`."""
        wait_s = 0.0 if _in_a_loop() else timeout_s
        with self._changed:
            followed = self._core.followed(run)
            if followed is not None:
                self._changed.wait_for(lambda: followed.outcome.final, wait_s)
                return followed.outcome
        self.flush(wait_s)
        return outcome_by_ack(run)

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.aoutcome`."""
        return await asyncio.to_thread(self.outcome_of, run, timeout_s)

    # --- called by the link, in its thread -----------------------------------------------------------------

    def _begin(self) -> bytes:
        with self._changed:
            return self._core.begin()

    def _take(self, max_bytes: int) -> bytes:
        with self._changed:
            return self._core.take(max_bytes)

    def _lost(self, reason: str) -> bool:
        """Returns whether the lost connection had been a good one."""
        with self._changed:
            return self._core.lost(reason)

    def _heard(self, reply: Reply) -> None:
        if isinstance(reply, Pong):
            return
        ending: ConnectionError | None = None
        with self._changed:
            try:
                self._core.heard(reply)
            except ConnectionError as error:
                ending = error
            listeners: list[Callable[[Any], object]] = []
            if isinstance(reply, State):
                listeners = [*self._core.listeners(reply)]
            self._changed.notify_all()
        if self._on_reply is not None:
            listeners.append(self._on_reply)
        for hear in listeners:
            try:
                hear(reply)
            except Exception:
                log.exception("%s failed", getattr(hear, "__name__", hear))
        if ending is not None:
            raise ending


def _in_a_loop() -> bool:
    """Whether an asyncio loop runs in this thread: it must not be held."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
