"""Accounts and their servers: what one server has counted, blocked and refused holds at no other one."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from actors.presence.breaker import Refusals
from actors.presence.lanes import Begin
from actors.presence.lesson import Lesson
from actors.presence.pacing import ACCOUNT, Limit
from actors.presence.terms import OK, Outcome, Rank
from tests.presence.lane_world import World, forbidding, make_lanes, refusal
from tests.scenes import SANDBOX, calls, event, play, received

HOUR_MS = 3_600_000
OLD = {"platform": "sandbox", "base_url": "http://127.0.0.1:4001"}
NEW = {"platform": "sandbox", "base_url": "http://127.0.0.1:4002"}
KILL = [3_500, "@kill_restart"]


def tree(account: dict[str, Any]) -> dict[str, Any]:
    return SANDBOX | {"accounts": {"a": account}, "status": {"settle": "keep"}}


def limited(kind: str) -> list[dict[str, Any]]:
    """The old server refuses until the reload; a limit is one for the whole account and an hour."""
    return [{"op": "set", "until_ms": 1_500, "outcome": kind, "retry_after_ms": HOUR_MS, "scope": "account"}]


@pytest.mark.parametrize("kind", ["rate_limited", "forbidden", "auth"])
@pytest.mark.parametrize("killed", [False, True])
def test_what_the_old_server_refused_is_asked_of_the_new_one(kind: str, killed: bool) -> None:
    result = play(
        received(0), [2_000, "@reload", {"config": tree(NEW)}], received(3_000, "m2"), *([KILL] if killed else []),
        received(4_000, "m2"), event(5_000, "done", "m2"), config=tree(OLD), rules=limited(kind),
    )  # fmt: skip
    assert (5_000, "set", "👍") in calls(result, "m2")


@pytest.mark.parametrize("changed", [{"limits": {"account": {"count": 9, "per_ms": 1_000}}}, {"token": "other"}])
def test_a_limit_holds_on_where_the_server_is_the_same(changed: dict[str, Any]) -> None:
    result = play(
        received(0), [2_000, "@reload", {"config": tree(OLD | changed)}], received(3_000, "m2"),
        event(5_000, "done", "m2"), config=tree(OLD), rules=limited("rate_limited"), until_ms=2 * HOUR_MS,
    )  # fmt: skip
    assert [t_ms for t_ms, _, _ in calls(result, "m2")] == [HOUR_MS]


def test_a_call_under_way_at_the_old_server_is_made_at_the_new_one_and_its_answer_teaches_nothing() -> None:
    result = play(
        received(0), [500, "@reload", {"config": tree(NEW)}], event(3_000, "done"), config=tree(OLD),
        rules=[{"op": "set", "until_ms": 400, "outcome": "rate_limited", "retry_after_ms": HOUR_MS, "scope": "account"}],
        latency_ms=1_000,
    )  # fmt: skip
    assert calls(result) == [(0, "set", "👀"), (500, "set", "👀"), (3_000, "set", "👍")]


def test_the_budgets_of_the_new_server_are_full_and_its_limits_hold() -> None:
    world = World(make_lanes({"account": Limit(HOUR_MS, 3, burst=3), "conversation": Limit(HOUR_MS, 1)}))
    for number in range(6):
        world.show(f"c{number}", "m", "👍")
    world.run(1_000)
    assert len(world.calls) == 3
    world.lanes.moved(1_000)
    world.lanes.change({"account": Limit(HOUR_MS, 2, burst=2)}, 0.0, 8, 1_000)
    world.run(2_000)
    assert len(world.calls) == 5


def test_what_was_learned_of_the_old_server_is_struck_from_the_ledger() -> None:
    lanes = make_lanes()
    world = World(lanes, lambda begin, at_ms: refusal("rate_limited", retry_after_ms=HOUR_MS, scope="account"))
    world.show("c", "m", "👍")
    world.run(100)
    assert lanes.take_learned(100)[ACCOUNT].blocked_ms == HOUR_MS - 50
    forgotten = lanes.moved(100)
    heir = Lesson(0)
    heir.inherit(forgotten[ACCOUNT], 0, 0)
    assert heir.over(0)
    assert lanes.take_learned(100) == {}


def test_circuits_dead_messages_and_refused_emojis_of_the_old_server_are_forgotten() -> None:
    answers = {"emoji": refusal("invalid_reaction"), "message": refusal("gone"), "chat": refusal("forbidden")}

    def answer(begin: Begin, at_ms: int) -> Outcome:
        return answers[begin.command.conversation] if at_ms < 1_000 else OK

    world = World(make_lanes(), answer)
    for conversation in answers:
        world.show(conversation, "m", "👍")
    world.run(1_000)
    world.lanes.moved(1_000)
    for conversation in answers:
        world.show(conversation, "m", "👍")
    world.run(2_000)
    assert set(world.lanes.shown_marks()) == {(conversation, "m") for conversation in answers}


def test_an_outage_of_the_old_server_is_none_of_the_new_one_s() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("transient") if at_ms < 1_000 else OK)
    for number in range(9):
        world.show(f"c{number}", "m", "👍", rank=Rank.TERMINAL)
    world.run(900)
    assert world.lanes.snapshot(900)["outage"]
    world.lanes.moved(900)
    assert not world.lanes.snapshot(900)["outage"]


def test_refused_calls_count_where_they_go_out() -> None:
    old, new = Refusals(10), Refusals(10)
    world = World(make_lanes(refusals=old), forbidding("c"))
    for number in range(8):
        world.show("c", f"m{number}", "👍")
    world.run(1_000)
    world.show("d", "m", "👍")
    assert world.pump() == []
    world.lanes.share(new)
    assert len(world.pump()) == 1
    assert (old.total(1_000), new.total(1_000)) == (8, 0)


def test_refused_credentials_are_told_once_however_many_calls_were_under_way(caplog: pytest.LogCaptureFixture) -> None:
    messages = [f"m{number}" for number in range(4)]
    play(
        *[received(0, message, conversation=f"c{message}") for message in messages],
        [5_000, "@reload", {"config": tree(OLD | {"token": "other"})}], received(6_000, "late"),
        config=tree(OLD | {"token": "wrong"}), rules=[{"op": "*", "outcome": "auth"}], latency_ms=500,
    )  # fmt: skip
    told = [record.getMessage() for record in caplog.records if "refuses its credentials" in record.getMessage()]
    assert len(told) == 2  # those of the first token, and those of the second


@pytest.mark.parametrize(("account", "paused"), [(NEW, False), (OLD | {"token": "other"}, True)])
def test_refused_calls_of_the_old_server_pause_nothing_at_the_new_one(
    account: dict[str, Any], paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.application.Refusals", partial(Refusals, 10))
    result = play(
        *[received(0, f"m{number}", conversation=f"c{number}") for number in range(8)],
        [2_000, "@reload", {"config": tree(account)}], received(3_000, "late"), config=tree(OLD),
        rules=[{"op": "*", "until_ms": 1_500, "outcome": "forbidden"}],
    )  # fmt: skip
    assert ((3_000, "set", "👀") not in calls(result, "late")) is paused


@pytest.mark.parametrize(("other", "paused"), [(OLD, True), (NEW, False)])
def test_accounts_on_one_server_count_their_refused_calls_together(
    other: dict[str, Any], paused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.application.Refusals", partial(Refusals, 10))
    result = play(
        *[received(0, f"m{number}", conversation=f"c{number}", account="a") for number in range(8)],
        received(3_000, "late", account="b"), config=SANDBOX | {"accounts": {"a": OLD, "b": other}},
        rules=[{"op": "*", "until_ms": 1_500, "outcome": "forbidden"}],
    )  # fmt: skip
    assert ((3_000, "set", "👀") not in calls(result, "late")) is paused
