"""What an operator is told of the answers of an account's platform: each complaint once an hour, not once a call."""

from __future__ import annotations

import logging
from typing import Final

from actors.presence.breaker import KINDS, Kind
from actors.presence.terms import Command, Outcome, OutcomeKind

AGAIN_MS: Final = 3_600_000
LONG_WAIT_MS: Final = 60_000
"""Shorter limits are everyday."""
_LENGTH_MAX: Final = 500
_NAMES: Final = {Kind.MARKS: "marks", Kind.TYPING: "typing calls"}

log = logging.getLogger("livesign")


class Complaints:
    """Of one account. ``detail`` of outcomes holds no secret."""

    def __init__(self, account: str) -> None:
        self._account = account
        self._said_ms: dict[tuple[str, str], int] = {}

    def hear(self, command: Command, outcome: Outcome, now_ms: int) -> None:
        """An answer has come."""
        what = _complaint(outcome)
        if what is None:
            return
        kind = KINDS[command.op]
        said_ms = self._said_ms.get((kind, outcome.kind))
        if said_ms is not None and now_ms - said_ms < AGAIN_MS:
            return
        self._said_ms[kind, outcome.kind] = now_ms
        where = "everywhere" if outcome.scope == "account" else f"in {command.conversation}"
        text = " ".join(f"{_NAMES[kind]} {what} {where}: {outcome.detail or outcome.kind.value}".split())
        log.warning("account %s: %s (told once an hour)", self._account, text[:_LENGTH_MAX])

    def stopped(self, outcome: Outcome) -> None:
        """The account is stopped by this answer."""
        log.error(
            "account %s: the platform refuses its credentials (%s): nothing is sent for it any more. "
            "Correct them, then send SIGHUP or start again.", self._account, outcome.detail or "401",
        )  # fmt: skip


def _complaint(outcome: Outcome) -> str | None:
    """What an answer says of its kind of call, if it is worth telling."""
    wait_ms = outcome.retry_after_ms or 0
    if outcome.kind is OutcomeKind.FORBIDDEN and outcome.scope != "message":
        return "are refused"
    if outcome.kind is OutcomeKind.BAD_REQUEST:
        return "are not understood"
    if outcome.kind is OutcomeKind.RATE_LIMITED and wait_ms >= LONG_WAIT_MS:
        return f"have to wait {wait_ms // 1_000} s"
    return None
