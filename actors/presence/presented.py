"""What a run's settings let show on its message: for a state, as ack, and in the end."""

from __future__ import annotations

from actors.presence.policy import STATES, Chain, StatusSettings
from actors.presence.terms import RunInfo

__all__ = ["ack_chain", "is_quiet", "marks_on", "resting_chain", "state_chain"]

_ENDS = ("done", "error")
"""States with a mark of their own at the end; quiet hours do not hide them."""


def is_quiet(status: StatusSettings, minute: int) -> bool:
    """Whether this minute of the local day is in the quiet hours."""
    if status.quiet_minutes is None:
        return False
    start, end = status.quiet_minutes
    return start <= minute < end if start <= end else minute >= start or minute < end


def marks_on(info: RunInfo) -> bool:
    """Whether status marks may show at all."""
    return info.status_allowed and info.policy.status.enabled and info.message is not None


def state_chain(info: RunInfo, state: str, *, quiet: bool) -> Chain | None:
    """The mark of ``state``; None: it is not presented."""
    status = info.policy.status
    if not marks_on(info) or (status.presentation is not None and state not in status.presentation):
        return None
    if quiet and state not in _ENDS:
        return None
    return status.emoji.get(state) or (status.emoji.get("tool") if state not in STATES else None) or None


def ack_chain(info: RunInfo, *, quiet: bool, delayed: bool) -> Chain | None:
    """The ack's mark, where one is allowed. ``delayed``: it is too early for any mark."""
    if not info.ack_allowed or info.message is None or quiet or delayed:
        return None
    emoji = info.policy.status.emoji
    return emoji.get("ack") or emoji.get("queued") or None


def resting_chain(info: RunInfo, end: str, *, quiet: bool, delayed: bool) -> Chain | None:
    """What stays on the message of a run that has ended so, once nothing is held any more."""
    settle = info.policy.status.settle
    if end not in _ENDS or settle == "clear":
        return None
    if settle == "keep" and not delayed and (chain := state_chain(info, end, quiet=quiet)):
        return chain
    return ack_chain(info, quiet=quiet, delayed=delayed)
