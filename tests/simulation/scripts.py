"""What bots do: random scripts of one conversation, as rows of a scenario.

A row is ``[t_ms, event, client]``. Times, order, repeats and gaps are as unkind as those of real bots: events come in
bursts and after long silences, late, twice, in the wrong order, from another client, and sometimes the end never comes.
"""

from __future__ import annotations

import random
from typing import Any

Row = list[Any]
TOOLS = ("bash", "web_search", "edit", "calendar", "x")
BORN_MS = 1_700_000_000_000
"""Unix time at the beginning of a simulation."""
NONSENSE: tuple[dict[str, Any], ...] = (
    {"type": "tool", "name": 7}, {"type": "waiting", "on": "nobody"}, {"type": "dance"}, {"type": "child"},
    {"type": "done", "lease_ms": -1},
)  # fmt: skip
"""What no client may send. Their ids begin with a question mark: they are refused before anybody knows of them."""


class Talk:
    """The script of one conversation, written from left to right."""

    def __init__(self, rng: random.Random, account: str, conversation: str, clients: list[str], start_ms: int) -> None:
        self.rows: list[Row] = []
        self._rng = rng
        self._place = {"account": account, "conversation": conversation}
        self._clients = clients
        self._client = rng.choice(clients)
        self._t_ms = start_ms
        self._calls = 0
        self._messages = 0

    def write(self, runs: int) -> list[Row]:
        """The rows of so many runs, which may overlap."""
        rng = self._rng
        for _ in range(runs):
            begin_ms = self._t_ms
            self._run(rng.choice((0, 0, 0, 1, 2, 4, 8)))
            if rng.random() < 0.3:  # the next message comes while this one is worked on
                self._t_ms = begin_ms + self._gap_ms()
            else:
                self._t_ms += rng.choice((200, 1_600, 5_000, 40_000, 90_000))
            if rng.random() < 0.06:
                self._scope()
        return self.rows

    # --- parts -----------------------------------------------------------------------------------------------

    def _gap_ms(self) -> int:
        rng = self._rng
        kind = rng.random()
        if kind < 0.25:
            return rng.randrange(0, 250)
        if kind < 0.9:
            return int(rng.expovariate(1 / 1_500))
        return rng.randrange(8_000, 75_000)

    def _say(self, event: dict[str, Any], late_ms: int = 0) -> None:
        client = self._client if self._rng.random() < 0.9 else self._rng.choice(self._clients)
        self.rows.append([self._t_ms + late_ms, {**event, **self._place}, client])

    def _run(self, works: int) -> None:
        rng = self._rng
        self._messages += 1
        who: dict[str, Any] = {"message": f"m{self._messages}"}
        if rng.random() < 0.06:
            who["run"] = f"r{self._messages}"
        if rng.random() < 0.05:
            who = {"run": f"job{self._messages}"}
        opening: dict[str, Any] = dict(who)
        if rng.random() < 0.15:
            opening["thread"] = rng.choice(("t1", "t2"))
        if rng.random() < 0.08:
            opening["lease_ms"] = rng.choice((5_000, 60_000, 300_000))
        if "message" in who and rng.random() < 0.93:
            self._say({**self._received(), **opening})
        else:
            self._say({"type": rng.choice(("thinking", "progress", "queued")), **opening})
        for _ in range(works):
            self._t_ms += self._gap_ms()
            self._work(who)
        self._t_ms += self._gap_ms()
        self._end(who)

    def _received(self) -> dict[str, Any]:
        rng = self._rng
        found: dict[str, Any] = {"type": "received", "direct": rng.random() < 0.3, "mentioned": rng.random() < 0.9}
        if rng.random() < 0.2:
            found |= rng.choice(
                (
                    {"mentionable": False}, {"can_detect_mention": False}, {"bypass_mention": True}, {"from_bot": True},
                    {"kind": rng.choice(("command", "audio", "interaction"))}, {"forum": True},
                    {"sent_at_ms": BORN_MS + self._t_ms - rng.choice((0, 4_000, 200_000, 400_000))},
                    {"sent_at_ms": (BORN_MS + self._t_ms) // 1_000},
                )
            )  # fmt: skip
        return found

    def _work(self, who: dict[str, Any]) -> None:
        rng = self._rng
        kind = rng.choices(
            ("thinking", "tool", "span", "text", "progress", "queued", "compacting", "slot", "user", "alive", "child",
             "moved", "sending", "typing", "restore", "merged", "lane", "again", "stranger", "burst", "nonsense"),
            (20, 12, 14, 12, 8, 3, 3, 4, 6, 6, 5, 3, 8, 6, 2, 4, 2, 2, 2, 3, 1),
        )[0]  # fmt: skip
        match kind:
            case "tool":
                self._say({"type": "tool", "name": rng.choice(TOOLS), **who})
            case "span":
                self._span(who)
            case "text":
                self._say({"type": "text", "visible": rng.random() < 0.7, **who})
            case "compacting":
                self._say({"type": "compacting", **who})
                if rng.random() < 0.8:
                    self._t_ms += self._gap_ms()
                    self._say({"type": "compacting_end", **who})
            case "slot" | "user":
                self._say({"type": "waiting", "on": kind, **who})
            case "alive" if rng.random() < 0.3:
                self.rows.append([self._t_ms, {"type": "alive"}, self._client])
            case "child":
                self._child(who)
            case "moved":
                self._say({"type": "moved", "thread": rng.choice(("t1", "t2", "t3")), **who})
            case "sending":
                self._say({"type": "sending", **who})
                if rng.random() < 0.85:
                    self._t_ms += rng.choice((20, 300, 2_000, 12_000))
                    self._say({"type": "sent", "ok": rng.random() < 0.9, **who})
            case "typing":
                self._say({"type": rng.choice(("typing_start", "typing_stop")), **who})
            case "merged":
                into = rng.choice((f"m{max(1, self._messages - 1)}", f"m{self._messages}", "nobody"))
                self._say({"type": "merged", "into": into, **who})
            case "lane":
                self._say({"type": "error", "scope": "lane", **who})
            case "burst":  # phases change faster than they may be shown
                for kind in rng.choices(("thinking", "text", "compacting", "tool"), k=rng.choice((6, 16, 40))):
                    self._say({"type": kind, **who, **({"name": rng.choice(TOOLS)} if kind == "tool" else {})})
                    self._t_ms += rng.choice((20, 90, 190))
            case "nonsense":
                self._say({**rng.choice(NONSENSE), "id": f"?{self._messages}", **who})
            case "again":
                self._say({"type": "received", "direct": False, "mentioned": True, **who})
            case "stranger":
                self._say({"type": rng.choice(("thinking", "done", "progress")), "run": f"x{rng.randrange(3)}"})
            case _:
                self._say({"type": kind, **who})

    def _span(self, who: dict[str, Any]) -> None:
        rng = self._rng
        self._calls += 1
        call = f"k{self._calls}"
        self._say({"type": "tool", "name": rng.choice(TOOLS), "call": call, **who})
        if rng.random() < 0.85:
            self._t_ms += self._gap_ms()
            if rng.random() < 0.3:
                self._say({"type": "thinking", **who})
                self._t_ms += self._gap_ms()
            self._say({"type": "tool_end", "call": call, "ok": rng.random() < 0.8, **who})

    def _child(self, who: dict[str, Any]) -> None:
        rng = self._rng
        self._calls += 1
        child = f"h{self._calls}"
        self._say({"type": "child", "child": child, **who, **({"max_ms": 20_000} if rng.random() < 0.5 else {})})
        if rng.random() < 0.8:
            late_ms = self._gap_ms() + self._gap_ms()
            self._say({"type": "child_end", "child": child, "ok": rng.random() < 0.8, **who}, late_ms)

    def _end(self, who: dict[str, Any]) -> None:
        rng = self._rng
        kind = rng.choices(
            ("done", "error", "cancelled", "silent", "clear", "sent", "nothing"), (51, 12, 9, 5, 5, 12, 6)
        )[0]
        if kind == "sent":
            self._say({"type": "sending", "final": True, **who})
            self._t_ms += rng.choice((50, 900))
            self._say({"type": "sent", "final": True, **who})
            if rng.random() < 0.5:
                self._say({"type": "done", **who}, rng.choice((100, 3_000)))
        elif kind != "nothing":
            self._say({"type": kind, **who})
        if rng.random() < 0.2:  # some do not know when it is over
            late = rng.choice(("thinking", "tool", "progress", "done", "error", "typing_start", "received", "sent"))
            fields: dict[str, Any] = {"name": "bash"} if late == "tool" else {}
            if late == "received":
                fields = {"direct": False, "mentioned": True}
            self._say({"type": late, **fields, **who}, rng.choice((0, 5, 400, 1_800, 20_000, 100_000)))
        if rng.random() < 0.05:
            self._say({"type": rng.choice(("clear", "restore")), **who}, rng.choice((100, 1_000, 6_000)))
        if "message" in who and "run" not in who and rng.random() < 0.05:  # the same message is worked on again
            again = {**who, "run": f"again{self._messages}"}
            self._t_ms += rng.choice((50, 1_000, 10_000))
            self._say({"type": "received", "direct": False, "mentioned": True, **again})
            self._t_ms += self._gap_ms()
            self._say({"type": "thinking", **again})
            self._t_ms += self._gap_ms()
            self._say({"type": rng.choice(("done", "error", "cancelled")), **again})

    def _scope(self) -> None:
        rng = self._rng
        scope = {"scope": f"s{rng.randrange(2)}", **({"thread": "t1"} if rng.random() < 0.3 else {})}
        self._say({"type": "typing_start", **scope})
        if rng.random() < 0.7:
            self._say({"type": "typing_stop", **scope}, rng.choice((500, 10_000, 30_000)))
