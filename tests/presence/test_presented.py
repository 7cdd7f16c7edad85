"""What a run leaves on its message, told at its end, is what the machine comes to in the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from actors.presence.policy import STATES
from actors.presence.presented import ack_chain, is_quiet, resting_chain
from protocol import events
from tests.presence.reaction_stand import CLEAR, RECEIVED, RESTORE, THINKING, TO, Stand, info

TERMINALS = {"done": events.Done, "error": events.Error, "cancelled": events.Cancelled, "silent": events.Silent}
NIGHT = (22 * 60, 6 * 60)
DAY = (6 * 60, 22 * 60)
LATER_MS = 3_600_000


@given(
    end=some.sampled_from(sorted(TERMINALS)),
    settle=some.sampled_from(["clear", "keep", "restore"]),
    presentation=some.none() | some.frozensets(some.sampled_from(STATES)),
    quiet=some.sampled_from([None, NIGHT, DAY]),
    start_delay_ms=some.sampled_from([0, 4_000, 8_000]),
    ack=some.booleans(),
    allowed=some.booleans(),
    after=some.sampled_from([None, CLEAR, RESTORE]),
    phases=some.integers(0, 1),
)
def test_the_rest_of_a_run_is_known_at_its_end(
    end: str, settle: str, presentation: frozenset[str] | None, quiet: tuple[int, int] | None, start_delay_ms: int,
    ack: bool, allowed: bool, after: events.Event | None, phases: int,
) -> None:  # fmt: skip
    status: dict[str, Any] = {
        "settle": settle, "presentation": presentation, "quiet_minutes": quiet, "start_delay_ms": start_delay_ms,
        "done_hold_ms": 10_000, "error_hold_ms": 10_000,
    }  # fmt: skip
    run = info(ack=ack, allowed=allowed, **status)
    stand = Stand(**status)
    stand.machine = type(stand.machine)(run)
    stand.minute = 12 * 60
    stand.send(RECEIVED, *[THINKING] * phases).to(6_000).send(TERMINALS[end](**TO))
    hushed, delayed = is_quiet(run.policy.status, 12 * 60), start_delay_ms > 6_000
    rest = resting_chain(run, end, quiet=hushed, delayed=delayed)
    if after is not None and not stand.finished:
        stand.to(7_000).send(after)
        rest = ack_chain(run, quiet=hushed, delayed=start_delay_ms > 7_000) if after is RESTORE else None
    stand.to(LATER_MS)
    assert stand.finished
    assert stand.machine.desired == rest


@pytest.mark.parametrize(
    ("hours", "quiet"), [(None, []), (NIGHT, [*range(6), 22, 23]), (DAY, range(6, 22)), ((60, 60), [])]
)
def test_quiet_hours_may_lie_around_midnight(hours: tuple[int, int] | None, quiet: list[int]) -> None:
    status = info(quiet_minutes=hours).policy.status
    assert [hour for hour in range(24) if is_quiet(status, hour * 60)] == list(quiet)
