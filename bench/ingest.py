"""From a real Unix socket to a changed desired state: events per second, and as a share of mere decoding.

Why: a daemon serves many bots from one core, so the whole way of an event has to be cheap beside what nobody can avoid.
The peer is just that: `msgpack.Unpacker` and a conversion by tag class of the same bytes, in the same process, in turn.

The server, sessions, router and conversations are the real ones, on the hub of one thread; the client is a process of its
own that writes bytes encoded before. Runs are open and marked; the events are phases, tool spans and progress, spread
over the conversations. The platform never answers, so that calls cost nothing. *Undebounced* means that every phase is
desired at once; the default waits 700 ms, so most events move a deadline instead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import msgpack
import msgspec

from actors.application import Application
from actors.config import Config
from actors.ledger import MemoryLedger
from actors.runtime import Runtime
from actors.server import Server
from bench.harness import Duel, Figure, at_least, duel, progress, rate
from bench.stage import SilentPort, config
from protocol import events

GOAL = at_least(0.08)
POLL_S = 0.001
READ_BYTES = 16_384
"""Fed to the peer's unpacker at a time, as the server reads."""
TAGS: dict[str, type[events.Event]] = {
    str(cls.__struct_config__.tag): cls for cls in events.RUN_EVENTS + events.BARE_EVENTS
}
PHASES: tuple[dict[str, Any], ...] = (
    {"type": "thinking"},
    {"type": "tool", "name": "web_search", "call": "1"},
    {"type": "tool_end", "call": "1"},
    {"type": "text"},
    {"type": "tool", "name": "apply_patch", "call": "2"},
    {"type": "tool_end", "call": "2"},
    {"type": "compacting"},
    {"type": "progress"},
)
CLIENT = """
import socket, sys
data = open(sys.argv[2], "rb").read()
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
for opening in sys.stdin:
    peer.sendall(data if opening == "all\\n" else bytes.fromhex(opening))
"""


def opening(chats: int) -> bytes:
    """A run in every chat, acknowledged and marked."""
    return b"".join(
        msgpack.packb(
            {"type": "received", "conversation": f"chat-{chat}", "message": "1", "direct": False, "mentioned": True}
        )
        for chat in range(chats)
    )


def stream(chats: int, rounds: int) -> bytes:
    """Events of open runs, one chat after the other, ``rounds`` times."""
    return b"".join(
        msgpack.packb({**PHASES[(number + chat) % len(PHASES)], "conversation": f"chat-{chat}", "message": "1"})
        for number in range(rounds)
        for chat in range(chats)
    )


def decode(data: bytes) -> int:
    """The peer: everything into typed events, nothing else. Their number."""
    unpacker = msgpack.Unpacker(raw=False)
    convert, tags, count = msgspec.convert, TAGS, 0
    for start in range(0, len(data), READ_BYTES):
        unpacker.feed(data[start : start + READ_BYTES])
        for source in unpacker:
            convert(source, tags[source["type"]])
            count += 1
    return count


class Daemon:
    """Server and tree on this thread's hub, and one client process that writes when told."""

    def __init__(self, settings: Config, path: str, data: str) -> None:
        self.runtime = Runtime(name="bench")
        self.application = Application(settings, self.runtime, lambda _: SilentPort(), MemoryLedger())
        self.application.start()
        self.server = Server(
            replace(settings.server, unix=path),
            _Door(self.application),
            backlog=lambda: self.runtime.backlog,
            accounts=lambda: settings.accounts,
            stats=dict,
        )
        self.server.start()
        self._client = subprocess.Popen(
            [sys.executable, "-c", CLIENT, path, data], stdin=subprocess.PIPE, text=True, bufsize=1
        )

    @property
    def handled(self) -> int:
        """Events that have gone through the router."""
        return self.application.parts.router.counters["events"]

    def write(self, what: str, count: int) -> float:
        """Have the client write, and wait until all of it has had its effect. Events per second of CPU time."""
        return rate(count, lambda: self._write(what, self.handled + count))

    def _write(self, what: str, target: int) -> None:
        assert self._client.stdin is not None
        self._client.stdin.write(what + "\n")
        while self.handled < target or self.runtime.backlog:
            if self._client.poll() is not None:
                raise RuntimeError("the client has ended")
            gevent.sleep(POLL_S)

    def desired(self) -> int:
        """A number that follows from every mark that is wanted now."""
        conversations = self.application.parts.router.conversations
        marks = [
            (place, machine.desired)
            for place, entry in conversations.items()
            for machine in entry.state.reactions.values()
        ]
        return zlib.crc32(repr(sorted(marks)).encode())

    def close(self) -> None:
        self._client.terminate()
        self._client.communicate()
        self.server.stop()
        self.application.close()
        self.runtime.close()


class _Door:
    """The way from the sessions to the router."""

    def __init__(self, application: Application) -> None:
        self.tell = application.submit


def measure(chats: int, rounds: int, turns: int, **sections: Any) -> tuple[Duel, int]:
    """Ingest and decoding in turn; the rates, and the sum of what is desired at the end."""
    data = stream(chats, rounds)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "events")
        file.write_bytes(data)
        daemon = Daemon(config(**sections), str(Path(directory, "socket")), str(file))
        try:
            daemon.write(opening(chats).hex(), chats)
            count = chats * rounds
            rates = duel(lambda: daemon.write("all", count), lambda: rate(count, lambda: decode(data)), turns)
            return rates, daemon.desired()
        finally:
            daemon.close()


def run(smoke: bool) -> list[Figure]:
    chats, rounds, turns = (20, 8, 1) if smoke else (1_000, 24, 7)
    figures = []
    for title, sections in (("undebounced", {"status": {"debounce_ms": 0}}), ("default settings", {})):
        progress(f"ingest: {title}, {turns} rounds of {chats * rounds:,} events")
        (ours, peer, ratio), checksum = measure(chats, rounds, turns, **sections)
        note = f"Unpacker and convert by tag, {peer:,.0f} events/s"
        figures.append(Figure(f"{title}: share of decoding", ratio, "ratio", GOAL, note, checksum))
        figures.append(Figure(f"{title}: events", ours, "1/s", checksum=checksum))
    return figures
