"""Compares what our machine and lane do with what was recorded of a status controller.

A trace without quirks must match in calls and in what is visible at the end. So must one whose only quirk is
that ``clear`` removed every emoji there is, on a platform without latency and faults: removals of what is
not there are dropped from the recording first. All others are held to invariants: what the recorded
controller should have done.

One order is ours by decision: a terminal that comes while the add of a phase is under way goes ahead of the
removal that belongs to it. From such a terminal on the calls may come in another order, and fewer of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.conformance.status_player import Played, emoji_table, play

__all__ = ["replay_status"]

Trace = dict[str, Any]

MORE_CALLS = {
    "debounce_starvation", "two_reactions", "orphan_at_end", "flap_stale", "null_override",
    "pending_forgotten", "wrong_final_reaction", "restore_lost", "clear_noop",
}  # fmt: skip
"""Quirks whose repair costs calls."""


def replay_status(trace: Trace) -> list[str]:
    """The problems of one trace; none: passed. An empty emoji is refused by us: it is not played."""
    if not trace["config"]["initialEmoji"] or "" in trace["config"].get("emojis", {}).values():
        return []
    played = play(trace)
    quirks = set(trace.get("quirks", ()))
    plain = "latencyMs" not in trace["config"] and "faults" not in trace["config"]
    if not quirks or (quirks == {"clear_blast"} and plain):
        return _differences(trace, played)
    return _broken_invariants(trace, played, quirks)


def _differences(trace: Trace, played: Played) -> list[str]:
    ours, recorded = played.calls, _without_idle_removals(trace)
    problems = []
    if _went_ahead(trace, played):
        if "faults" in trace["config"]:
            return _broken_invariants(trace, played, set())
        at_ms = played.ended_ms or 0
        late, theirs = (Counter(tuple(call[1:]) for call in calls if call[0] >= at_ms) for calls in (ours, recorded))
        if not late <= theirs:
            problems.append(f"after the end {late}, recorded was {theirs}")
        ours, recorded = ([call for call in calls if call[0] < at_ms] for calls in (ours, recorded))
    for at, (our, their) in enumerate(zip(ours, recorded, strict=False)):
        if our != their:
            problems.append(f"call {at} is {our}, recorded was {their}")
            break
    if len(ours) != len(recorded):
        problems.append(f"{len(ours)} calls, recorded were {len(recorded)}")
    if played.visible != trace["visible_end"]:
        problems.append(f"visible at the end {played.visible}, recorded was {trace['visible_end']}")
    return problems


def _went_ahead(trace: Trace, played: Played) -> bool:
    """Whether the terminal came while an add was under way."""
    at_ms = played.ended_ms
    if at_ms is None or not trace["config"]["hasRemove"]:
        return False
    under_way = (
        call[1] == "set" and call[0] <= at_ms and (end is None or end[0] > at_ms)
        for call, end in zip(played.calls, played.ends, strict=True)
    )
    return any(under_way)


def _without_idle_removals(trace: Trace) -> list[Any]:
    """The recorded calls but those that remove what is not on the message. Calls never overlapped."""
    visible: set[str] = set()
    kept = []
    ends = trace.get("ends") or [[0, "ok"]] * len(trace["calls"])
    for call, end in zip(trace["calls"], ends, strict=True):
        _, op, emoji = call
        happened = end is not None and end[1] == "ok"
        if op == "remove" and emoji not in visible:
            continue
        kept.append(call)
        if happened and op == "set":
            visible = (visible if trace["config"]["hasRemove"] else set()) | {emoji}
        elif happened:
            visible.discard(emoji)
    return kept


# --- invariants -------------------------------------------------------------------------------------------


def _broken_invariants(trace: Trace, played: Played, quirks: set[str]) -> list[str]:
    problems = []
    failed = {call[2] for call, end in zip(played.calls, played.ends, strict=True) if end is None or end[1] == "err"}
    if len(played.visible) > 1 and not failed & set(played.visible):
        problems.append(f"more than one mark at rest: {played.visible}")
    wanted = _wanted_at_rest(trace)
    if wanted is not None and not failed and played.visible not in wanted:
        problems.append(f"visible at rest {played.visible}, asked for was one of {wanted}")
    if played.timers_at_end:
        problems.append(f"timers after the end: {played.timers_at_end}")
    problems += _phases_after_the_end(trace, played)
    by_index = "calls" in trace["config"].get("faults", {}) or len(trace["config"].get("latencyMs", ())) > 1
    if not quirks & MORE_CALLS and not by_index and len(played.calls) > len(trace["calls"]):
        problems.append(f"{len(played.calls)} calls, recorded were only {len(trace['calls'])}")
    return problems


def _phases_after_the_end(trace: Trace, played: Played) -> list[str]:
    if played.ended_ms is None:
        return []
    table = emoji_table(trace["config"])
    allowed = {table["done"], table["error"], table["ack"]}
    late = [call for call in played.calls if call[1] == "set" and call[0] > played.ended_ms and call[2] not in allowed]
    return [f"phase after the end: {call}" for call in late]


def _wanted_at_rest(trace: Trace) -> list[list[str]] | None:
    """What may be visible once all is quiet, from the script alone; None: too unusual to tell so simply."""
    table = emoji_table(trace["config"])
    timing = trace["config"].get("timing", {})
    debounce_ms = timing.get("debounceMs", 700)
    stalls_ms = timing.get("stallSoftMs", 10_000), timing.get("stallHardMs", 30_000)
    if not 0 < debounce_ms < min(stalls_ms) or not trace["config"].get("enabled", True):
        return None
    stalled = [table["stall_hard"] if stalls_ms[1] >= stalls_ms[0] else table["stall_soft"]]
    shown: list[str] = []
    ended = False
    for row in trace["script"]:
        match row[1]:
            case "clear":
                shown, ended = [], True
            case "restore_initial":
                shown = [table["ack"]]
            case "done" | "error" if not ended:
                shown, ended = [table[row[1]]], True
            case "queued" | "thinking" | "compacting" | "tool" if not ended:
                shown = stalled
            case _:
                pass
    return [shown]
