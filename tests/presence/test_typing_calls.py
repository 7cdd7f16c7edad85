"""The calls of one target, state by state: every cell of the transition table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from actors.presence.effects import Effects
from actors.presence.terms import (
    OK,
    Cancel,
    Outcome,
    OutcomeKind,
    RunKey,
    Schedule,
    StartTyping,
    WithdrawTyping,
)
from actors.presence.typing_calls import PROBE, TICK, Answer, TypingCalls
from actors.presence.typing_wish import TypingWish
from tests.presence.typing_world import policy

LEAD = TypingWish(RunKey("a", "c", "m"), policy(probe_ms=30_000, start_failures=2), 0)
BRITTLE = TypingWish(RunKey("a", "c", "m"), policy(probe_ms=30_000, start_failures=1), 0)
CALL, WITHDRAW = "call", "withdraw"


class Bench:
    """A `TypingCalls` that is brought into a state; ``did`` is what it then wants."""

    def __init__(self) -> None:
        self.effects = Effects()
        self.calls = TypingCalls(self.effects)

    def drain(self) -> Bench:
        """Forget what it wanted so far."""
        self.effects.take()
        return self

    def answer(self, outcome: Outcome, lead: TypingWish = LEAD, *, called: bool = True) -> Answer:
        return self.calls.answered(lead, outcome, called, 1000)

    @property
    def did(self) -> list[Any]:
        words: list[Any] = []
        for effect in self.effects.take():
            match effect:
                case StartTyping():
                    words.append(CALL)
                case WithdrawTyping():
                    words.append(WITHDRAW)
                case Schedule(key, at_ms):
                    words.append((key, at_ms))
                case Cancel(key):
                    words.append(("cancel", key))
        return words

    @property
    def state(self) -> str:
        calls, timers = self.calls, set(self.effects.deadlines)
        if calls.tripped:
            assert TICK not in timers
            return "tripped"
        if calls.call is not None:
            assert calls.phasing == (TICK not in timers)
            return "calling" if calls.phasing else "on, in a call"
        return "on" if TICK in timers and not calls.phasing else "due"


def due() -> Bench:
    bench = Bench()
    bench.calls.open()
    bench.calls.proceed(True)
    return bench


def calling() -> Bench:
    bench = Bench()
    bench.calls.open()
    bench.calls.proceed(False)
    return bench


def on() -> Bench:
    bench = calling()
    bench.answer(OK)
    return bench


def ticking() -> Bench:
    bench = on()
    bench.calls.tick(LEAD, 4000, 4000)
    return bench


def tripped() -> Bench:
    bench = calling()
    bench.answer(outcome("transient"), BRITTLE)
    return bench


def outcome(kind: str) -> Outcome:
    return Outcome(OutcomeKind(kind))


STATES: dict[str, Callable[[], Bench]] = {
    "due": due, "calling": calling, "on": on, "on, in a call": ticking, "tripped": tripped,
}  # fmt: skip


def settled(step: Callable[[Bench], None]) -> Callable[[Bench], None]:
    """What the machine does: the step, then `proceed`."""

    def both(bench: Bench) -> None:
        step(bench)
        bench.calls.proceed(False)

    return both


def explicit(bench: Bench) -> None:
    bench.calls.explicit()


def posted(bench: Bench) -> None:
    bench.calls.posted()


def held(bench: Bench) -> None:
    bench.calls.proceed(True)


def tick(bench: Bench) -> None:
    bench.calls.tick(LEAD, 7000, 7000)


TABLE: list[tuple[str, str, Callable[[Bench], object], str, list[Any]]] = [
    ("held", "due", held, "due", []),
    ("held", "calling", held, "calling", [WITHDRAW]),
    ("held", "on", held, "on", []),
    ("held", "on, in a call", held, "on, in a call", [WITHDRAW]),
    ("held", "tripped", held, "tripped", []),
    ("not held", "due", lambda bench: bench.calls.proceed(False), "calling", [CALL]),
    ("not held", "calling", lambda bench: bench.calls.proceed(False), "calling", []),
    ("not held", "on", lambda bench: bench.calls.proceed(False), "on", []),
    ("explicit", "due", explicit, "due", []),
    ("explicit", "calling", settled(explicit), "calling", []),
    ("explicit", "on", settled(explicit), "calling", [("cancel", TICK), CALL]),
    ("explicit", "on, in a call", settled(explicit), "calling", [("cancel", TICK)]),
    ("explicit", "tripped", settled(explicit), "calling", [("cancel", PROBE), CALL]),
    ("posted", "due", posted, "due", []),
    ("posted", "calling", settled(posted), "calling", []),
    ("posted", "on", settled(posted), "calling", [("cancel", TICK), CALL]),
    ("posted", "on, in a call", settled(posted), "on, in a call", []),
    ("posted", "tripped", settled(posted), "tripped", []),
    ("tick", "on", tick, "on, in a call", [(TICK, 10_000), CALL]),
    ("tick", "on, in a call", tick, "on, in a call", [(TICK, 10_000)]),
    ("probe", "tripped", lambda bench: bench.calls.probe(), "tripped", [("cancel", PROBE), CALL]),
    ("ok", "calling", lambda bench: bench.answer(OK), "on", [(TICK, 4000)]),
    ("ok", "on, in a call", lambda bench: bench.answer(OK), "on", []),
    ("limited", "calling", lambda bench: bench.answer(outcome("rate_limited")), "on", [(TICK, 4000)]),
    ("limited", "on, in a call", lambda bench: bench.answer(outcome("rate_limited")), "on", []),
    ("failed", "calling", lambda bench: bench.answer(outcome("transient")), "on", [(TICK, 4000)]),
    ("failed", "on, in a call", lambda bench: bench.answer(outcome("unknown")), "on", []),
    (
        "last failure", "calling", lambda bench: bench.answer(outcome("unknown"), BRITTLE), "tripped",
        [(PROBE, 31_000)],
    ),
    (
        "last failure", "on, in a call", lambda bench: bench.answer(outcome("transient"), BRITTLE), "tripped",
        [("cancel", TICK), (PROBE, 31_000)],
    ),
    ("auth", "calling", lambda bench: bench.answer(outcome("auth")), "tripped", [(PROBE, 31_000)]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "step", "after", "does"),
    [row[1:] for row in TABLE],
    ids=[f"{row[0]}: {row[1]}" for row in TABLE],
)
def test_the_table(before: str, step: Callable[[Bench], object], after: str, does: list[Any]) -> None:
    bench = STATES[before]().drain()
    assert bench.state == before
    step(bench)
    assert bench.did == does
    assert bench.state == after


@pytest.mark.parametrize("state", ["calling", "on, in a call"])
@pytest.mark.parametrize("kind", ["gone", "forbidden", "bad_request", "invalid_reaction"])
def test_a_refusal_is_for_the_machine_to_answer(state: str, kind: str) -> None:
    bench = STATES[state]()
    assert bench.answer(outcome(kind)) is Answer.REFUSED


def test_the_machine_is_told_when_a_phase_call_has_ended() -> None:
    assert calling().answer(OK) is Answer.PHASED
    assert calling().answer(outcome("transient")) is Answer.PHASED
    assert calling().answer(outcome("transient"), BRITTLE) is Answer.PHASED
    assert ticking().answer(OK) is Answer.NOTHING


def test_a_tick_while_held_is_made_up_for() -> None:
    bench = on().drain()
    bench.calls.proceed(True)
    tick(bench)
    assert CALL not in bench.did
    bench.calls.proceed(False)
    assert CALL in bench.did
    assert bench.state == "calling"


@pytest.mark.parametrize("state", ["calling", "on, in a call"])
def test_a_withdrawn_call_is_made_up_for_only_if_it_had_not_begun(state: str) -> None:
    for called in (True, False):
        bench = STATES[state]()
        bench.calls.proceed(True)
        bench.answer(OK, called=called)
        bench.drain()
        bench.calls.proceed(False)
        assert (CALL in bench.did) is not called


def test_a_withdrawal_is_told_once() -> None:
    bench = calling()
    bench.calls.proceed(True)
    bench.calls.proceed(True)
    assert bench.did.count(WITHDRAW) == 1


def test_a_post_during_a_call_makes_one_more_call_even_if_that_one_failed() -> None:
    for first in (OK, outcome("transient"), outcome("rate_limited")):
        bench = ticking()
        bench.calls.posted()
        bench.drain().answer(first)
        assert CALL in bench.did
        assert bench.state == "calling"


def test_a_failure_that_trips_is_not_followed_by_a_call_for_a_post() -> None:
    bench = ticking()
    bench.calls.posted()
    bench.answer(outcome("transient"), BRITTLE)
    assert bench.state == "tripped"


def test_a_joined_failure_is_not_counted() -> None:
    bench = ticking()
    bench.calls.explicit()
    bench.answer(outcome("transient"), BRITTLE)
    assert bench.state == "calling"
    bench.answer(outcome("transient"), BRITTLE)
    assert bench.state == "tripped"


def test_close_forgets_everything_but_that_something_was_started() -> None:
    bench = tripped()
    assert not bench.calls.close()
    assert not bench.effects.deadlines
    bench = ticking()
    bench.calls.posted()
    assert bench.calls.close()
    assert bench.calls.started
    bench.calls.open()
    bench.calls.proceed(False)
    assert bench.state == "calling"
    bench.answer(OK)
    assert bench.state == "on"


def test_nothing_is_started_before_the_first_call() -> None:
    assert not due().calls.started
    assert calling().calls.started
