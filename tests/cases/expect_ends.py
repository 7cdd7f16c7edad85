"""Expectations about the turns, the answers to clients, the counters, and what is left at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import UNSET, UnsetType, to_builtins

from actors.meters import ACCOUNT_COUNTERS, COUNTERS, GAUGES, OUTCOME
from actors.presence.terms import OutcomeKind
from protocol.events import Ack, Rejected, Reply
from tests.cases.expect import TOLERANCE_MS, Counted, Window, check_names
from tests.cases.script import event_id
from tests.cases.stage import Evidence

RUN_FIELDS = ("account", "conversation", "message", "run", "outcome", "reason", "opened_ms", "ended_ms")
REPLY_TYPES = {str(reply.__struct_config__.tag): reply for reply in Reply.__subclasses__()}
REPLY_FIELDS = {"type"}.union(*(reply.__struct_fields__ for reply in REPLY_TYPES.values()))
OUTCOMES = tuple(f"{OUTCOME}{kind}" for kind in OutcomeKind)
LEFT = ("shown", "typing", "open_runs", "timers", "actors", "ledger_rows")


class Run(Window, frozen=True, kw_only=True):
    """How one turn ended; or, with ``open``, that it has not."""

    run: str
    account: str | None = None
    outcome: Literal["done", "error", "cancelled", "silent"] | None = None
    reason: str | UnsetType | None = UNSET
    ended: int | None = None
    within: int = TOLERANCE_MS
    open: bool = False

    def check(self, evidence: Evidence) -> Iterator[str]:
        evidence.translation.turn(self.run, self.account)
        rows = [
            row for row in evidence.result.runs if row["run"] == self.run and self.account in (None, row["account"])
        ]
        named = f"run {self.run}"
        if self.open:
            if rows:
                yield f"{named}: ended as {rows[-1]['outcome']} at {rows[-1]['ended_ms']}"
            return
        if not rows:
            yield f"{named}: has not ended"
            return
        row = rows[-1]
        if self.outcome is not None and row["outcome"] != self.outcome:
            yield f"{named}: {row['outcome']} ({row['reason']}), not {self.outcome}"
        if self.reason is not UNSET and row["reason"] != self.reason:
            yield f"{named}: reason {row['reason']!r}, not {self.reason!r}"
        if self.ended is not None and abs(row["ended_ms"] - self.ended) > self.within:
            yield f"{named}: ended at {row['ended_ms']}, not near {self.ended}"
        if not self.holds(row["ended_ms"]):
            yield f"{named}: ended at {row['ended_ms']}, outside of the window"


class Runs(Counted, frozen=True, kw_only=True):
    """How many turns ended in some way."""

    runs: dict[str, Any]
    """Fields of a run: outcome, reason, account, conversation."""

    def check(self, evidence: Evidence) -> Iterator[str]:
        check_names("field of a run", self.runs, RUN_FIELDS)
        rows = [row for row in evidence.result.runs if self.holds(row["ended_ms"])]
        found = [row for row in rows if all(row.get(name) == value for name, value in self.runs.items())]
        yield from self.counted(f"runs {self.runs}", len(found))


class Answer(Window, frozen=True, kw_only=True):
    """What the client was answered to the event of a step of the script (counted from 0)."""

    answer: int
    result: Literal["applied", "duplicate", "late", "unknown"] | None = None
    code: str | None = None

    def check(self, evidence: Evidence) -> Iterator[str]:
        wanted = event_id(self.answer)
        named = f"answer to step {self.answer}"
        replies = [reply for _, _, reply in evidence.result.replies if getattr(reply, "id", None) == wanted]
        if not replies:
            yield f"{named}: none"
            return
        reply = replies[-1]
        result = reply.result if isinstance(reply, Ack) else None
        code = reply.code if isinstance(reply, Rejected) else None
        if (result, code) != (self.result, self.code):
            yield f"{named}: {result or code}, not {self.result or self.code}"


class Replies(Counted, frozen=True, kw_only=True):
    """Replies of any kind to a client: those whose fields have these values."""

    replies: dict[str, Any]
    client: str | None = None

    def check(self, evidence: Evidence) -> Iterator[str]:
        check_names("field of a reply", self.replies, REPLY_FIELDS)
        check_names("reply", {self.replies["type"]} if "type" in self.replies else (), REPLY_TYPES)
        check_names("client", () if self.client is None else (self.client,), evidence.clients)
        found = 0
        for t_ms, client, reply in evidence.result.replies:
            fields = to_builtins(reply)
            fits = all(fields.get(name) == value for name, value in self.replies.items())
            found += fits and self.client in (None, client) and self.holds(t_ms)
        yield from self.counted(f"replies {self.replies}", found)


def _numbers(evidence: Evidence) -> dict[str, int]:
    """Everything that is counted, by name."""
    result = evidence.result
    own = {
        "runs": len(result.runs),
        "open_runs": result.open_runs,
        "dead_letters": result.dead_letters,
        "saved_calls": result.saved_calls,
    }
    counted = dict.fromkeys((*GAUGES, *COUNTERS, *ACCOUNT_COUNTERS, *OUTCOMES), 0)
    return {**counted, **result.counters, **own}


class Counter(Counted, frozen=True, kw_only=True):
    """A counter at the end; also runs, open_runs, dead_letters and saved_calls."""

    counter: str
    is_: int | None = None

    def check(self, evidence: Evidence) -> Iterator[str]:
        numbers = _numbers(evidence)
        check_names("counter", (self.counter,), numbers)
        value = numbers[self.counter]
        if self.is_ is not None:
            if value != self.is_:
                yield f"{self.counter}: {value}, not {self.is_}"
        else:
            yield from self.counted(self.counter, value)


class Sum(Window, frozen=True, kw_only=True):
    """Numbers that add up: any of those that `Counter` knows."""

    sum: list[str]
    is_: int

    def check(self, evidence: Evidence) -> Iterator[str]:
        known = _numbers(evidence)
        check_names("counter", self.sum, known)
        parts = {name: known[name] for name in self.sum}
        if sum(parts.values()) != self.is_:
            yield f"sum of {parts}: {sum(parts.values())}, not {self.is_}"


class Exit(Window, frozen=True, kw_only=True):
    """The process ended with this code within the window."""

    exit: int

    def check(self, evidence: Evidence) -> Iterator[str]:
        exits = evidence.result.exits
        if not any(code == self.exit and self.holds(t_ms) for t_ms, code in exits):
            yield f"exit {self.exit}: exits are {exits}"


class Rest(Window, frozen=True, kw_only=True):
    """At the end nothing is left; or only of the kinds that are listed nothing is."""

    rest: bool | list[Literal["shown", "typing", "open_runs", "timers", "actors", "ledger_rows", "tree"]]

    def check(self, evidence: Evidence) -> Iterator[str]:
        plain = evidence.result.to_json()
        for name in LEFT if isinstance(self.rest, bool) else self.rest:
            left = [each for each in evidence.tree_left if any(each)] if name == "tree" else plain[name]
            if left:
                yield f"left at the end: {name} {left}"


class Warned(Counted, frozen=True, kw_only=True):
    """Warnings that the configuration was loaded with, and that hold this text."""

    warning: str

    def check(self, evidence: Evidence) -> Iterator[str]:
        found = [text for text in evidence.warnings if self.warning in text]
        yield from self.counted(f"warning {self.warning!r}", len(found))
