"""A client for asyncio: ``send`` never waits, a task does the talking.

What it does, and how its run handles work, is the same as with the blocking client (`protocol.client.blocking`); what waits
there is a coroutine here.
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

from protocol.client.aio_executor import AsyncExecutor
from protocol.client.aio_link import AsyncLink
from protocol.client.core import Core, OnState, outcome_by_ack
from protocol.client.execution import Callbacks
from protocol.client.keeper import Keeper
from protocol.client.link import Address
from protocol.client.outbox import CAPACITY, OutboxFullError
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RunHandle
from protocol.client.runs import RunMaker
from protocol.codec import DecodeError, normalise
from protocol.events import Ack, Event, Hello, Pong, Rejected, Reply, State, Stats, Subscribe, Welcome

__all__ = ["Address", "AsyncClient", "DecodeError", "OutboxFullError"]

log = logging.getLogger("livesign.client")


class AsyncClient(RunMaker):
    """A session with livesign at ``address``; parameters as for `protocol.client.blocking.Client`.

    It connects when it is entered (``async with``) or opened; what is sent before waits. ``send``, ``put`` and run handles
    work in any thread, everything else in the loop's.
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
        self._lock = threading.RLock()
        self._core = Core(Hello(client=name, session=self.session, token=token, role=role), capacity)
        self.keeper = Keeper(self.put)
        self._executors: list[AsyncExecutor] = []
        self._open_link = partial(AsyncLink, address, tls, backoff_s)
        self._hello = Hello(client=name, token=token, role="execute")
        self._waiting: list[asyncio.Future[None]] = []
        """Who wants to hear of any change."""
        self._requests: dict[str, asyncio.Future[Ack | Rejected]] = {}
        self._closed = False
        if follow:
            self._core.follow()
        self._link = self._open_link(
            self._begin, self._take, self._heard, self._lost, self.keeper.beat, lambda: self._core.welcome is not None
        )

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- for the program -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Connect, and keep connected from now on. Does not wait; in the loop's thread."""
        self._link.start()

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
        if self._closed:
            raise RuntimeError("the client is closed")
        with self._lock:
            event_id = self._core.add(event)
        self._link.wake()
        return event_id

    async def request(self, event: Event | Mapping[str, Any], timeout_s: float = 5.0) -> Ack | Rejected:
        """Send, and wait for the answer. Raises TimeoutError; the event stays on its way then."""
        answer: asyncio.Future[Ack | Rejected] = asyncio.get_running_loop().create_future()
        event_id = self.send(event)
        self._requests[event_id] = answer
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError:
            raise TimeoutError(f"no answer within {timeout_s:g} s: {self.last_error or 'connected'}") from None
        finally:
            self._requests.pop(event_id, None)

    async def stats(self, timeout_s: float = 5.0) -> dict[str, int]:
        """livesign's counters. Raises TimeoutError, or PermissionError if they are not for us."""
        answer = await self.request(Stats(), timeout_s)
        if isinstance(answer, Rejected):
            raise PermissionError(answer.detail)
        return self._core.counters

    def subscribe(self, on_state: OnState, *, conversation: str | None = None, account: str | None = None) -> None:
        """Have ``on_state`` called in the loop with the `State` of every run, of one conversation or account if given.

        First with the states of the runs that are open, then with each change; after a reconnect anew. The client's token
        needs the grant to subscribe; without, nothing comes and the log says why.
        """
        wanted = normalise(Subscribe(conversation=conversation, account=account))
        assert isinstance(wanted, Subscribe)
        with self._lock:
            self._core.subscribe(wanted, on_state)
        self._link.wake()

    def execute(self, callbacks: Callbacks, *, account: str | None = None) -> AsyncExecutor:
        """Make the calls of a ``remote`` account (None: of all that the token may use) by the bot's own functions.

        Coroutine functions run as tasks of this loop, others in its thread pool. Over a connection of its own, until the
        client or the executor is closed; the newest executor of an account gets its calls.
        """
        wanted = normalise(Subscribe(account=account, what="calls"))
        assert isinstance(wanted, Subscribe)
        executor = AsyncExecutor(callbacks, wanted, self._hello, self._open_link)
        self._executors.append(executor)
        return executor

    async def wait_connected(self, timeout_s: float = 5.0) -> Welcome:
        """Wait for the server's welcome. Raises ConnectionError with the last reason."""
        await self._until(lambda: self._core.welcome is not None, timeout_s)
        if self._core.welcome is None:
            raise ConnectionError(self.last_error or f"no welcome within {timeout_s:g} s")
        return self._core.welcome

    async def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until everything is acknowledged; False: it is not."""
        return await self._until(lambda: not self._core.outbox, timeout_s)

    async def close(self, timeout_s: float = 2.0) -> bool:
        """Wait for the last acks, then disconnect; False: some are missing."""
        complete = await self.flush(timeout_s)
        self._closed = True
        await self._link.stop()
        for executor in self._executors:
            await executor.close()
        return complete

    @property
    def unacknowledged(self) -> int:
        """Events that livesign has not answered yet."""
        return len(self._core.outbox)

    @property
    def dropped(self) -> int:
        """Events that had to make room."""
        return self._core.outbox.dropped

    async def _until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                while not condition():
                    change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(change)
                    await change
        except TimeoutError:
            pass
        return condition()

    # --- for run handles -----------------------------------------------------------------------------------

    def _made(self, run: RunHandle) -> None:
        with self._lock:
            self._core.made(run)

    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.outcome`; never waits, because that would hold the loop that brings the answer."""
        followed = self._core.followed(run)
        return outcome_by_ack(run) if followed is None else followed.outcome

    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.aoutcome`."""
        followed = self._core.followed(run)
        if followed is None:
            await self.flush(timeout_s)
        else:
            await self._until(lambda: followed.outcome.final, timeout_s)
        return self.outcome_of(run, timeout_s)

    # --- called by the link --------------------------------------------------------------------------------

    def _begin(self) -> bytes:
        with self._lock:
            return self._core.begin()

    def _take(self, max_bytes: int) -> bytes:
        with self._lock:
            return self._core.take(max_bytes)

    def _lost(self, reason: str) -> bool:
        """Returns whether the lost connection had been a good one."""
        with self._lock:
            return self._core.lost(reason)

    def _heard(self, reply: Reply) -> None:
        if isinstance(reply, Pong):
            return
        ending: ConnectionError | None = None
        with self._lock:
            try:
                self._core.heard(reply)
            except ConnectionError as error:
                ending = error
        if isinstance(reply, (Ack, Rejected)) and reply.id is not None:
            request = self._requests.get(reply.id)
            if request is not None and not request.done():
                request.set_result(reply)
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.done():
                change.set_result(None)
        listeners: list[Callable[[Any], object]] = []
        if isinstance(reply, State):
            listeners = [*self._core.listeners(reply)]
        if self._on_reply is not None:
            listeners.append(self._on_reply)
        for hear in listeners:
            try:
                hear(reply)
            except Exception:
                log.exception("%s failed", getattr(hear, "__name__", hear))
        if ending is not None:
            raise ending
