"""Remote execution with asyncio: livesign hands over the calls of an account, the bot's own functions make them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from protocol.client.aio_link import AsyncLink
from protocol.client.execution import Callbacks, CallOutcome, is_async
from protocol.client.executor import CALLS_MAX, IDLE_S, LONGEST_S, Talk
from protocol.events import Call, Hello, Reply, Subscribe

__all__ = ["AsyncExecutor"]


class AsyncExecutor:
    """Made by `protocol.client.aio.AsyncClient.execute`; used in the loop's thread."""

    def __init__(
        self, callbacks: Callbacks, wanted: Subscribe, hello: Hello, open_link: Callable[..., AsyncLink]
    ) -> None:
        self._callbacks = callbacks
        self._talk = Talk(hello, wanted)
        self._ready = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._link = open_link(
            self._talk.begin,
            lambda _: self._talk.take(),
            self._heard,
            self._lost,
            lambda: IDLE_S,
            lambda: self._talk.ready,
        )
        self._link.start()

    async def wait_ready(self, timeout_s: float = 5.0) -> None:
        """Wait until livesign hands over calls. Raises ConnectionError with the last reason."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready.wait()
        except TimeoutError:
            raise ConnectionError(self._talk.last_error or f"no answer within {timeout_s:g} s") from None

    async def close(self) -> None:
        """Take no more calls; those under way are cancelled."""
        await self._link.stop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _lost(self, reason: str) -> bool:
        self._ready.clear()
        return self._talk.lost(reason)

    def _heard(self, reply: Reply) -> None:
        handed = self._talk.heard(reply)
        if self._talk.ready:
            self._ready.set()
        if handed is not None:
            if len(self._tasks) >= CALLS_MAX:
                raise ConnectionError(f"more than {CALLS_MAX} calls wait")
            task = asyncio.get_running_loop().create_task(self._make(*handed))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _make(self, call: Call, connection: int) -> None:
        outcome = self._callbacks.judge(call, await self._returned(call))
        self._talk.answer(call, connection, outcome)
        self._link.wake()

    async def _returned(self, call: Call) -> object:
        """What the function returned or raised, within the call's deadline."""
        function = self._callbacks.function_for(call.op)
        if function is None:
            return CallOutcome("bad_request", detail=f"there is no function for {call.op}")
        try:
            async with asyncio.timeout(min(call.deadline_ms / 1_000, LONGEST_S)):
                if is_async(function):
                    running: Any = function(call)
                    return await running
                return await asyncio.to_thread(function, call)
        except Exception as error:
            return error
