"""Each file of examples/scenarios shows what its folder's README says."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

from actors.simulate import Result, run
from tests.scenes import assert_nothing_left, calls, outcomes, typing

FOLDER = Path(__file__).parents[1] / "examples" / "scenarios"


def show(name: str) -> Result:
    return run(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


def when(result: Result, op: str = "set") -> list[tuple[int, str | None]]:
    """(t_ms, message) of every call of that kind."""
    return [(call.t_ms, call.command.message) for call in result.world.calls if call.command.op.value == op]


def test_a_superseded_call_is_never_sent() -> None:
    result = show("superseded")
    assert [(t_ms, emoji) for t_ms, _, emoji in calls(result, "m")] == [
        (0, "👀"), (1_000, "✍"), (5_000, "👍"), (7_500, None),
    ]  # fmt: skip
    assert_nothing_left(result)


def test_ends_go_before_acks_before_phases_before_typing() -> None:
    result = show("order")
    first = [(call.t_ms, call.command.op.value, call.command.message) for call in result.world.calls][1:7]
    assert first == [
        (1_000, "set", "o"), (2_000, "set", "m3"), (3_000, "clear", "o"), (4_000, "set", "b"), (5_000, "set", "m2"),
        (6_000, "typing_start", None),
    ]  # fmt: skip


def test_a_loud_conversation_does_not_starve_a_quiet_one() -> None:
    assert when(show("turns"))[:4] == [(0, "l0"), (1_000, "l1"), (2_000, "q"), (3_000, "l2")]


def test_hung_calls_leave_connections_for_what_matters_more() -> None:
    result = show("hung-calls")
    assert [message for t_ms, message in when(result) if t_ms == 0] == ["h0", "h1"]
    assert (500, "f") in when(result)


def test_a_limit_of_the_account_holds_everything_back() -> None:
    result = show("limit-account")
    assert [call.t_ms for call in result.world.calls if 0 < call.t_ms < 5_000] == []
    assert calls(result, "o", "other")[0] == (5_000, "set", "👍")
    assert_nothing_left(result)


def test_a_limit_of_one_conversation_holds_back_only_that_one() -> None:
    result = show("limit-conversation")
    assert [t_ms for t_ms, _, _ in calls(result, "m") + calls(result, None) if 0 < t_ms < 5_000] == []
    assert [t_ms for t_ms, _, _ in calls(result, "o", "other")] == [1_000, 3_000, 4_500]
    assert_nothing_left(result)


def test_a_limit_of_a_route_leaves_typing_alone() -> None:
    result = show("limit-route")
    assert [t_ms for t_ms, _, _ in calls(result, "m") if 0 < t_ms < 5_000] == []
    assert (3_000, "start") in typing(result)
    assert_nothing_left(result)


def test_after_a_block_the_backlog_leaves_one_by_one() -> None:
    times = [t_ms for t_ms, _ in when(show("backlog-spread"))][1:]
    assert times[0] == 5_000
    assert {after - before for before, after in pairwise(times)} == {300}


def test_a_limit_slows_its_scope_for_a_while() -> None:
    times = [t_ms for t_ms, _ in when(show("learning"))]
    soon, later = times[2:8], times[8:]
    assert {after - before for before, after in pairwise(soon)} == {400}
    assert {after - before for before, after in pairwise(later)} == {200}


def test_typing_is_held_back_while_the_reply_goes_out() -> None:
    result = show("sending")
    assert typing(result) == [(0, "start"), (3_000, "start"), (6_000, "start"), (9_000, "start"), (9_500, "stop")]
    assert_nothing_left(result)


def test_the_bots_own_share_is_not_spent_on_signs() -> None:
    assert [t_ms for t_ms, _ in when(show("reserve"))] == [0, 2_000, 4_000, 6_000, 8_000, 10_000]


def test_an_account_pauses_long_before_its_refusals_get_it_banned() -> None:
    result = show("refusals")
    assert result.counters["runs_opened"] == 6_000
    assert len(result.world.calls) == 5_000


def test_refused_credentials_stop_the_account_until_a_reload_brings_others() -> None:
    result = show("credentials")
    assert [t_ms for t_ms, _ in when(result)][:3] == [0, 10_000, 10_000]
    assert result.counters["accounts_stopped"] == 1
    assert_nothing_left(result)


def test_a_closed_circuit_is_probed_and_heals() -> None:
    times = [t_ms for t_ms, _ in when(show("circuit"))]
    assert times[:2] == [0, 700_000]
    assert len(times) == 7


def test_an_unknown_outcome_is_followed_by_the_same_call_once() -> None:
    result = show("unknown-outcome")
    assert calls(result, "m")[:3] == [(0, "set", "👀"), (10_000, "set", "👀"), (20_000, "set", "👍")]
    keys = [call.command.idempotency_key for call in result.world.calls[:2]]
    assert keys[0] == keys[1] != ""
    assert_nothing_left(result)


def test_after_a_kill_a_run_is_taken_over_by_its_client_or_torn_down() -> None:
    result = show("adopted")
    assert outcomes(result) == {"m": ("done", None), "g": ("cancelled", "recovered")}
    assert [op for _, op, _ in calls(result, "m")] == ["set"] * 5 + ["clear"]
    assert calls(result, "g", "gone") == [(0, "set", "👀"), (18_000, "clear", None)]
    assert_nothing_left(result)


def test_a_removal_that_was_not_delivered_is_taken_up_by_the_next_process() -> None:
    result = show("left-undone")
    cleared = [call for call in result.world.calls if call.command.op.value == "clear"]
    assert cleared[-1].t_ms > 60_000
    assert_nothing_left(result)


def test_an_emoji_that_is_refused_falls_back_and_is_not_tried_again() -> None:
    result = show("fallback")
    assert [emoji for _, _, emoji in calls(result, "m")] == ["👀", "🦄", "🤔", "⚡", "🤔", "👍", None]
    assert_nothing_left(result)


def test_typing_goes_to_the_thread_of_its_run() -> None:
    result = show("threads")
    typed = {(call.command.thread, call.t_ms) for call in result.world.calls if call.command.message is None}
    assert typed == {("t1", 0), (None, 500), ("t1", 8_000), (None, 8_500)}
    assert_nothing_left(result)


def test_every_scenario_is_listed_and_has_its_test() -> None:
    names = {path.stem for path in FOLDER.glob("*.json")}
    assert set(re.findall(r"^\| \[(\S+)\]", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)) == names
    assert set(re.findall(r'show\("(\S+)"\)', Path(__file__).read_text("utf-8"))) == names
