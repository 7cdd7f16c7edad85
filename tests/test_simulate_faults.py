"""Faults that random worlds have found, each in its smallest form (``python -m tests.simulation`` finds more)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.simulate import Result
from tests.scenes import assert_nothing_left, calls, event, outcomes, play, received, typing

pytestmark = pytest.mark.filterwarnings("error")

LASTING = {"accounts": {"a": {"platform": "sandbox", "reactions": "add_remove", "typing_lifetime_ms": 0}}}


def test_a_done_that_waits_for_a_child_after_the_final_post_does_not_spin() -> None:
    result = play(
        received(0), event(100, "child", child="h"), event(200, "sending", final=True),
        event(300, "sent", final=True), event(400, "done"), until_ms=800_000,
    )  # fmt: skip
    assert outcomes(result) == {"m1": ("done", None)}
    assert result.runs[0]["ended_ms"] == 600_100
    assert_nothing_left(result)


@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
def test_where_the_final_mark_is_forbidden_the_mark_before_it_goes(reactions: str) -> None:
    result = play(
        received(0), received(1_000, "m2"), event(2_000, "done"), event(2_000, "done", "m2"),
        config={"accounts": {"a": {"platform": "sandbox", "reactions": reactions}}},
        rules=[{"message": "m2", "outcome": "forbidden"}],
    )  # fmt: skip
    assert outcomes(result)["m1"] == ("done", "not_shown")
    assert_nothing_left(result)


@pytest.mark.parametrize("kill_ms", [900, 10_850, 10_950, 20_850, 21_500])
def test_a_mark_in_doubt_is_taken_back_by_the_next_process(kill_ms: int) -> None:
    result = play(
        received(0), event(100, "thinking"), [kill_ms, "@kill_restart"], config=LASTING,
        rules=[{"op": "set", "emoji": "🤔", "outcome": "hang", "applied": True}],
    )  # fmt: skip
    assert_nothing_left(result)


def test_of_several_marks_that_a_process_has_left_none_is_forgotten() -> None:
    result = play(
        received(0), event(100, "thinking"), event(2_000, "done"), [2_050, "@kill_restart"], config=LASTING,
        rules=[{"op": "remove", "until_ms": 2_500, "outcome": "transient"}],
    )  # fmt: skip
    assert_nothing_left(result)


@pytest.mark.parametrize("times", [1, 2, 5, 9])
@pytest.mark.parametrize("at_ms", [50, 700, 1_900, 2_600])
def test_a_failing_io_actor_never_calls_twice_and_loses_no_answer(at_ms: int, times: int) -> None:
    result = play(
        received(0), event(100, "thinking"), [at_ms, "@crash", {"actor": "platform_io", "times": times}],
        event(30_000, "done"), latency_ms=1_500, config=LASTING,
    )  # fmt: skip
    assert result.counters["restarts"] == times
    assert_nothing_left(result)


def test_a_wish_that_was_lost_in_a_crash_does_not_come_back_over_a_newer_one() -> None:
    crash = [750, "@crash", {"actor": "platform_io", "times": 2}]
    result = play(received(0), event(100, "thinking"), crash, event(810, "done"))
    assert [emoji for _, _, emoji in calls(result)] == ["👀", "👍", None]
    assert_nothing_left(result)


def test_the_next_run_on_a_message_that_is_being_cleaned_up_leaves_nothing_behind() -> None:
    result = play(
        received(0), event(600, "done"), [1_200, "@kill_restart"], received(1_250, run="r2"),
        event(9_000, "error", run="r2"), latency_ms=400, config=LASTING,
    )  # fmt: skip
    assert outcomes(result) == {"m1": ("done", None), "r2": ("error", None)}
    assert_nothing_left(result)


def test_an_event_that_the_router_failed_on_may_be_sent_again_under_its_id() -> None:
    crash = [50, "@crash", {"actor": "router", "on": "tool"}]
    tool = event(100, "tool", id="a", name="bash")
    result = play(received(0), crash, tool, [2_000, *tool[1:]], event(9_000, "done"))
    answers = [msgspec.to_builtins(reply) for _, _, reply in result.replies]
    assert [answer.get("code") or answer["result"] for answer in answers] == ["limit", "applied"]
    assert (2_700, "set", "👨\u200d💻") in calls(result)


def test_a_client_whose_loss_the_router_failed_on_is_lost_all_the_same() -> None:
    result = play(received(0), event(100, "thinking"), [1_000, "@crash", {"actor": "router"}], [1_001, "@client_lost"])
    assert outcomes(result) == {"m1": ("error", "lease_expired")}
    assert_nothing_left(result)


@pytest.mark.parametrize("hold_ms", [1_500, 8_000], ids=["it was idle", "it was busy"])
def test_a_conversation_about_whose_rest_the_router_did_not_hear_still_works(hold_ms: int) -> None:
    result = play(
        received(0), event(1_000, "done"), [5_000, "@crash", {"actor": "router"}],
        received(20_000, "m2"), event(25_000, "done", "m2"),
        config={"conversation": {"idle_ms": 5_000}, "status": {"done_hold_ms": hold_ms}},
    )  # fmt: skip
    assert result.counters["restarts"] == 1
    assert result.to_json()["actors"] == 0
    assert (20_000, "set", "👀") in calls(result, "m2")
    assert outcomes(result)["m2"] == ("done", None)
    assert_nothing_left(result)


def test_typing_of_a_run_that_had_moved_is_ended_after_a_crash_of_the_process() -> None:
    result = play(
        received(0), event(1_000, "moved", thread="t2"), [2_000, "@kill_restart"], received(5_000, id="again"),
        event(8_000, "done"), config=LASTING,
    )  # fmt: skip
    assert ("typing_stop", "t2") in [(call.command.op.value, call.command.thread) for call in result.world.calls]
    assert_nothing_left(result)


def test_a_run_that_was_taken_over_and_moves_before_it_works_types_where_it_moved() -> None:
    result = play(
        received(0), [2_000, "@shutdown", {"leave": True}], [2_500, "@boot"], event(4_000, "moved", thread="t1"),
        event(5_000, "thinking"), event(9_000, "done"), config=LASTING,
    )  # fmt: skip
    typed = [(call.t_ms, call.command.thread) for call in result.world.calls if call.command.op.value == "typing_start"]
    assert typed == [(0, None), (5_000, "t1")]
    assert_nothing_left(result)


def test_typing_that_ends_by_itself_leaves_no_row_after_a_crash_of_the_process() -> None:
    config = {"accounts": {"a": {"platform": "sandbox", "typing_stop": False, "typing_lifetime_ms": 5_000}}}
    result = play(received(0), event(100, "thinking"), [500, "@kill_restart"], config=config)
    assert typing(result) == [(0, "start")]
    assert_nothing_left(result)


def test_the_end_of_a_run_that_was_lost_with_its_actors_is_told_again() -> None:
    tools: list[list[Any]] = [event(3_000 + n, "tool", name=f"t{n}") for n in range(8)]
    crash = [2_500, "@crash", {"actor": "reaction", "conversation": "c", "times": 4}]
    result = play(received(0), received(10, "m2"), event(100, "thinking"), crash, *tools, event(3_050, "done"))
    assert outcomes(result) == {"m1": ("done", None), "m2": ("error", "gave_up")}
    assert_nothing_left(result)


def test_an_older_run_without_marks_does_not_keep_those_of_a_newer_one_over_a_crash_of_the_process() -> None:
    result = play(
        event(0, "received", direct=True, mentioned=False), received(1_000, run="r2"), event(2_000, "done", run="r2"),
        [2_500, "@kill_restart"],
    )  # fmt: skip
    assert outcomes(result) == {"r2": ("done", None), "m1": ("cancelled", "recovered")}
    assert_nothing_left(result)


@pytest.mark.parametrize("times", [1, 3])
def test_a_run_that_is_left_as_it_is_leaves_no_actor_behind(times: int) -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@kill_restart"],
        [10_000, "@crash", {"actor": "reaction", "times": times}], config={"recovery": {"marks": "leave"}},
    )  # fmt: skip
    assert outcomes(result) == {"m1": ("cancelled", "recovered")}
    assert result.to_json()["actors"] == 0


def answers(result: Result) -> list[tuple[str, str]]:
    """(id, result or code) of every reply, in order."""
    rows = [(reply.id, getattr(reply, "result", None) or reply.code) for _, _, reply in result.replies]  # type: ignore[attr-defined]
    return rows


@pytest.mark.parametrize("kind", ["thinking", "done", "typing_start"])
def test_a_repeated_event_is_answered_behind_the_first_and_never_instead_of_it(kind: str) -> None:
    again = event(1_000, kind, id="x")
    result = play(received(0, id="0"), [500, "@crash", {"actor": "router", "on": kind}], again, again)
    assert answers(result)[:3] in (
        [("0", "applied"), ("x", "applied"), ("x", "duplicate")],
        [("0", "applied"), ("x", "limit"), ("x", "applied")],
    )


def test_an_event_that_was_refused_is_applied_when_it_comes_again_at_once() -> None:
    stray = event(100, "merged", into="m2", id="x")
    result = play(received(0), stray, received(100, "m2"), stray, event(5_000, "done", "m2"))
    assert answers(result) == [("x", "bad_value"), ("x", "applied")]
    assert outcomes(result) == {"m1": ("done", None), "m2": ("done", None)}


def test_a_stop_of_typing_that_had_to_wait_until_the_indicator_was_over_is_not_made() -> None:
    config = {
        "accounts": {"a": {"platform": "sandbox", "typing_lifetime_ms": 5_000}},
        "typing": {"keepalive_ms": 4_000},
    }
    result = play(
        received(0), event(100, "thinking"), received(4_900, "m2"), event(5_000, "done"),
        event(5_000, "cancelled", "m2"), config=config,
        rules=[{"op": "set", "from_ms": 4_900, "until_ms": 5_900, "outcome": "rate_limited", "scope": "account",
                "retry_after_ms": 20_000}],
    )  # fmt: skip
    assert typing(result) == [(0, "start"), (4_000, "start")]
    assert_nothing_left(result)


@pytest.mark.parametrize(("kind", "stalls_at_ms"), [("received", 18_000), ("alive", 18_000), ("progress", 18_000)])
def test_a_run_that_was_taken_over_stalls_again_if_nothing_goes_on(kind: str, stalls_at_ms: int) -> None:
    back = received(8_000) if kind == "received" else event(8_000, kind)
    result = play(received(0), event(100, "thinking"), [5_000, "@kill_restart"], back, event(40_000, "done"))
    assert calls(result)[2] == (stalls_at_ms, "set", "🥱")


@pytest.mark.parametrize("waits", [event(100, "waiting", on="user"), event(100, "waiting", on="slot")])
def test_a_run_that_waits_does_not_stall_after_it_was_taken_over(waits: list[Any]) -> None:
    result = play(received(0), waits, [5_000, "@kill_restart"], received(8_000), event(60_000, "done"))
    assert [emoji for _, _, emoji in calls(result)] == ["👀", "👍", None]


def test_a_run_that_nobody_has_taken_over_yet_shows_no_stall() -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@kill_restart"], received(19_000), event(25_000, "done"),
        config={"lease": {"adopt_ms": 20_000}},
    )  # fmt: skip
    assert [emoji for _, _, emoji in calls(result)] == ["👀", "🤔", "👍", None]


def test_actors_and_timers_are_counted_and_not_worked_out() -> None:
    result = play(received(0), event(100, "thinking"), until_ms=5_000)
    assert (result.actors, result.timers) == (3, 3)
    assert_nothing_left(play(received(0), event(100, "thinking"), event(200, "done")))


@pytest.mark.parametrize(
    ("gated", "shown"), [(True, ["👀", "🥱", "👀", "👍", None]), (False, ["🥱", None, "👍", None])]
)
def test_the_stall_that_an_earlier_process_has_left_is_over_with_the_next_progress(
    gated: bool, shown: list[str | None]
) -> None:
    opens = [received(0)] if gated else []
    result = play(
        *opens, event(100, "thinking"), [15_000, "@kill_restart"], event(16_000, "progress"), event(20_000, "done"),
        config={"status": {"presentation": "ends"}},
    )  # fmt: skip
    assert [emoji for _, _, emoji in calls(result)] == shown


@pytest.mark.parametrize(("kind", "typed"), [("typing_stop", [0]), ("typing_start", [0, 4_000, 7_000])])
def test_an_explicit_start_or_stop_counts_also_as_the_first_event_after_a_crash_of_the_process(
    kind: str, typed: list[int]
) -> None:
    result = play(
        received(0), [2_000, "@kill_restart"], event(4_000, kind), event(6_000, "thinking"), event(9_000, "done")
    )
    assert [t_ms for t_ms, what in typing(result) if what == "start"] == typed
    assert_nothing_left(result)


@pytest.mark.parametrize("end", ["cancelled", "done"])
def test_where_a_conversation_forbids_marks_one_whose_add_was_lost_is_still_taken_away(end: str) -> None:
    result = play(
        received(0), received(21_500, "m2"), event(30_000, end), event(30_000, "cancelled", "m2"),
        config={"accounts": {"a": {"platform": "matrix"}}},
        rules=[{"op": "set", "message": "m1", "until_ms": 25_000, "outcome": "hang", "applied": True},
               {"op": "set", "message": "m2", "outcome": "forbidden"}],
        until_ms=300_000,
    )  # fmt: skip
    assert_nothing_left(result)


def test_a_configuration_that_names_an_account_again_cleans_up_what_an_earlier_process_has_left_there() -> None:
    both = {"a": {"platform": "sandbox"}, "b": {"platform": "sandbox", "typing_lifetime_ms": 0}}
    result = play(
        received(0, account="b", id="1"), [4_000, "@kill_restart", {"down_ms": 2_000}],
        [5_000, "@reload", {"config": {"accounts": {"a": both["a"]}}}], [10_000, "@reload", {"config": {"accounts": both}}],
        received(12_000, account="b", id="2"), event(20_000, "done", account="b"), config={"accounts": both},
    )  # fmt: skip
    assert answers(result) == [("1", "applied"), ("2", "duplicate")]
    assert outcomes(result) == {"m1": ("done", None)}
    assert_nothing_left(result)


def test_what_the_failing_disk_could_not_keep_does_not_disturb_the_next_process() -> None:
    result = play(
        received(0, id="1"), [1_000, "@crash", {"actor": "ledger"}], event(2_000, "thinking", id="2"),
        received(3_000, "m2", id="3"), [5_000, "@kill_restart", {"down_ms": 500}], event(8_000, "done", id="4"),
        event(8_000, "done", "m2", id="5"),
    )  # fmt: skip
    assert answers(result) == [("1", "applied"), ("2", "applied"), ("3", "applied"), ("4", "applied"), ("5", "unknown")]
    assert result.to_json()["shown"] == {"a/c/m2": ["👀"]}
