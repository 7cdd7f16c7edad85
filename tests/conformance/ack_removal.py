"""Removing the ack after the reply: status marks are off, and the run removes its ack or keeps it."""

from __future__ import annotations

from typing import Any

from actors.presence.mark_lane import MarkLane
from actors.presence.policy import Policy, StatusSettings
from actors.presence.reaction import ReactionMachine
from actors.presence.terms import (
    Clear,
    LaneRules,
    Op,
    Outcome,
    OutcomeKind,
    RetryRules,
    RunInfo,
    RunKey,
    Show,
)
from protocol import events

__all__ = ["replay_removal"]


def replay_removal(row: dict[str, Any]) -> list[str]:
    """The problems of one row. An ack that was refused, in whatever way, leaves nothing to remove."""
    removals = _removals(row)
    wanted = row["remove_calls"]
    return [] if removals == wanted else [f"{removals} removals, recorded were {wanted}"]


def _removals(row: dict[str, Any]) -> int:
    attempted = row["ack"] is not None and bool(row["ackValue"])
    status = StatusSettings(enabled=False, settle="clear" if row["removeAfterReply"] else "keep")
    info = RunInfo(
        key=RunKey("account", "chat", "message"),
        message="message",
        thread=None,
        policy=Policy(status=status),
        ack_allowed=attempted,
        status_allowed=True,
    )
    machine = ReactionMachine(info)
    lane = MarkLane("chat", "message", LaneRules(reactions="add_remove"), RetryRules(1, terminal_retries=False))
    removals = 0
    for event in (
        events.Received(conversation="chat", message="message", direct=True),
        events.Done(conversation="chat", message="message"),
    ):
        for effect in machine.handle(event, 0):
            if isinstance(effect, Show):
                lane.show(effect.chain[:1], effect.rank, 0)
            elif isinstance(effect, Clear):
                lane.show((), effect.rank, 0)
        while (following := lane.next_command(0)) is not None:
            command = following[0]
            lane.begin(command, 0)
            kind = OutcomeKind.OK
            if command.op is Op.REMOVE:
                removals += 1
                kind = OutcomeKind.TRANSIENT if row["removeFails"] else kind
            elif row["ack"] != "true":
                kind = OutcomeKind.INVALID_REACTION
            lane.end(Outcome(kind), 0)
    return removals
