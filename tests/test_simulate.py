"""The whole tree on virtual time: the main path, every way to end, and faults of every actor."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from actors.scenario import ScenarioError, read
from actors.simulate import run
from tests.scenes import SANDBOX, assert_nothing_left, calls, event, outcomes, play, received, typing

pytestmark = pytest.mark.filterwarnings("error")

WHOLE_RUN = (
    received(0),
    event(100, "thinking"),
    event(2_000, "tool", name="web_search", call="k"),
    event(5_000, "tool_end", call="k"),
    event(6_000, "done"),
)


def test_a_run_shows_ack_phases_and_result_and_leaves_nothing_behind() -> None:
    result = play(*WHOLE_RUN)
    assert calls(result) == [
        (0, "set", "👀"),
        (800, "set", "🤔"),
        (2_700, "set", "⚡"),
        (6_000, "set", "👍"),
        (7_500, "clear", None),
    ]
    assert typing(result) == [(0, "start"), (3_000, "start"), (6_000, "start"), (6_000, "stop")]
    assert outcomes(result) == {"m1": ("done", None)}
    assert_nothing_left(result)


def test_where_marks_are_added_and_removed_the_new_one_comes_first() -> None:
    result = play(*WHOLE_RUN, config={"accounts": {"a": {"platform": "sandbox", "reactions": "add_remove"}}})
    assert calls(result)[1:3] == [(800, "set", "🤔"), (800, "remove", "👀")]
    assert calls(result)[-1] == (7_500, "remove", "👍")
    assert_nothing_left(result)


ENDS: list[tuple[list[list[Any]], tuple[str, str | None], str | None]] = [
    ([event(5_000, "done", reason="sent")], ("done", "sent"), "👍"),
    ([event(5_000, "error", reason="x")], ("error", "x"), "😱"),
    ([event(5_000, "cancelled")], ("cancelled", None), None),
    ([event(5_000, "silent")], ("silent", None), None),
    ([event(5_000, "clear")], ("cancelled", "cleared"), None),
    ([event(5_000, "sent", final=True)], ("done", "final_sent"), "👍"),
    ([[5_000, "@client_lost"]], ("error", "lease_expired"), "😱"),
    ([[5_000, "@shutdown"]], ("cancelled", "shutdown"), None),
    ([[5_000, "@kill_restart", {"down_ms": 1_000}]], ("cancelled", "recovered"), None),
]


@pytest.mark.parametrize(("ends", "outcome", "mark"), ENDS, ids=lambda value: str(value)[:40])
@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
@pytest.mark.parametrize("latency_ms", [0, 150])
def test_every_way_to_end_leaves_nothing_behind(
    ends: list[list[Any]], outcome: tuple[str, str | None], mark: str | None, reactions: str, latency_ms: int
) -> None:
    config = {"accounts": {"a": {"platform": "sandbox", "reactions": reactions, "typing_lifetime_ms": 0}}}
    result = play(received(0), event(100, "thinking"), *ends, config=config, latency_ms=latency_ms)
    assert outcomes(result) == {"m1": outcome}
    after = [emoji for t_ms, op, emoji in calls(result) if t_ms >= 5_000 and op == "set" and emoji not in ("🥱", "😨")]
    assert after == ([mark] if mark else [])
    assert_nothing_left(result)


@pytest.mark.parametrize("actor", ["reaction", "typing", "platform_io", "router", "conversation"])
@pytest.mark.parametrize("at_ms", [50, 1_000, 3_500, 5_500])
@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
def test_an_actor_that_fails_in_mid_run_is_restarted_and_others_notice_nothing(
    actor: str, at_ms: int, reactions: str
) -> None:
    config = {"accounts": {"a": {"platform": "sandbox", "reactions": reactions, "typing_lifetime_ms": 0}}}
    other = [
        [t_ms, {**what, "conversation": "other"}, client]
        for t_ms, what, client in (*WHOLE_RUN[:-1], event(30_000, "done"))
    ]
    quiet = play(*other, config=config)
    crash = [at_ms, "@crash", {"actor": actor, "account": "a", "conversation": "c"}]
    if actor in ("platform_io", "router"):
        crash = [at_ms, "@crash", {"actor": actor, "conversation": "c"}]
    result = play(*WHOLE_RUN[:-1], *other, crash, event(5_800, "progress"), event(30_000, "done"), config=config)
    assert result.counters["restarts"] == 1
    assert {row["outcome"] for row in result.runs} == {"done"}
    assert (30_000, "set", "👍") in calls(result)
    if actor in ("reaction", "typing", "conversation"):
        assert calls(result, "m1", "other") == calls(quiet, "m1", "other")
        assert typing(result, "other") == typing(quiet, "other")
    assert_nothing_left(result)


@pytest.mark.parametrize("actor", ["reaction", "typing", "router"])
def test_a_run_whose_terminal_crashed_its_actor_ends_as_an_error(actor: str) -> None:
    result = play(*WHOLE_RUN[:-1], [5_500, "@crash", {"actor": actor, "on": "done"}], event(6_000, "done"))
    assert outcomes(result) == {"m1": ("error", "crashed_terminal")}
    assert_nothing_left(result)


def test_a_spent_restart_budget_ends_the_runs_of_that_conversation_only() -> None:
    steps = [event(3_000 + n, "tool", name=f"t{n}") for n in range(8)]
    other = [[t_ms, {**what, "conversation": "other"}, client] for t_ms, what, client in WHOLE_RUN]
    crash = [2_500, "@crash", {"actor": "reaction", "conversation": "c", "times": 4}]
    result = play(received(0), event(100, "thinking"), crash, *steps, *other)
    assert {(row["conversation"], row["outcome"], row["reason"]) for row in result.runs} == {
        ("c", "error", "gave_up"),
        ("other", "done", None),
    }
    assert result.counters["parked"] == 1
    assert_nothing_left(result)


def test_a_conversation_that_cannot_be_kept_up_at_all_is_cleaned_up_without_it() -> None:
    steps = [event(3_000 + n * 10, "tool", name=f"t{n}") for n in range(30)]
    crash = [2_500, "@crash", {"actor": "reaction", "conversation": "c", "times": 1_000}]
    result = play(received(0), event(100, "thinking"), crash, *steps)
    assert outcomes(result) == {"m1": ("error", "gave_up")}
    assert result.to_json()["shown"] == {}
    assert result.to_json()["typing"] == []


def test_a_client_that_comes_back_within_the_lease_keeps_its_run() -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@client_lost"], [20_000, "@connect"], event(60_000, "done")
    )
    assert outcomes(result) == {"m1": ("done", None)}
    assert result.counters["leases_expired"] == 0


def test_after_a_crash_of_the_process_a_client_takes_its_run_over_and_asks_no_gate_again() -> None:
    result = play(
        received(0),
        event(100, "thinking"),
        [5_000, "@kill_restart", {"down_ms": 2_000}],
        received(8_000, id="again"),
        event(30_000, "tool", name="bash"),
        event(39_000, "done"),
    )
    assert outcomes(result) == {"m1": ("done", None)}
    after = [(t_ms, emoji) for t_ms, _, emoji in calls(result) if t_ms > 5_000]
    assert after == [(18_000, "🥱"), (30_700, "👨\u200d💻"), (39_000, "👍"), (40_500, None)]
    assert [reply.result for _, _, reply in result.replies] == ["duplicate"]  # type: ignore[attr-defined]
    assert_nothing_left(result)


@pytest.mark.parametrize(
    ("marks", "outcome", "emoji"),
    [("clear", "cancelled", None), ("error", "error", "😱"), ("leave", "cancelled", "🤔")],
)
def test_a_run_that_nobody_takes_over_ends_as_the_configuration_says(
    marks: str, outcome: str, emoji: str | None
) -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@kill_restart", {"down_ms": 0}],
        config={"recovery": {"marks": marks}}, until_ms=21_000,
    )  # fmt: skip
    assert outcomes(result) == {"m1": (outcome, "recovered")}
    assert result.to_json()["shown"] == ({"a/c/m1": [emoji]} if emoji else {})


@pytest.mark.parametrize("reactions", ["replace", "add_remove"])
def test_a_mark_whose_call_was_under_way_when_the_process_died_is_taken_back(reactions: str) -> None:
    result = play(
        received(0),
        [50, "@kill_restart", {"down_ms": 1_000}],
        config={"accounts": {"a": {"platform": "sandbox", "reactions": reactions}}},
        latency_ms=100,
    )
    assert_nothing_left(result)


def test_nothing_of_a_finished_run_is_revived_by_a_crash_of_the_process() -> None:
    result = play(
        *WHOLE_RUN,
        [6_100, "@kill_restart", {"down_ms": 100}],
        event(7_000, "thinking", id="1"),
        received(7_100, id="2"),
    )
    assert [reply.result for _, _, reply in result.replies] == ["late", "duplicate"]  # type: ignore[attr-defined]
    assert_nothing_left(result)


def test_shutdown_takes_back_marks_and_typing_refuses_what_comes_and_exits_clean() -> None:
    result = play(
        received(0), event(100, "thinking"), [3_000, "@shutdown"], [3_010, "@shutdown"], received(3_050, "m2", id="2"),
        latency_ms=400,
        config={"accounts": {"a": {"platform": "sandbox", "typing_lifetime_ms": 0}}},
    )  # fmt: skip
    assert [code for _, code in result.exits] == [0]
    assert calls(result, "m2") == []
    assert [reply.code for _, _, reply in result.replies] == ["limit"]  # type: ignore[attr-defined]
    assert_nothing_left(result)


def test_shutdown_takes_a_final_mark_away_that_is_still_held() -> None:
    result = play(received(0), event(100, "done"), [500, "@shutdown"])
    assert result.exits == [(500, 0)]
    assert_nothing_left(result)


def test_a_shutdown_that_cannot_clean_up_ends_within_its_budget_and_says_so() -> None:
    result = play(
        received(0), event(100, "thinking"), [3_000, "@shutdown"],
        rules=[{"from_ms": 3_000, "outcome": "transient"}], config={"shutdown": {"budget_ms": 2_000}},
    )  # fmt: skip
    assert result.exits == [(5_000, 1)]


def test_shutdown_can_leave_what_shows_for_a_successor() -> None:
    result = play(
        received(0),
        event(100, "thinking"),
        [3_000, "@shutdown", {"leave": True}],
        [3_500, "@boot"],
        event(4_000, "done"),
    )
    assert outcomes(result) == {"m1": ("done", None)}
    assert_nothing_left(result)


def test_an_idle_conversation_is_put_away_and_comes_back_with_the_next_message() -> None:
    before = play(*WHOLE_RUN, until_ms=60_000)
    assert before.actors == 3
    result = play(*WHOLE_RUN, received(100_000, "m2"), event(101_000, "done", "m2"))
    assert (100_000, "set", "👀") in calls(result, "m2")
    assert_nothing_left(result)


def test_a_message_at_the_very_moment_of_passivation_is_not_lost() -> None:
    for t_ms in range(67_498, 67_504):
        result = play(*WHOLE_RUN, received(t_ms, "m2"), event(t_ms + 1_000, "done", "m2"))
        assert outcomes(result)["m2"] == ("done", None)
        assert (t_ms, "set", "👀") in calls(result, "m2")
        assert result.dead_letters == 0


def test_a_run_keeps_the_settings_it_opened_with_when_the_configuration_is_reloaded() -> None:
    new = SANDBOX | {"status": {"emoji": {"tool": "⚙"}}}
    result = play(
        received(0), event(100, "thinking"), [1_000, "@reload", {"config": new}], event(2_000, "tool", name="x"),
        event(5_000, "done"), received(10_000, "m2"), event(10_100, "tool", "m2", name="x"), event(15_000, "done", "m2"),
    )  # fmt: skip
    assert (2_700, "set", "🔥") in calls(result)
    assert (10_800, "set", "⚙") in calls(result, "m2")
    assert_nothing_left(result)


def test_an_account_that_a_reload_removes_leaves_nothing_behind() -> None:
    two = {"accounts": {"a": {"platform": "sandbox"}, "b": {"platform": "sandbox"}}}
    result = play(
        received(0, account="a"), received(0, account="b"), [1_000, "@reload", {"config": SANDBOX}],
        event(2_000, "thinking", account="b", id="1"), event(3_000, "done", account="a"), config=two,
    )  # fmt: skip
    assert {row["account"]: (row["outcome"], row["reason"]) for row in result.runs} == {
        "a": ("done", None),
        "b": ("cancelled", "account removed"),
    }
    assert [reply.code for _, _, reply in result.replies] == ["unknown_account"]  # type: ignore[attr-defined]
    assert_nothing_left(result)


def test_a_refused_reload_changes_nothing_and_is_counted() -> None:
    bad = SANDBOX | {"status": {"debounce_ms": -1}}
    result = play(received(0), [1_000, "@reload", {"config": bad}], event(2_000, "thinking"), event(5_000, "done"))
    assert result.counters["reloads_refused"] == 1
    assert (2_700, "set", "🤔") in calls(result)


def test_a_suspended_host_fires_nothing_twice_and_shows_no_stall_for_the_time_it_slept() -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@suspend", {"ms": 28_800_000}], event(28_806_000, "alive"),
        event(28_810_000, "done"), until_ms=28_900_000,
    )  # fmt: skip
    awake = [t_ms for t_ms, _ in typing(result) if 28_805_000 <= t_ms < 28_806_000]
    assert len(awake) <= 1
    assert [emoji for _, _, emoji in calls(result)] == ["👀", "🤔", "👍", None]
    assert_nothing_left(result)


def test_a_jump_of_the_wall_clock_moves_no_timer() -> None:
    jumped = play(*WHOLE_RUN, [1_000, "@clock_jump", {"ms": -86_400_000}], [2_500, "@clock_jump", {"ms": 10**9}])
    assert calls(jumped) == calls(play(*WHOLE_RUN))


def test_a_rate_limit_blocks_as_long_as_the_platform_says_and_the_newest_state_goes_out_once() -> None:
    result = play(
        received(0), event(100, "thinking"), event(2_000, "tool", name="bash"), event(4_000, "done"),
        rules=[{"op": "set", "nth": [1], "outcome": "rate_limited", "retry_after_ms": 9_000}],
    )  # fmt: skip
    assert calls(result) == [(0, "set", "👀"), (800, "set", "🤔"), (9_800, "set", "👍"), (11_300, "clear", None)]
    assert_nothing_left(result)


def test_a_revoked_token_stops_the_account_at_once_and_a_new_one_revives_it() -> None:
    new = {"accounts": {"a": {"platform": "sandbox", "base_url": "http://127.0.0.1:1"}}}
    result = play(
        received(0), event(100, "thinking"), received(500, "m2"), event(600, "thinking", "m2"),
        event(50_000, "done"), event(50_000, "done", "m2"), [60_000, "@reload", {"config": new}],
        rules=[{"outcome": "auth", "until_ms": 55_000}],
    )  # fmt: skip
    assert len([call for call in result.world.calls if call.t_ms < 60_000]) <= 2
    assert result.counters["accounts_stopped"] == 1
    assert (60_000, "set", "👍") in calls(result)


def test_two_runs_in_one_chat_share_one_cadence_and_the_last_one_ends_it() -> None:
    result = play(
        received(0), event(100, "thinking"), received(1_000, "m2"), event(1_100, "thinking", "m2"), event(9_000, "done"),
        event(15_000, "done", "m2"),
    )  # fmt: skip
    assert [t_ms for t_ms, op in typing(result) if op == "start"] == [0, 3_000, 6_000, 9_000, 12_000, 15_000]
    assert typing(result)[-1] == (15_000, "stop")


def test_the_newest_run_of_a_message_keeps_its_marks_whatever_the_older_one_does() -> None:
    result = play(
        received(0), event(100, "thinking"), received(2_000, run="r2"), event(2_100, "tool", run="r2", name="bash"),
        event(4_000, "tool", name="web_search"), event(6_000, "done"), event(9_000, "done", run="r2"),
    )  # fmt: skip
    marks = [emoji for t_ms, _, emoji in calls(result) if t_ms >= 2_000]
    assert marks == ["👀", "👨\u200d💻", "👍", None]
    assert outcomes(result) == {"m1": ("done", None), "r2": ("done", None)}
    assert_nothing_left(result)


def test_a_platform_without_reactions_gets_no_calls_for_marks_and_its_runs_end_as_told() -> None:
    result = play(*WHOLE_RUN, config={"accounts": {"a": {"platform": "sandbox", "reactions": "none"}}})
    assert calls(result) == []
    assert outcomes(result) == {"m1": ("done", None)}
    assert typing(result)[-1] == (6_000, "stop")
    assert_nothing_left(result)


def test_a_moved_run_types_in_its_new_thread_and_keeps_its_marks() -> None:
    result = play(received(0), event(100, "thinking"), event(4_000, "moved", thread="t2"), event(8_000, "done"))
    places = [(c.t_ms, c.command.thread) for c in result.world.calls if c.command.op.value == "typing_start"]
    assert places == [(0, None), (3_000, None), (4_000, "t2"), (7_000, "t2")]
    assert_nothing_left(result)


def test_the_stop_of_a_moved_run_follows_its_post_that_was_going_out_at_the_end() -> None:
    result = play(
        received(0), event(1_000, "moved", thread="t2"), event(4_000, "sending"), event(4_100, "done"),
        event(4_300, "sent", final=True),
        config={"accounts": {"a": {"platform": "sandbox", "typing_lifetime_ms": 0}}},
    )  # fmt: skip
    stops = [(c.t_ms, c.command.thread) for c in result.world.calls if c.command.op.value == "typing_stop"]
    assert stops == [(1_000, None), (4_300, "t2")]
    assert_nothing_left(result)


def test_a_topic_that_is_gone_ends_typing_there_and_nowhere_else() -> None:
    gone = {
        "status": 400,
        "body": {"ok": False, "error_code": 400, "description": "Bad Request: message thread not found"},
    }
    result = play(
        received(0, "1", thread="7", forum=True), received(0, "2", thread="8", forum=True), event(20_000, "done", "1"),
        event(20_000, "done", "2"), received(30_000, "3", thread="9", forum=True), event(31_000, "done", "3"),
        config={"accounts": {"a": {"platform": "telegram", "limits": {"conversation": {"per_ms": 1_000, "count": 40}}}}},
        rules=[{"op": "typing_start", "thread": "7", "from_ms": 3_000, "response": gone}],
    )  # fmt: skip
    starts = [(c.t_ms, c.command.thread) for c in result.world.calls if c.command.op.value == "typing_start"]
    assert [t_ms for t_ms, thread in starts if thread == "7"] == [0, 4_000]
    assert [t_ms for t_ms, thread in starts if thread == "8"] == [0, 4_000, 8_000, 12_000, 16_000, 20_000]
    assert (30_000, "9") in starts
    assert_nothing_left(result)


def test_a_thread_that_is_gone_ends_typing_there_and_in_no_other_thread() -> None:
    result = play(
        received(0, thread="t1"), received(0, "m2", thread="t2"), event(100, "thinking"), event(100, "thinking", "m2"),
        event(9_000, "done"), event(9_000, "done", "m2"),
        rules=[{"op": "typing_start", "thread": "t1", "outcome": "gone"}],
    )  # fmt: skip
    starts = [(c.t_ms, c.command.thread) for c in result.world.calls if c.command.op.value == "typing_start"]
    assert starts == [(0, "t1"), (0, "t2"), (3_000, "t2"), (6_000, "t2"), (9_000, "t2")]
    assert_nothing_left(result)


def test_an_account_that_a_reload_removes_and_another_adds_works_again() -> None:
    other = {"accounts": {"b": {"platform": "sandbox"}}}
    result = play(
        received(0, account="a"), [1_000, "@reload", {"config": other}], [3_000, "@reload", {"config": SANDBOX}],
        received(5_000, "m2", account="a"), event(6_000, "done", "m2", account="a"),
    )  # fmt: skip
    assert outcomes(result) == {"m1": ("cancelled", "account removed"), "m2": ("done", None)}
    assert (6_000, "set", "👍") in calls(result, "m2")
    assert_nothing_left(result)


@pytest.mark.parametrize(
    "end", [[5_000, "@shutdown"], [5_000, "@reload", {"config": {"accounts": {"b": {"platform": "sandbox"}}}}]]
)
def test_bare_scopes_end_with_the_process_and_with_their_account(end: list[Any]) -> None:
    start = [0, {"type": "typing_start", "conversation": "c", "scope": "s"}]
    result = play(start, end, config={"accounts": {"a": {"platform": "sandbox", "typing_lifetime_ms": 0}}})
    assert typing(result)[-1] == (5_000, "stop")
    assert [code for _, code in result.exits] == ([0] if end[1] == "@shutdown" else [])
    assert_nothing_left(result)


def test_a_process_whose_drain_takes_time_ends_then_and_can_be_started_again() -> None:
    result = play(
        received(0), [5_000, "@shutdown"], [6_000, "@boot"], received(7_000, "m2"), event(9_000, "done", "m2"),
        latency_ms=400,
    )  # fmt: skip
    ((ended_ms, code),) = result.exits
    assert (5_400 <= ended_ms <= 5_420, code) == (True, 0)
    assert outcomes(result)["m2"] == ("done", None)
    assert_nothing_left(result)


def test_a_process_that_has_exited_makes_no_call_any_more() -> None:
    result = play(received(0), [5_000, "@shutdown"], rules=[{"from_ms": 4_000, "outcome": "transient"}])
    ((ended_ms, code),) = result.exits
    assert (ended_ms, code) == (15_000, 1)
    assert max(call.t_ms for call in result.world.calls) <= ended_ms
    assert result.actors == 0


def test_a_run_whose_first_event_was_lost_in_a_crash_still_shows_its_end() -> None:
    result = play([0, "@crash", {"actor": "reaction", "on": "received"}], received(10), event(8_000, "done"))
    assert calls(result) == [(8_000, "set", "👍"), (9_500, "clear", None)]
    assert_nothing_left(result)


def test_a_router_that_keeps_failing_does_not_stall_the_others_for_long() -> None:
    steps = [[n * 10, {**received(0)[1], "conversation": f"c{n}"}] for n in range(15)]
    result = play([0, "@crash", {"actor": "router", "times": 10}], *steps, until_ms=20_000)
    assert min(call.t_ms for call in result.world.calls) < 3_000


def test_a_second_merge_takes_the_place_of_the_first() -> None:
    result = play(
        received(0, "x"), received(0, "y"), received(0), event(100, "merged", into="x"), event(200, "merged", into="y"),
        event(1_000, "done", "x"), event(5_000, "error", "y", reason="r"),
    )  # fmt: skip
    assert outcomes(result) == {"x": ("done", None), "y": ("error", "r"), "m1": ("error", "r")}


def test_a_run_without_marks_has_nothing_to_restore_after_its_end() -> None:
    result = play(received(0, mentioned=False), event(10, "done"), event(20_000, "restore", id="1"))
    assert [reply.result for _, _, reply in result.replies] == ["late"]  # type: ignore[attr-defined]


def test_the_age_of_a_run_goes_on_in_the_next_process() -> None:
    result = play(
        received(0), event(100, "thinking"), [5_000, "@kill_restart", {"down_ms": 2_000}], received(9_000),
        config={"lease": {"run_max_ms": 60_000}},
    )  # fmt: skip
    (row,) = result.runs
    assert (row["reason"], row["opened_ms"], row["ended_ms"]) == ("run_max", 0, 60_000)


def test_a_clear_that_the_router_failed_on_still_ends_its_run() -> None:
    result = play(received(0), [4_000, "@crash", {"actor": "router", "on": "clear"}], event(7_000, "clear", id="1"))
    assert outcomes(result) == {"m1": ("error", "crashed_terminal")}
    assert_nothing_left(result)


def test_a_bare_scope_types_without_a_run_and_ends_with_its_ttl() -> None:
    start = [0, {"type": "typing_start", "conversation": "c", "scope": "s", "id": "1"}]
    result = play(start, until_ms=200_000)
    assert typing(result)[-1] == (60_000, "stop")
    assert_nothing_left(result)


def test_a_repeated_id_is_acknowledged_and_not_applied() -> None:
    result = play(received(0, id="1"), event(100, "done", id="2"), event(200, "thinking", id="2"))
    assert [reply.result for _, _, reply in result.replies] == ["applied", "applied", "duplicate"]  # type: ignore[attr-defined]


def test_a_post_that_is_told_of_twice_ends_the_indicator_once() -> None:
    told = [received(0), event(1_000, "sent", id="2"), event(2_000, "sent", id="2")]
    account = {"platform": "sandbox", "post_clears_typing": True}
    result = play(*told, config={"accounts": {"a": account}}, until_ms=2_500)
    assert typing(result) == [(0, "start"), (1_000, "start")]
    assert result.to_json()["typing"] == ["a/c"]


def test_a_merge_into_nothing_is_rejected_with_field_and_reason() -> None:
    result = play(received(0), event(10, "merged", into="nobody"), event(100, "done"))
    (_, _, reply), *_ = result.replies
    assert (reply.code, reply.field) == ("bad_value", "into")  # type: ignore[attr-defined]


def test_several_accounts_must_be_named_and_unknown_ones_are_refused() -> None:
    config = {"accounts": {"a": {"platform": "sandbox"}, "b": {"platform": "telegram"}}}
    result = play(received(0), received(10, account="x"), received(20, account="b"), config=config, until_ms=1_000)
    assert [(reply.code, reply.field) for _, _, reply in result.replies] == [  # type: ignore[attr-defined]
        ("missing_field", "account"),
        ("unknown_account", "account"),
    ]
    assert [call.account for call in result.world.calls] == ["b", "b"]


def test_a_subscriber_is_told_each_change_once() -> None:
    result = play([0, {"type": "subscribe"}, "watcher"], *WHOLE_RUN)
    states = [
        (t_ms, reply.phase, reply.shown, reply.typing, reply.mark)  # type: ignore[attr-defined]
        for t_ms, client, reply in result.replies
        if client == "watcher"
    ]
    assert len(states) == len(set(map(str, states)))
    assert (800, "thinking", ["🤔"], True, None) in states
    assert states[-1] == (7_500, "done", [], False, "👍")


def test_an_adapter_can_be_tried_with_raw_answers() -> None:
    raw = {
        "status": 429,
        "body": {"ok": False, "error_code": 429, "description": "x", "parameters": {"retry_after": 7}},
    }
    result = play(
        received(0), event(5_000, "done"),
        config={"accounts": {"a": {"platform": "telegram"}}}, rules=[{"op": "set", "nth": [0], "response": raw}],
    )  # fmt: skip
    assert result.world.calls[0].outcome == "rate_limited"
    assert calls(result)[1] == (7_000, "set", "👍")


BAD: list[tuple[Any, str]] = [
    ({"evnts": []}, "evnts"),
    ({"until_ms": -1}, "until_ms"),
    ({"until_ms": 1.5}, "until_ms"),
    ({"events": {}}, "events"),
    ({"events": [[0]]}, "events[0]"),
    ({"events": [[-1, {"type": "ping"}]]}, "events[0][0]"),
    ({"events": [[0, "@dance"]]}, "events[0][1]"),
    ({"events": [[0, "@crash", {"actor": "nobody"}]]}, "events[0][1].actor"),
    ({"events": [[0, "@crash"]]}, "events[0][1].actor"),
    ({"events": [[0, "@crash", {"actor": "router", "on": "thinkin"}]]}, "events[0][1].on"),
    ({"events": [[0, "@crash", {"actor": "router", "times": 0}]]}, "events[0][1].times"),
    ({"events": [[0, "@crash", {"actor": "router", "account": 5}]]}, "events[0][1].account"),
    ({"events": [[0, "@crash", {"actor": "router", "account": "b"}]]}, "events[0][1].account"),
    ({"platform": {"rules": [{"outcome": "hang"}, {"account": "b", "outcome": "hang"}]}}, "platform.rules[1].account"),
    ({"events": [[0, "@crash", {"actor": ["router"]}]]}, "events[0][1].actor"),
    ({"events": [[0, "@shutdown", {"leave": "yes"}]]}, "events[0][1].leave"),
    ({"events": [[0, "@reload"]]}, "events[0][1].config"),
    ({"events": [[0, "@suspend"]]}, "events[0][1].ms"),
    ({"events": [[0, "@kill_restart", {"up_ms": 1}]]}, "events[0][1].up_ms"),
    (
        {"events": [[0, {"type": "@repeat", "count": 1, "every_ms": 1, "events": [[0, 7]]}]]},
        "events[0][1].events[0][1]",
    ),
    ({"events": [[0, 7]]}, "events[0][1]"),
    ({"platform": {"rules": [{"op": "dance"}]}}, "platform.rules[0].op"),
    ({"platform": {"rules": [{"outcome": "fine"}]}}, "platform.rules[0].outcome"),
    ({"config": {"accounts": {"a": {"platform": "fax"}}}}, "config"),
]


@pytest.mark.parametrize(("tree", "where"), BAD, ids=[where for _, where in BAD])
def test_a_scenario_that_does_not_fit_is_refused_with_its_place(tree: Any, where: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tree)
    assert caught.value.where == where


@pytest.mark.parametrize("innermost", [[], [{"type": "ping"}], ["@connect"]], ids=["nothing", "event", "step"])
def test_repeats_within_repeats_multiply_and_are_refused_when_that_is_too_much(innermost: list[Any]) -> None:
    events = innermost
    for _ in range(6):
        events = [[0, "@repeat", {"count": 1_000, "every_ms": 0, "events": events}]]
    with pytest.raises(ScenarioError, match="more than 1000000 steps"):
        read({"events": events})


def test_an_account_that_only_a_reload_brings_can_be_named() -> None:
    config = {"accounts": {"b": {"platform": "sandbox"}}}
    crash = [9, "@crash", {"actor": "platform_io", "account": "b"}]
    read({"events": [[0, "@reload", {"config": config}], crash], "platform": {"rules": [{"account": "b"}]}})


def test_a_repeat_sends_its_events_for_many_conversations() -> None:
    events = [
        {"type": "received", "conversation": "c{n}", "message": "m{n}", "direct": False, "mentioned": True},
        [1_000, {"type": "done", "conversation": "c{n}", "message": "m{n}"}],
    ]
    result = run({"events": [[0, {"type": "@repeat", "count": 50, "every_ms": 10, "events": events}]]})
    assert {row["run"]: row["ended_ms"] for row in result.runs} == {f"m{n}": 1_000 + 10 * n for n in range(50)}
    assert_nothing_left(result)


def test_the_same_scenario_gives_the_same_result() -> None:
    steps = (*WHOLE_RUN, [3_000, "@crash", {"actor": "reaction"}])
    assert play(*steps).to_json() == play(*steps).to_json()


def test_the_timeline_can_be_read() -> None:
    text = play(*WHOLE_RUN, [1_000, "@crash", {"actor": "router"}]).timeline()
    assert "       0.000      show 👀 on m1" in text
    assert "       6.000  = run m1: done" in text
    assert "@crash actor=router" in text
    assert text.endswith("1 runs ended, 8 calls, 0 marks showing at the end")


def test_a_session_may_hold_so_many_open_runs_and_no_more() -> None:
    result = play(
        event(0, "thinking", "m1"),
        event(0, "thinking", "m2"),
        event(10, "thinking", "m3", id="refused"),
        event(20, "progress", "m2", id="goes on"),
        event(30, "thinking", "m3", client="c2", id="another session"),
        event(40, "done", "m1"),
        event(50, "thinking", "m3", id="refused"),
        event(60, "thinking", "m4", id="room again"),
        config={"server": {"limits": {"open_runs": 2}}},
    )
    replies = [msgspec.to_builtins(reply) for _, _, reply in result.replies]
    answers = [(reply["id"], reply.get("result") or reply["code"]) for reply in replies]
    assert answers == [
        ("refused", "limit"),
        ("goes on", "applied"),
        ("another session", "applied"),
        ("refused", "applied"),
        ("room again", "limit"),
    ]
