"""A crowd of bots as one process: many connections to a Unix socket, many runs open at once.

``python -m tests.end_to_end.crowd SOCKET RUNS STEP_MS`` plays the runs in waves. In a wave all runs go through the same
steps side by side: received, thinking, a tool span, text, progress, and their end. Of every 20 runs one ends as an error and one
cancelled, and of every 20 connections one is lost half-way, with all its runs. The last line of the output is a `Tally`
as JSON.

It is its own process so that the server's thread has to do nothing but serve, and it knows nothing of livesign: sockets and
msgpack.
"""

from __future__ import annotations

import json
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgpack

CONNECTIONS = 60
RUNS_EACH = 20
"""Open at once on one connection: 1,200 in all."""
LOST_EVERY = 20
STEPS: tuple[dict[str, Any], ...] = (
    {"type": "received", "mentioned": True},
    {"type": "thinking"},
    {"type": "tool", "name": "web_search", "call": "1"},
    {"type": "tool_end", "call": "1"},
    {"type": "text"},
    {"type": "progress"},
)
LOST_AT = 4
"""Steps that a lost client still makes."""
ENDS = {0: "error", 1: "cancelled"}
"""How a run ends, by its number modulo 20; all others are done."""


@dataclass(slots=True)
class Tally:
    """What was sent, and what came back."""

    runs: int = 0
    events: int = 0
    lost: int = 0
    ends: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)


class Bot:
    """One client: its connection, and its runs of the present wave."""

    def __init__(self, path: str, number: int, tally: Tally) -> None:
        self.number = number
        self._path = path
        self._tally = tally
        self._socket: socket.socket | None = None
        self._runs: range = range(0)
        self._wave = 0

    @property
    def gets_lost(self) -> bool:
        return self.number % LOST_EVERY == 0

    def begin(self, wave: int, runs: range) -> None:
        """These are the runs of the wave; connect if need be."""
        self._wave, self._runs = wave, runs
        if self._socket is None:
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.connect(self._path)

    def step(self, event: dict[str, Any]) -> None:
        """One event for each run."""
        self._send({**self._names(run), **event} for run in self._runs)

    def end(self) -> None:
        """The terminals, each with an id so that it is answered."""
        ends = [(run, ENDS.get(run % 20, "done")) for run in self._runs]
        self._tally.ends.update(end for _, end in ends)
        self._send({**self._names(run), "type": end, "id": f"end-{run}"} for run, end in ends)

    def lose(self) -> None:
        """The process is gone without a word."""
        assert self._socket is not None
        self._socket.close()
        self._socket = None
        self._tally.lost += len(self._runs)

    def hear(self) -> None:
        """Wait for the answers to all terminals."""
        assert self._socket is not None
        unpacker, left = msgpack.Unpacker(), len(self._runs)
        while left:
            data = self._socket.recv(65_536)
            if not data:
                raise ConnectionError("livesign has closed the connection")
            unpacker.feed(data)
            for reply in unpacker:
                self._tally.replies[reply.get("result") or repr(reply)] += 1
                left -= 1

    def _names(self, run: int) -> dict[str, Any]:
        """Half of the chats are direct; pairs of runs share a group."""
        slot = run - self._runs.start
        chat = slot if slot % 2 else slot // 4 * 4
        names = {"conversation": f"chat-{self.number}-{chat}", "message": f"{self._wave}-{run}"}
        return names | {"direct": bool(slot % 2)}

    def _send(self, events: Iterator[dict[str, Any]]) -> None:
        assert self._socket is not None
        packed = [msgpack.packb(event) for event in events]
        self._tally.events += len(packed)
        self._socket.sendall(b"".join(packed))


def play(path: str, runs: int, step_s: float) -> Tally:
    """All runs, wave after wave, ``step_s`` between the steps of a wave."""
    tally = Tally()
    bots = [Bot(path, number, tally) for number in range(CONNECTIONS)]
    for wave, first in enumerate(range(0, runs, CONNECTIONS * RUNS_EACH)):
        last = min(runs, first + CONNECTIONS * RUNS_EACH)
        playing = []
        for bot, start in zip(bots, range(first, last, RUNS_EACH), strict=False):
            bot.begin(wave, range(start, min(last, start + RUNS_EACH)))
            playing.append(bot)
        tally.runs += last - first
        for number, event in enumerate(STEPS):
            if number == LOST_AT:
                for bot in playing:
                    if bot.gets_lost:
                        bot.lose()
                playing = [bot for bot in playing if not bot.gets_lost]
            for bot in playing:
                bot.step(event)
            time.sleep(step_s)
        for bot in playing:
            bot.end()
        for bot in playing:
            bot.hear()
    return tally


if __name__ == "__main__":
    result = play(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) / 1_000)
    print(json.dumps({name: getattr(result, name) for name in Tally.__slots__}))
