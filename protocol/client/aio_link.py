"""The task that holds an asyncio client's connection. The rules are those of `protocol.client.link`.

Nothing here holds the loop for long: bytes are read and written in small pieces, with a turn for everybody else in between.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
import time
from collections.abc import Callable

from protocol.client import link
from protocol.client.link import CONNECT_S, PING, Address
from protocol.codec import ReplyDecoder
from protocol.events import Reply

log = logging.getLogger("livesign.client")

READ_BYTES = 4_096
WRITE_BYTES = 16_384


class AsyncLink:
    """The same calls as `protocol.client.link.Link`, made in the loop."""

    def __init__(
        self,
        address: Address,
        tls: ssl.SSLContext | None,
        backoff_s: tuple[float, float],
        begin: Callable[[], bytes],
        take: Callable[[int], bytes],
        heard: Callable[[Reply], None],
        lost: Callable[[str], bool],
        tick: Callable[[], float],
        good: Callable[[], bool],
    ) -> None:
        self._address = address
        self._tls = tls
        self._backoff_s = backoff_s
        self._begin = begin
        self._take = take
        self._heard = heard
        self._lost = lost
        self._tick = tick
        self._good = good
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        """There may be something to send, or the reader has ended."""
        self._work_task: asyncio.Task[None] | None = None
        self._heard_at = 0.0

    def start(self) -> None:
        """Connect, in a task of the loop that runs now. Once."""
        if self._work_task is None:
            self._loop = asyncio.get_running_loop()
            self._work_task = self._loop.create_task(self._work(), name="livesign-client")

    def wake(self) -> None:
        """There is something to send. Any thread."""
        loop = self._loop
        if loop is None:
            return
        try:
            if asyncio._get_running_loop() is loop:
                self._news.set()
            else:
                loop.call_soon_threadsafe(self._news.set)
        except RuntimeError:
            pass  # the loop is closed

    async def stop(self) -> None:
        """Disconnect, and wait until that is done."""
        task = self._work_task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _work(self) -> None:
        first_s, max_s = self._backoff_s
        pause_s = first_s
        while True:
            began_s = time.monotonic()
            try:
                async with asyncio.timeout(CONNECT_S):
                    reader, writer = await self._connect()
                await self._talk(reader, writer)
            except Exception as error:
                if not isinstance(error, OSError | EOFError | UnicodeError):  # a fault of ours must not end the client
                    log.exception("the connection to livesign has failed")
                if self._lost(link.reason(self._address, error)) and time.monotonic() - began_s >= max_s:
                    pause_s = first_s
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, max_s)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._address, str):
            return await asyncio.open_unix_connection(self._address)
        host, port = self._address
        return await asyncio.open_connection(
            host, port, ssl=self._tls, server_hostname=host if self._tls is not None else None
        )

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Raises OSError when the connection is lost; ends only so, or by cancellation."""
        reading = asyncio.get_running_loop().create_task(self._read(reader))
        reading.add_done_callback(lambda _: self._news.set())
        try:
            self._heard_at = time.monotonic()
            writer.write(self._begin())
            await self._write(writer, reading)
        finally:
            reading.cancel()
            writer.transport.abort()
            await asyncio.wait([reading])
            if not reading.cancelled():
                reading.exception()  # told by _write, or of no interest any more

    async def _write(self, writer: asyncio.StreamWriter, reading: asyncio.Task[None]) -> None:
        began_at = pinged_at = time.monotonic()
        while not reading.done():
            self._news.clear()
            while data := self._take(WRITE_BYTES):
                writer.write(data)
                await self._drain(writer)
                await asyncio.sleep(0)
            wait_s = min(self._tick(), pinged_at + link.PING_S - time.monotonic())
            if not self._news.is_set():
                try:
                    async with asyncio.timeout(max(0.0, wait_s)):
                        await self._news.wait()
                except TimeoutError:
                    pass
            now = time.monotonic()
            if now - self._heard_at > link.SILENCE_S:
                raise ConnectionError(f"livesign has said nothing for {link.SILENCE_S:g} s")
            if now - began_at > link.SILENCE_S and not self._good():
                raise ConnectionError(f"no welcome within {link.SILENCE_S:g} s")
            if now - pinged_at >= link.PING_S:
                pinged_at = now
                writer.write(PING)
        reading.result()

    async def _drain(self, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(link.SILENCE_S):
                await writer.drain()
        except TimeoutError:
            raise ConnectionError("livesign does not read any more") from None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Ends by raising ConnectionError."""
        decoder = ReplyDecoder()
        while True:
            data = await reader.read(READ_BYTES)
            if not data:
                raise ConnectionError("livesign closed the connection")
            self._heard_at = time.monotonic()
            for item in decoder.feed(data):
                if isinstance(item, Reply):
                    self._heard(item)
                elif item.fatal:
                    raise ConnectionError(f"what answers is no livesign: {item.detail}")
            self._news.set()  # a welcome lets events out
            await asyncio.sleep(0)
