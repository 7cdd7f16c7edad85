"""A simulation's result for people: one lane per conversation, what was said and what was shown, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors.presence.terms import Op
from actors.scenario import Control, Step
from actors.scripted_platform import CallRecord, World
from protocol.codec import DecodeError

_VERBS = {
    Op.SET: "show",
    Op.REMOVE: "remove",
    Op.CLEAR: "clear marks",
    Op.TYPING_START: "typing",
    Op.TYPING_STOP: "stop typing",
}
ELSEWHERE = "(host)"


def timeline(steps: Iterable[Step], world: World, runs: Sequence[Mapping[str, Any]], violations: Sequence[str]) -> str:
    """Lines like ``  12.300  show 🔥 on m1``; events on the left, calls indented."""
    lanes: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for step in steps:
        lane, text = _said(step)
        lanes[lane].append((step.t_ms, 0, text))
    for call in world.calls:
        lane = call.command.conversation
        lanes[lane].append((call.t_ms, 1, _called(call)))
    for run in runs:
        reason = f" ({run['reason']})" if run["reason"] else ""
        lanes[run["conversation"]].append((run["ended_ms"], 2, f"= run {run['run']}: {run['outcome']}{reason}"))
    lines: list[str] = []
    for lane in sorted(lanes, key=lambda name: (name == ELSEWHERE, name)):
        lines.append(lane)
        for t_ms, _, text in sorted(lanes[lane], key=lambda row: row[:2]):
            lines.append(f"  {t_ms / 1000:10.3f}  {text}")
        lines.append("")
    lines.append(_summary(world, runs))
    lines += [f"VIOLATION: {text}" for text in violations]
    return "\n".join(lines)


def _said(step: Step) -> tuple[str, str]:
    what = step.what
    if isinstance(what, Control):
        detail = " ".join(f"{key}={value}" for key, value in what.args.items() if key not in ("events", "config"))
        return ELSEWHERE, f"{what.name} {detail or step.client}".rstrip()
    if isinstance(what, DecodeError):
        return ELSEWHERE, f"refused event: {what}"
    fields = msgspec.to_builtins(what)
    kind = fields.pop("type")
    lane = fields.pop("conversation", ELSEWHERE)
    fields.pop("account", None)
    target = fields.pop("run", None) or fields.get("message", "")
    fields.pop("message", None)
    detail = " ".join(f"{key}={value}" for key, value in fields.items())
    return lane, f"{kind} {target} {detail}".rstrip()


def _called(call: CallRecord) -> str:
    command = call.command
    emoji = f" {command.emoji}" if command.emoji else ""
    place = f" on {command.message}" if command.message else f" in {command.thread}" if command.thread else ""
    took = "" if call.ended_ms is None or call.ended_ms == call.t_ms else f" after {call.ended_ms - call.t_ms} ms"
    result = "" if call.outcome == "ok" and not took else f": {call.outcome or 'no answer yet'}{took}"
    return f"    {_VERBS[command.op]}{emoji}{place}{result}"


def _summary(world: World, runs: Sequence[Mapping[str, Any]]) -> str:
    marks = sum(map(len, world.marks.values()))
    return f"{len(runs)} runs ended, {len(world.calls)} calls, {marks} marks showing at the end"
