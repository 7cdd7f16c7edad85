"""What a subscriber, and so a client that follows its runs, learns of a run's end: what people saw, whatever was under way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors import PresenceSupervisor
from protocol.client.core import Core
from protocol.client.outcome import RunOutcome
from protocol.events import Ack, Done, Hello, State, Thinking
from tests.scenes import event, play, received

WATCH: list[Any] = [0, {"type": "subscribe"}, "watcher"]
NO_MARKS = {"ack": {"scope": "off"}}
ENDS_ONLY = {"status": {"presentation": ["thinking"]}}

CASES: dict[str, tuple[dict[str, Any], RunOutcome]] = {
    "a phase's call is under way and then succeeds": (
        {"end": "done", "latency_ms": 900},
        RunOutcome("done", mark="👍"),
    ),
    "a phase's call is under way and the final mark is refused": (
        {"end": "done", "latency_ms": 900, "rules": [{"op": "set", "emoji": "👍", "outcome": "forbidden"}]},
        RunOutcome("done", problem="forbidden"),
    ),
    "a phase's call is under way and no mark belongs to the end": (
        {"end": "cancelled", "latency_ms": 900},
        RunOutcome("cancelled"),
    ),
    "the final mark is late": (
        {"end": "error", "rules": [{"op": "set", "emoji": "😱", "nth": [0], "outcome": "transient"}]},
        RunOutcome("error", mark="😱"),
    ),
    "the end is not presented": ({"end": "done", "config": ENDS_ONLY}, RunOutcome("done", problem="not_presented")),
    "no marks are allowed": ({"end": "done", "config": NO_MARKS}, RunOutcome("done", problem="not_allowed")),
    "nothing is wrong": ({"end": "done", "reason": "sent"}, RunOutcome("done", "sent", mark="👍")),
}


def states(end: str, reason: str | None = None, **scene: Any) -> list[State]:
    last = event(1_000, end, **({"reason": reason} if reason else {}))
    result = play(WATCH, received(0), event(100, "thinking"), last, **scene)
    assert not result.violations
    return [reply for _, client, reply in result.replies if client == "watcher" and isinstance(reply, State)]


@pytest.mark.parametrize("name", CASES)
def test_the_end_that_is_told_is_what_people_saw(name: str) -> None:
    scene, expected = CASES[name]
    told = [state for state in states(**scene) if state.final]
    assert {(state.phase, state.mark, state.problem) for state in told} == {
        (expected.outcome, expected.mark, expected.problem)
    }


@pytest.mark.parametrize("name", CASES)
def test_a_client_that_follows_its_run_says_the_same(name: str) -> None:
    scene, expected = CASES[name]
    core = Core(Hello(), 10)
    core.follow()
    run = _Handle()
    core.made(run)  # type: ignore[arg-type]
    followed = core.followed(run)  # type: ignore[arg-type]
    assert followed is not None
    for state in states(**scene):
        core.heard(state)
        if followed.outcome.final:  # nobody waits any longer than this
            break
    assert followed.outcome == expected


def test_a_phase_mark_that_shows_at_the_end_is_not_taken_for_the_final_one() -> None:
    told = states("done", latency_ms=900)
    at_the_end = [state for state in told if state.phase == "done"]
    assert [(state.shown, state.mark, state.final) for state in at_the_end] == [
        (["👀"], None, False),
        (["🤔"], None, False),
        (["👍"], None, False),
        (["👍"], "👍", True),
        ([], "👍", True),
    ]


@pytest.mark.real
def test_a_run_that_had_ended_before_says_so_instead_of_its_former_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"ledger": {"path": str(tmp_path)}, "ack": {"scope": "all"}}
    for process in range(2):  # the next one knows it from the ledger
        with PresenceSupervisor.start(config) as presence:
            with presence.run(conversation="c", message="m") as run:
                pass
            expected = RunOutcome("done", problem="ended_before") if process else RunOutcome("done", mark="👍")
            assert run.outcome() == expected
            with presence.run(conversation="c", message="m") as again:
                pass
            assert again.outcome() == RunOutcome("done", problem="ended_before")
            with presence.run(conversation="c", message="m", run=f"second-{process}") as named:
                pass
            assert named.outcome().mark == "👍"
    assert [record.message for record in caplog.records] == [
        "run m in c has ended already, so nothing more shows of it; a second run on a message needs a name: run=..."
    ] * 2


@pytest.mark.real
@pytest.mark.parametrize("direct", [True, False])
def test_who_tries_it_without_a_configuration_sees_marks_every_time(direct: bool) -> None:
    for _ in range(2):
        with PresenceSupervisor.start() as presence:
            with presence.run(conversation=1, message=817, direct=direct) as run:
                pass
            assert run.outcome() == RunOutcome("done", mark="👍")


@pytest.mark.parametrize("ended_meanwhile", [False, True])
def test_a_client_that_follows_is_told_of_a_run_that_had_ended_before(ended_meanwhile: bool) -> None:
    core = Core(Hello(), 10)
    core.follow()
    run = _Handle()
    core.made(run)  # type: ignore[arg-type]
    followed = core.followed(run)  # type: ignore[arg-type]
    assert followed is not None
    if ended_meanwhile:  # and that it did was seen
        core.heard(
            State(account="a", conversation="c", run="m1", phase="error", shown=[], typing=False, reason="run_max")
        )
    for told in (Thinking(conversation="c", message="m1"), Done(conversation="c", message="m1")):
        core.heard(Ack(id=core.add(told), result="late"))
    expected = (
        RunOutcome("error", "run_max", final=False) if ended_meanwhile else RunOutcome("done", problem="ended_before")
    )
    assert followed.outcome == expected
    again = _Handle()
    core.made(again)  # type: ignore[arg-type]
    late = core.followed(again)  # type: ignore[arg-type]
    assert late is not None
    assert late.outcome == RunOutcome(expected.outcome, expected.reason, problem="ended_before")
    assert followed.outcome == expected


class _Handle:
    conversation, name = "c", "m1"
