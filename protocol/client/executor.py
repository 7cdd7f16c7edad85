"""Remote execution with threads: livesign hands over the calls of an account, the bot's own functions make them.

A connection of its own, held by a thread of its own. What was not answered when the connection is lost is not answered
later: livesign takes such a call as one with unknown outcome.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from protocol.client.execution import Callbacks, CallOutcome, is_async
from protocol.client.link import Link
from protocol.client.workers import Workers
from protocol.codec import encode
from protocol.events import Ack, Call, CallResult, Closing, Hello, Rejected, Reply, Subscribe

__all__ = ["Executor", "result_of"]

log = logging.getLogger("livesign.client")

IDLE_S = 60.0
CALLS_MAX = 10_000
"""So many calls may wait: no livesign hands over so many."""
LONGEST_S = 86_400.0
"""A deadline is taken as no longer."""
_SUBSCRIBED = "calls"
"""Id of the event that asks for calls."""


def result_of(call: Call, outcome: CallOutcome) -> CallResult:
    """The answer to a call."""
    return CallResult(
        call_id=call.call_id,
        outcome=outcome.outcome,
        retry_after_ms=outcome.retry_after_ms,
        scope=outcome.scope,
        handle=outcome.handle,
        detail=outcome.detail or None,
    )


class Talk:
    """An executor's side of the protocol, without socket and thread."""

    def __init__(self, hello: Hello, wanted: Subscribe) -> None:
        self._opening = encode(hello) + encode(msgspec.structs.replace(wanted, id=_SUBSCRIBED))
        self._results = bytearray()
        self._connection = 0
        self.ready = False
        """livesign hands over calls."""
        self.last_error: str | None = None
        """Why it does not, or did not."""

    def begin(self) -> bytes:
        """A new connection: what is said first."""
        self._connection += 1
        self._results.clear()
        return self._opening

    def take(self) -> bytes:
        """Answers to send."""
        results = bytes(self._results)
        self._results.clear()
        return results

    def lost(self, reason: str) -> bool:
        """The connection is gone, or there was none; returns whether it had been a good one."""
        if reason != self.last_error:
            log.warning("no calls from livesign: %s", reason)
        was_good, self.ready = self.ready, False
        self.last_error = reason
        return was_good

    def heard(self, reply: Reply) -> tuple[Call, int] | None:
        """A reply: a call to make, with the number of its connection, or None. Raises ConnectionError for the last one."""
        if isinstance(reply, Call):
            return reply, self._connection
        if isinstance(reply, Ack) and reply.id == _SUBSCRIBED:
            self.ready, self.last_error = True, None
        elif isinstance(reply, Rejected):
            raise ConnectionError(reply.detail)
        elif isinstance(reply, Closing):
            raise ConnectionError(reply.reason)
        return None

    def answer(self, call: Call, connection: int, outcome: CallOutcome) -> None:
        """The call has ended. An answer to a connection that is gone is not sent."""
        if connection == self._connection:
            self._results += encode(result_of(call, outcome))


class Executor:
    """Made by `protocol.client.blocking.Client.execute`."""

    def __init__(
        self,
        callbacks: Callbacks,
        wanted: Subscribe,
        hello: Hello,
        open_link: Callable[..., Link],
        workers: int,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        """Raises ValueError for coroutine functions without the loop they belong to."""
        if callbacks.any_async and loop is None:
            raise ValueError("coroutine functions need the loop they belong to: use the asyncio client, or give loop=")
        self._callbacks = callbacks
        self._loop = loop
        self._changed = threading.Condition()
        self._talk = Talk(hello, wanted)
        self._workers = Workers(workers, "livesign-calls")
        self._link = open_link(
            self._begin, self._take, self._heard, self._lost, lambda: IDLE_S, lambda: self._talk.ready
        )
        self._link.start()

    def wait_ready(self, timeout_s: float = 5.0) -> None:
        """Wait until livesign hands over calls. Raises ConnectionError with the last reason."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._talk.ready, timeout_s):
                raise ConnectionError(self._talk.last_error or f"no answer within {timeout_s:g} s")

    def close(self) -> None:
        """Take no more calls; those under way are not waited for."""
        self._link.stop()
        self._workers.close()

    # --- called by the link, in its thread ---------------------------------------------------------------------

    def _begin(self) -> bytes:
        with self._changed:
            return self._talk.begin()

    def _take(self, max_bytes: int) -> bytes:
        with self._changed:
            return self._talk.take()

    def _lost(self, reason: str) -> bool:
        with self._changed:
            return self._talk.lost(reason)

    def _heard(self, reply: Reply) -> None:
        with self._changed:
            try:
                handed = self._talk.heard(reply)
            finally:
                self._changed.notify_all()
        if handed is not None:
            call, connection = handed
            deadline_s = time.monotonic() + min(call.deadline_ms / 1_000, LONGEST_S)
            if self._workers.waiting >= CALLS_MAX:
                raise ConnectionError(f"more than {CALLS_MAX} calls wait")
            self._workers.submit(partial(self._make, call, connection, deadline_s))

    # --- the workers' threads ----------------------------------------------------------------------------------

    def _make(self, call: Call, connection: int, deadline_s: float) -> None:
        left_s = deadline_s - time.monotonic()
        if left_s > 0:  # else livesign waits no longer
            outcome = self._callbacks.judge(call, self._returned(call, left_s))
            with self._changed:
                self._talk.answer(call, connection, outcome)
            self._link.wake()

    def _returned(self, call: Call, left_s: float) -> object:
        """What the function returned or raised."""
        function = self._callbacks.function_for(call.op)
        if function is None:
            return CallOutcome("bad_request", detail=f"there is no function for {call.op}")
        try:
            if not is_async(function):
                return function(call)
            assert self._loop is not None
            running: Any = function(call)
            future = asyncio.run_coroutine_threadsafe(running, self._loop)
            try:
                return future.result(left_s)
            finally:
                future.cancel()
        except Exception as error:
            return error
