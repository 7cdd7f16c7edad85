"""What the next process knows of the one before, played on virtual time: limits, calls of unknown outcome, ends."""

from __future__ import annotations

from typing import Any

import pytest

from actors.presence.breaker import Refusals
from tests.scenes import SANDBOX, assert_nothing_left, calls, event, play, received, typing

KILL = "@kill_restart"


def limited(scope: str | None, retry_after_ms: int | None = 30_000, **fields: Any) -> dict[str, Any]:
    """The first call that fits is answered so."""
    return {"nth": [0], "outcome": "rate_limited", "retry_after_ms": retry_after_ms, "scope": scope, **fields}


def times(result: Any) -> list[int]:
    return [call.t_ms for call in result.world.calls]


# --- limits ------------------------------------------------------------------------------------------------------------

QUIET = {"typing": {"mode": "never"}}
GROUP = {"direct": False, "mentioned": True}


def plain(t_ms: int, message: str = "m1") -> list[list[Any]]:
    """A run that is done after five seconds."""
    return [received(t_ms, message), event(t_ms + 5_000, "done", message)]


@pytest.mark.parametrize("down_ms", [0, 700, 20_000])
def test_a_blocked_account_stays_blocked_over_a_kill(down_ms: int) -> None:
    rows = [row for t_ms in range(22_000, 30_000, 2_000) for row in plain(t_ms, f"m{t_ms}")]
    result = play(
        received(1_000), [1_500, {"type": KILL, "down_ms": down_ms}], *rows,
        rules=[limited("account")], config=QUIET, until_ms=300_000,
    )  # fmt: skip
    assert times(result)[:2] == [1_000, 31_000]
    assert_nothing_left(result)


def test_a_block_that_was_over_while_nothing_ran_holds_up_nobody() -> None:
    down = [500, {"type": KILL, "down_ms": 60_000}]
    result = play(received(0), down, *plain(61_000, "m2"), rules=[limited("account")], config=QUIET)
    assert times(result)[:2] == [0, 61_000]


def test_a_blocked_conversation_holds_up_no_other_one_after_a_kill() -> None:
    other = {"type": "received", "conversation": "d", "message": "x", "direct": False, "mentioned": True}
    result = play(
        received(0), [500, KILL], received(1_000, "m2"), [1_000, other], rules=[limited("conversation")], config=QUIET
    )
    at_ms = {name: [call.t_ms for call in result.world.calls if call.command.conversation == name] for name in "cd"}
    assert at_ms["d"][0] == 1_000
    assert at_ms["c"][:2] == [0, 30_000]


def test_a_blocked_route_holds_up_no_other_kind_of_call_after_a_kill() -> None:
    result = play(received(0), [500, KILL], received(1_000, "m2"), rules=[limited("route", op="set")])
    assert calls(result, "m2")[0] == (30_000, "set", "👀")
    assert [t_ms for t_ms, kind in typing(result) if kind == "start"][:3] == [0, 1_000, 4_000]


def test_the_distance_that_a_limit_taught_is_kept_after_a_kill_and_forgotten_in_time() -> None:
    def starts(restart: bool, from_ms: int) -> list[int]:
        steps = [[1_200, KILL]] if restart else []
        rows = [received(from_ms, f"n{number}") for number in range(4)]
        result = play(received(0), *steps, *rows, rules=[limited("account", 1_000)], config=QUIET, until_ms=400_000)
        return [call.t_ms for call in result.world.calls if call.t_ms >= from_ms][:4]

    for from_ms in (2_000, 40_000, 300_000):
        assert starts(restart=True, from_ms=from_ms) == starts(restart=False, from_ms=from_ms)
    assert starts(restart=True, from_ms=2_000) == [2_000, 2_300, 2_600, 2_900]
    assert starts(restart=True, from_ms=40_000) == [40_000, 40_150, 40_300, 40_450]
    assert starts(restart=True, from_ms=300_000) == [300_000] * 4


@pytest.mark.parametrize("jump_ms", [-86_400_000, 3_600_000])
def test_a_wall_clock_that_is_set_back_or_ahead_blocks_no_account_for_longer(jump_ms: int) -> None:
    result = play(
        received(0), [100, {"type": "@clock_jump", "ms": jump_ms}], [200, KILL], *plain(20_000, "m2"),
        rules=[limited("account")], config=QUIET, until_ms=300_000,
    )  # fmt: skip
    assert times(result)[1] <= 30_200
    assert_nothing_left(result)


# --- refused calls ------------------------------------------------------------------------------------------------------


def in_chat(t_ms: int, number: int) -> list[Any]:
    event = {"type": "received", "conversation": f"c{number}", "message": "m", "direct": False, "mentioned": True}
    return [t_ms, event]


def crash_loop(until_ms: int, jump_ms: int = 0, **rule: Any) -> list[int]:
    """When calls were made by a process that is killed every five seconds, on a platform that refuses everything."""
    steps: list[list[Any]] = []
    for number, t_ms in enumerate(range(0, until_ms, 5_000)):
        steps += [in_chat(t_ms + 100, number), [t_ms + 4_000, KILL]]
        if jump_ms:
            steps.append([t_ms + 4_100, {"type": "@clock_jump", "ms": jump_ms}])
    return times(play(*steps, rules=[{"op": "*", **rule}], until_ms=until_ms))


@pytest.mark.parametrize(("outcome", "jump_ms"), [("forbidden", 0), ("auth", 0), ("forbidden", -60_000)])
def test_a_crash_loop_does_not_run_a_bot_into_the_ban_for_refused_calls(
    monkeypatch: pytest.MonkeyPatch, outcome: str, jump_ms: int
) -> None:
    monkeypatch.setattr("actors.application.Refusals", lambda: Refusals(ceiling=50))
    made = crash_loop(750_000, jump_ms, outcome=outcome)
    most = max(sum(1 for each in made if at_ms <= each < at_ms + 600_000) for at_ms in made)
    assert 25 <= most <= 40


def test_refusals_are_forgotten_in_time_by_a_process_that_did_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.application.Refusals", lambda: Refusals(ceiling=10))
    chats = [in_chat(10_000 * number, number) for number in range(8)]
    late = [in_chat(t_ms, t_ms) for t_ms in (500_000, 780_000)]
    result = play(
        *chats, [90_000, KILL], *late, rules=[{"op": "*", "outcome": "forbidden", "until_ms": 100_000}],
        config=QUIET, until_ms=900_000,
    )  # fmt: skip
    assert next(t_ms for t_ms in times(result) if t_ms > 90_000) >= 610_000
    assert any(call.command.conversation == "c780000" and call.t_ms == 780_000 for call in result.world.calls)


def test_accounts_that_share_a_count_do_not_add_it_up_twice() -> None:
    before, after = Refusals(ceiling=100), Refusals(ceiling=100)
    for now_ms in range(0, 300_000, 10_000):
        before.count(now_ms)
    for age_ms, now_ms in ((0, 5_000), (0, 5_000), (20_000, 25_000)):
        after.inherit(before.counted(300_000), age_ms, now_ms)
    assert after.total(25_000) == 30
    assert after.total(25_000 + 400_000) < 30
    assert after.total(25_000 + 620_000) == 0


# --- budgets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["account", "conversation", "route"])
@pytest.mark.parametrize("down_ms", [0, 300])
def test_a_process_that_comes_back_at_once_spends_no_budget_a_second_time(scope: str, down_ms: int) -> None:
    limit = {"per_ms": 10_000, "count": 20, "burst": 10}
    steps: list[list[Any]] = []
    for number, t_ms in enumerate(range(0, 60_000, 2_000)):
        steps += [received(t_ms + 5 * each, f"m{number}-{each}") for each in range(6)]
        steps += [[t_ms + 1_000, {"type": KILL, "down_ms": down_ms}]]
    config = {"limits": {scope: limit}, "lease": {"adopt_ms": 500}, "typing": {"mode": "never"}}
    result = play(*steps, config=config, until_ms=600_000)
    made = times(result)
    assert len(made) > 30
    for first, last in zip(made, made[limit["count"] :], strict=False):
        assert last - first >= limit["per_ms"]
    assert_nothing_left(result)


def test_budgets_that_have_had_the_time_to_fill_are_full_after_a_restart() -> None:
    limit = {"per_ms": 10_000, "count": 10, "burst": 5}
    config = {"limits": {"conversation": limit}, **QUIET}

    def first_calls(at_ms: int, conversation: str) -> list[int]:
        rows = [
            [at_ms, {"type": "received", "conversation": conversation, "message": f"n{number}", **GROUP}]
            for number in range(3)
        ]
        result = play(*plain(0), [8_000, {"type": "@shutdown", "leave": True}], [9_000, "@boot"], *rows, config=config)
        return [call.t_ms - at_ms for call in result.world.calls if (call.command.message or "").startswith("n")][:3]

    assert first_calls(9_000, "c") > [0, 0, 0]
    assert first_calls(9_000, "d") == [0, 0, 0]
    assert first_calls(30_000, "c") == [0, 0, 0]


# --- ends ---------------------------------------------------------------------------------------------------------------

PLATFORMS = (
    "sandbox",
    "discord",
    "matrix",
)  # a mark replaces the one before, is added, can be removed by its handle only
ENDS = {
    ("done", "keep"): ["👍"], ("error", "keep"): ["😱"], ("done", "restore"): ["👀"], ("error", "restore"): ["👀"],
    ("done", "clear"): [], ("error", "clear"): [], ("cancelled", "keep"): [], ("silent", "restore"): [],
}  # fmt: skip


def on(platform: str, **settings: Any) -> dict[str, Any]:
    status = {"presentation": "full", **settings.pop("status", {})}
    return {"accounts": {"a": {"platform": platform}}, "typing": {"mode": "never"}, "status": status, **settings}


def assert_shows(result: Any, *emojis: str) -> None:
    """These marks of ours are on the message at last, and nothing is left to do."""
    plain = result.to_json()
    assert [emoji.replace("\ufe0f", "") for shown in plain["shown"].values() for emoji in shown] == list(emojis)
    assert (plain["ledger_rows"], plain["open_runs"], plain["violations"]) == (0, 0, [])


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kill_ms", [5_000, 5_100, 5_500, 6_200, 7_900])
@pytest.mark.parametrize(("end", "settle"), ENDS)
def test_what_an_ended_run_leaves_on_its_message_is_shown_by_the_next_process(
    end: str, settle: str, kill_ms: int, platform: str
) -> None:
    result = play(
        received(0), event(100, "thinking"), event(5_000, end), [kill_ms, KILL], received(9_000, "m1"),
        config=on(platform, status={"settle": settle}), latency_ms=400,
    )  # fmt: skip
    assert_shows(result, *ENDS[end, settle])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_settings_of_the_run_decide_what_the_next_process_shows(platform: str) -> None:
    new = {**SANDBOX, **on(platform, status={"settle": "clear", "emoji": {"done": "🔥"}})}
    result = play(
        received(0), event(100, "thinking"), [2_000, {"type": "@reload", "config": new}], event(5_000, "done"),
        [5_100, KILL], config=on(platform, status={"settle": "keep"}), latency_ms=400,
    )  # fmt: skip
    assert_shows(result, "👍")


@pytest.mark.parametrize(("event_kind", "emojis"), [("clear", []), ("restore", ["👀"])])
def test_a_client_that_has_changed_its_mind_after_the_end_is_heard_by_the_next_process(
    event_kind: str, emojis: list[str]
) -> None:
    result = play(
        received(0), event(100, "thinking"), event(5_000, "done"), event(5_300, event_kind), [5_400, KILL],
        config=on("sandbox", status={"settle": "keep"}), latency_ms=2_000,
    )  # fmt: skip
    assert_shows(result, *emojis)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("outcome", ["invalid_reaction", "bad_request"])
def test_where_the_next_process_cannot_show_the_end_no_older_mark_stays(outcome: str, platform: str) -> None:
    rules = [{"op": "set", "from_ms": 5_000, "outcome": outcome}]
    result = play(
        received(0), event(100, "thinking"), event(5_000, "done"), [5_100, KILL],
        config=on(platform, status={"settle": "keep"}), latency_ms=400, rules=rules,
    )  # fmt: skip
    assert_shows(result)


def test_an_end_waits_over_restarts_until_the_account_may_call_again() -> None:
    result = play(
        received(0), event(100, "thinking"), event(5_000, "done"), [8_000, KILL], [20_000, KILL], [60_000, KILL],
        config=on("sandbox", status={"settle": "keep"}),
        rules=[{"op": "*", "from_ms": 4_000, "until_ms": 50_000, "outcome": "auth"}],
    )  # fmt: skip
    assert_shows(result, "👍")


@pytest.mark.parametrize("opened_ms", [5_050, 7_000])
def test_the_next_run_on_the_message_decides_what_stays_there(opened_ms: int) -> None:
    result = play(
        received(0), event(100, "thinking"), event(5_000, "done"), received(opened_ms, run="r2"), [5_100, KILL],
        event(8_000, "error", run="r2"), config=on("sandbox", status={"settle": "keep"}), latency_ms=400,
    )  # fmt: skip
    assert_shows(result, "😱")


def test_an_end_that_shows_already_is_left_alone() -> None:
    result = play(
        received(0), event(100, "thinking"), event(5_000, "done"), [8_000, KILL], received(20_000, "m2"),
        event(22_000, "silent", "m2"), config=on("sandbox", status={"settle": "keep"}),
    )  # fmt: skip
    assert [call for call in calls(result) if call[0] > 6_000] == []
    assert_shows(result, "👍")


# --- calls whose end nobody knows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("then", ["nobody comes", "the client comes back"])
def test_a_call_without_an_answer_is_made_once_more_under_its_key(platform: str, applied: bool, then: str) -> None:
    back = [event(8_000, "thinking"), event(12_000, "done")] if then == "the client comes back" else []
    result = play(
        received(0), event(100, "thinking"), [6_000, KILL], *back, config=on(platform),
        rules=[{"op": "set", "message": "m1", "from_ms": 500, "until_ms": 6_000, "outcome": "hang", "applied": applied}],
    )  # fmt: skip
    doubted = [call.command for call in result.world.calls if call.t_ms < 6_000][-1]
    assert (doubted.op.value, bare(doubted.emoji)) == ("set", "🤔")
    again = [call.command for call in result.world.calls if call.t_ms >= 6_000 and call.command.emoji == doubted.emoji]
    sets = [command.idempotency_key for command in again if command.op.value == "set"]
    if back or platform == "matrix":  # else it is taken off without being sought
        assert sets[0] == doubted.idempotency_key
    assert all(key == doubted.idempotency_key for key in sets[:1])
    assert len(sets) == len(set(sets))
    assert_shows(result)


def bare(emoji: str | None) -> str:
    return (emoji or "").replace("\ufe0f", "")
