"""The bots: one client for each account, with a run in each of its conversations at any time."""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import gevent
import gevent.socket
import msgpack

from tests.load.judge import Judge
from tests.load.plan import Plan

PHASES: tuple[dict[str, Any], ...] = (
    {"type": "thinking"}, {"type": "tool", "name": "web_search"}, {"type": "tool", "name": "bash"}, {"type": "text"},
)  # fmt: skip
ACK_EVERY_S = 0.02


class Crowd:
    """One account's bot. Runs on the hub of its caller."""

    def __init__(self, plan: Plan, account: str, path: str, judge: Judge, now_ms: Callable[[], int]) -> None:
        self.events = 0
        self.late_ms = 0
        """How late it was at most: a machine that is too busy to play the bots measures nothing."""
        self.open = 0
        self._plan = plan
        self._account = account
        self._judge = judge
        self._now_ms = now_ms
        self._random = random.Random(account)
        self._chats = plan.conversations // plan.accounts
        self._due: list[tuple[int, int, str]] = []
        self._number = [0] * self._chats
        self._end_ms = [0] * self._chats
        self._acks: dict[str, tuple[str, str, str]] = {}
        self._socket = gevent.socket.socket(gevent.socket.AF_UNIX)
        self._socket.connect(path)
        self._tasks = [gevent.spawn(self._read), gevent.spawn(self._play)]

    def stop(self) -> None:
        """Say nothing more; the connection stays."""
        gevent.killall(self._tasks)

    def close(self) -> None:
        self._socket.close()

    # --- the play ---------------------------------------------------------------------------------------------

    def _play(self) -> None:
        plan, start_ms = self._plan, self._now_ms()
        for chat in range(self._chats):
            at_ms = start_ms + int(chat * plan.ramp_s * 1_000 / self._chats)
            self._end_ms[chat] = start_ms + int(plan.ramp_s * 1_000 + self._random.uniform(0, plan.life_s) * 1_000)
            heappush(self._due, (at_ms, chat, "begin"))
        out = bytearray()
        while True:
            now_ms = self._now_ms()
            while self._due and self._due[0][0] <= now_ms:
                at_ms, chat, what = heappop(self._due)
                self.late_ms = max(self.late_ms, now_ms - at_ms)
                for event in getattr(self, f"_{what}")(chat, now_ms):
                    out += msgpack.packb({"account": self._account, "conversation": f"c{chat}", **event})
                    self.events += 1
            if out:
                self._socket.sendall(bytes(out))
                out.clear()
            gevent.sleep(ACK_EVERY_S)

    def _begin(self, chat: int, now_ms: int) -> list[dict[str, Any]]:
        self._number[chat] += 1
        self.open += 1
        self._judge.idle.pop((self._account, f"c{chat}"), None)
        heappush(self._due, (now_ms + self._soon_ms(), chat, "change"))
        return [{"type": "received", "message": self._message(chat), "direct": True}]

    def _change(self, chat: int, now_ms: int) -> list[dict[str, Any]]:
        if now_ms >= self._end_ms[chat]:
            return self._end(chat, now_ms)
        heappush(self._due, (min(now_ms + self._soon_ms(), self._end_ms[chat]), chat, "change"))
        return [{**self._random.choice(PHASES), "message": self._message(chat)}]

    def _end(self, chat: int, now_ms: int) -> list[dict[str, Any]]:
        message = self._message(chat)
        lane = (self._account, f"c{chat}", message)
        self._judge.told_ms[lane] = now_ms
        self._acks[f"{chat}/{message}"] = lane
        self.open -= 1
        self._end_ms[chat] = now_ms + int(self._random.uniform(0.5, 1.5) * self._plan.life_s * 1_000)
        heappush(self._due, (now_ms + 3_000, chat, "begin"))
        return [{"type": "done", "message": message, "id": f"{chat}/{message}"}]

    def _soon_ms(self) -> int:
        return int(self._random.uniform(0.5, 1.5) * self._plan.phase_s * 1_000)

    def _message(self, chat: int) -> str:
        return f"m{self._number[chat]}"

    # --- answers ----------------------------------------------------------------------------------------------

    def _read(self) -> None:
        unpacker = msgpack.Unpacker()
        while data := self._socket.recv(65_536):
            unpacker.feed(data)
            for reply in unpacker:
                self._hear(reply)

    def _hear(self, reply: dict[str, Any]) -> None:
        if reply["type"] == "ack" and reply["result"] == "applied":
            lane = self._acks.pop(reply["id"])
            self._judge.ended_ms[lane] = self._now_ms()
            self._judge.idle[lane[:2]] = self._now_ms()
        elif reply["type"] not in ("welcome", "ping"):
            self._judge.violations.append(f"{self._account} was answered {reply}")
