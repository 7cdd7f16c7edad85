"""The end of a run reaches the machines that do not know of it yet, whatever fails around it, and only those."""

from __future__ import annotations

from itertools import pairwise

from actors.router import ENDS_AT_A_TIME
from bench.stage import SilentPort, Stage, config
from protocol import events
from tests.scenes import assert_nothing_left, calls, event, outcomes, play, received, typing


def test_an_end_that_was_lost_with_the_conversation_is_told_to_the_next_actors() -> None:
    fails = [2_000, "@crash", {"actor": "typing", "on": "cancelled", "times": 1}]
    fails_too = [2_000, "@crash", {"actor": "conversation", "times": 1}]
    result = play(
        received(0), event(1_000, "thinking"), fails, fails_too, event(3_000, "cancelled"),
        config={"conversation": {"idle_ms": 50}},
    )  # fmt: skip
    assert typing(result)[-1][1] == "stop"
    assert_nothing_left(result)


def test_what_typing_failed_on_shows_no_final_mark_a_second_time() -> None:
    fails = [2_000, "@crash", {"actor": "typing", "on": "error", "times": 4}]
    result = play(received(0), fails, event(3_000, "error"), config={"status": {"error_hold_ms": 50}})
    assert [emoji for _, op, emoji in calls(result) if op == "set"] == ["👀", "😱"]
    assert outcomes(result) == {"m1": ("error", "crashed_terminal")}
    assert_nothing_left(result)


def test_a_conversation_that_was_given_up_while_the_router_failed_shows_nothing_again() -> None:
    """Its end and one more event wait in front of the word that it was given up, and the router fails on the latter."""
    fails = [650, "@crash", {"actor": "router", "on": "alive", "times": 5}]
    fails_too = [690, "@crash", {"actor": "reaction", "on": "answer", "times": 4}]
    result = play(
        received(0), event(1, "thinking"), fails, fails_too, *(event(ms, "alive") for ms in (700, 750, 830, 850)),
        event(850, "done"), event(851, "alive"),
        config={"supervision": {"intensity": 1, "period_ms": 20_000}}, latency_ms=120,
    )  # fmt: skip
    assert result.counters["parked"] >= 1
    assert outcomes(result) == {"m1": ("done", None)}
    assert_nothing_left(result)


def test_a_shutdown_of_very_many_runs_lets_others_have_their_turn_in_between() -> None:
    stage = Stage(config(), SilentPort())
    for number in range(1_000):
        stage.send(events.Received(conversation=f"c{number}", message="m", direct=False, mentioned=True))
    stage.runtime.run_until_idle()
    runs = stage.application.parts.router.runs.open
    assert len(runs) == 1_000
    seen: list[int] = []
    stage.runtime.scheduler.tap = lambda ref, message: seen.append(len(runs))
    stage.application.shut_down(60_000, lambda clean: None)
    stage.runtime.run_until(stage.now_ms + 1_000)
    assert seen[-1] == 0
    assert max(before - after for before, after in pairwise(seen)) <= ENDS_AT_A_TIME
    stage.close()
