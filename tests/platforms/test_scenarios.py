"""Whole runs on the rows and adapters of single platforms, on virtual time: what reports from the field ask for.

The platform is scripted; raw answers go through the account's own adapter.
"""

from __future__ import annotations

from typing import Any

import pytest

from actors.simulate import Result
from tests.config_trees import account_on
from tests.scenes import assert_nothing_left, calls, event, outcomes, play, received, typing

# --- Slack ------------------------------------------------------------------------------

TS, THREAD = "1700000000.000100", "1699999999.000200"


def on(platform: str, *steps: list[Any], **more: Any) -> Result:
    """Play the steps on one account of ``platform``."""
    account = account_on(platform) | more.pop("account", {})
    return play(*steps, config={"accounts": {"a": account}} | more.pop("config", {}), **more)


def places(result: Result) -> list[tuple[int, str, str | None]]:
    """(t_ms, op, thread) of every typing call."""
    commands = [(call.t_ms, call.command) for call in result.world.calls if call.command.message is None]
    return [(t_ms, command.op.value.removeprefix("typing_"), command.thread) for t_ms, command in commands]


def test_the_status_of_a_slack_thread_is_renewed_before_its_two_minutes_are_over() -> None:
    steps = [received(0, TS, thread=THREAD), event(100, "thinking", TS)]
    alive = [event(t_ms, "progress", TS) for t_ms in range(10_000, 250_000, 10_000)]
    result = on("slack", *steps, *alive, event(250_000, "done", TS), until_ms=400_000)
    assert places(result) == [
        (0, "start", THREAD),
        (90_000, "start", THREAD),
        (180_000, "start", THREAD),
        (250_000, "stop", THREAD),
    ]
    assert_nothing_left(result)


def test_a_post_that_is_not_the_last_brings_the_status_back_and_the_last_does_not() -> None:
    result = on(
        "slack",
        received(0, TS, thread=THREAD),
        event(100, "thinking", TS),
        event(8_000, "sent", TS),
        event(20_000, "sent", TS, final=True),
        event(20_010, "done", TS),
    )
    starts = [t_ms for t_ms, op, _ in places(result) if op == "start"]
    assert len(starts) == 2
    assert 8_000 <= starts[1] <= 8_300
    assert places(result)[-1][1] == "stop"
    assert_nothing_left(result)


def test_a_run_without_a_message_has_a_status_and_no_marks() -> None:
    opened = {"type": "queued", "conversation": "C", "run": "i1", "thread": THREAD}
    ended = {"type": "done", "conversation": "C", "run": "i1"}
    result = on("slack", [0, opened], [8_000, ended])
    assert [(op, thread) for _, op, thread in places(result)] == [("start", THREAD), ("stop", THREAD)]
    assert len(result.world.calls) == 2
    assert_nothing_left(result)


def test_already_reacted_after_a_lost_answer_and_no_reaction_are_success() -> None:
    rules = [
        {"op": "set", "emoji": "eyes", "nth": [0], "outcome": "hang", "applied": True},
        {
            "op": "set",
            "emoji": "eyes",
            "response": {"status": 200, "headers": {}, "body": '{"ok":false,"error":"already_reacted"}'},
            "applied": True,
        },
        {
            "op": "remove",
            "emoji": "eyes",
            "response": {"status": 200, "headers": {}, "body": '{"ok":false,"error":"no_reaction"}'},
            "applied": True,
        },
    ]
    steps = [received(0, TS), event(100, "thinking", TS), event(30_000, "done", TS)]
    result = on("slack", *steps, rules=rules, config={"status": {"settle": "keep"}})
    made = [(op, emoji) for _, op, emoji in calls(result, TS)]
    assert made.count(("set", "eyes")) == 2
    assert made.count(("remove", "eyes")) == 1
    assert list(result.world.marks[("a", "c", TS)]) == ["+1"]


def test_a_refusal_inside_a_success_status_stops_a_slack_account_s_typing_after_one_call() -> None:
    refused = {"status": 200, "headers": {}, "body": '{"ok":false,"error":"missing_scope","needed":"chat:write"}'}
    rules = [{"op": "typing_start", "response": refused}]
    steps = [received(0, TS, thread=THREAD), event(100, "thinking", TS), event(100_000, "done", TS)]
    result = on("slack", *steps, rules=rules)
    assert len(typing(result)) == 1
    assert result.counters["breaker_opened"] == 1
    assert outcomes(result)[TS] == ("done", None)


# --- Discord ----------------------------------------------------------------------------

M1, M2, CHANNEL_THREAD = "862341998999699498", "862341998999699499", "1005870300000000000"


def discord_error(status: int, code: int, **headers: str) -> dict[str, Any]:
    return {"status": status, "headers": headers, "body": f'{{"code":{code},"message":"x","retry_after":0.3}}'}


def test_a_message_that_is_full_of_marks_is_asked_once_and_typing_goes_on() -> None:
    rules = [{"op": "set", "response": discord_error(403, 30010)}]
    steps = [received(0, M1), event(100, "thinking", M1), event(5_000, "done", M1), received(20_000, M2)]
    result = on("discord", *steps, event(30_000, "done", M2), rules=rules, until_ms=100_000)
    assert [(op, emoji) for _, op, emoji in calls(result, M1)] == [("set", "👀")]
    assert [op for _, op, _ in calls(result, M2)] == ["set"]  # another message may have room
    assert (100, "start") in typing(result) or (0, "start") in typing(result)
    assert_nothing_left(result)


def test_marks_in_an_archived_thread_wait_for_the_post_that_opens_it() -> None:
    rules = [{"op": "*", "message": M1, "from_ms": 30_000, "until_ms": 60_300, "response": discord_error(400, 50083)}]
    result = on(
        "discord",
        received(0, M1),
        event(100, "thinking", M1),
        event(35_000, "tool", M1, name="search"),
        event(60_000, "sending", M1, final=True),
        event(60_300, "sent", M1, final=True),
        event(60_310, "done", M1),
        rules=rules,
        config={"status": {"settle": "keep"}},
    )
    assert list(result.world.marks[("a", "c", M1)]) == ["👍"]
    refused = [call for call in result.world.calls if call.outcome == "forbidden"]
    assert len(refused) <= 2


def test_typing_follows_the_reply_into_a_thread_and_marks_stay() -> None:
    result = on(
        "discord",
        received(0, M1),
        event(100, "thinking", M1),
        event(3_000, "moved", M1, thread=CHANNEL_THREAD),
        event(9_000, "done", M1),
    )
    assert [thread for _, op, thread in places(result) if op == "start"] == [None, CHANNEL_THREAD]
    assert {call.command.conversation for call in result.world.calls} == {"c"}
    assert_nothing_left(result)


def test_shared_limits_that_users_provoke_stop_indicators_long_before_the_ban() -> None:
    limited = {
        "status": 429,
        "headers": {"X-RateLimit-Scope": "shared", "Retry-After": "1"},
        "body": '{"message":"x","retry_after":1,"global":false}',
    }
    flood = {"type": "queued", "conversation": "c{n}", "run": "i{n}"}
    ends = {"type": "cancelled", "conversation": "c{n}", "run": "i{n}"}
    flooding = {"count": 9_000, "every_ms": 33, "events": [[0, flood], [20_000, ends]]}
    result = on("discord", [0, "@repeat", flooding], rules=[{"op": "*", "response": limited}], until_ms=330_000)
    assert 1_000 < len(result.world.calls) < 5_500


# --- others -----------------------------------------------------------------------------


def test_mattermost_typing_names_the_thread_and_is_renewed_in_time() -> None:
    steps = [received(0, "p1", thread="p1"), received(0, "p2", thread="p2")]
    work = [event(100, "thinking", "p1"), event(100, "thinking", "p2")]
    result = on("mattermost", *steps, *work, event(9_000, "done", "p1"), event(9_000, "done", "p2"))
    for root in ("p1", "p2"):
        assert [t_ms // 1_000 for t_ms, op, thread in places(result) if thread == root and op == "start"] == [0, 4, 8]


def test_whatsapp_types_once_a_message_and_names_the_newest() -> None:
    steps = [
        received(0, "wamid.1", direct=True),
        event(100, "thinking", "wamid.1"),
        received(30_000, "wamid.2", direct=True),
        event(60_000, "done", "wamid.1"),
        event(70_000, "sent", "wamid.2"),
        event(90_000, "done", "wamid.2"),
    ]
    result = on("whatsapp", *steps)
    starts = [
        (call.t_ms, call.command.inbound) for call in result.world.calls if call.command.op.value == "typing_start"
    ]
    assert [inbound for _, inbound in starts] == ["wamid.1", "wamid.2"]
    assert starts[0][0] == 0
    assert starts[1][0] >= 70_000
    assert not [call for call in result.world.calls if call.command.op.value == "typing_stop"]
    assert_nothing_left(result)


def test_whatsapp_refreshes_after_the_indicator_s_end_where_that_is_asked_for() -> None:
    steps = [received(0, "wamid.1", direct=True), event(100, "thinking", "wamid.1"), event(60_000, "done", "wamid.1")]
    result = on("whatsapp", *steps, account={"typing": {"keepalive_ms": 26_000}})
    assert [t_ms for t_ms, op in typing(result) if op == "start"] == [0, 26_000, 52_000]


def test_signal_typing_ends_with_a_stop_to_the_same_recipient() -> None:
    steps = [received(0, "1700000000123", direct=True), event(100, "thinking", "1700000000123")]
    result = on("signal", *steps, event(12_000, "silent", "1700000000123"))
    assert typing(result) == [(0, "start"), (10_000, "start"), (12_000, "stop")]
    assert_nothing_left(result)


def test_a_slow_signal_service_is_waited_for() -> None:
    message = "1700000000123"
    steps = [received(0, message, direct=True), event(100, "thinking", message)]
    alive = [event(t_ms, "progress", message) for t_ms in range(5_000, 40_000, 5_000)]
    result = on("signal", *steps, *alive, event(40_000, "done", message), latency_ms=3_500)
    ended = [call.outcome for call in result.world.calls if call.command.op.value == "typing_start"]
    assert ended == ["ok"] * len(ended)
    assert 3 <= len(ended) <= 5
    assert_nothing_left(result)


def test_matrix_can_be_refreshed_more_often_than_its_server_asks_for() -> None:
    room, message = "c", "$event"
    steps = [received(10, message), event(100, "thinking", message), event(30_000, "done", message)]
    result = on("matrix", *steps, account={"typing": {"keepalive_ms": 4_000}})
    starts = [t_ms for t_ms, op in typing(result, room) if op == "start"]
    assert starts == list(range(10, 30_000, 4_000))
    assert [op for _, op in typing(result, room)][-1] == "stop"


def test_google_chat_has_marks_and_no_typing() -> None:
    message = "spaces/A/messages/B"
    result = on("googlechat", received(0, message), event(100, "thinking", message), event(9_000, "done", message))
    assert typing(result) == []
    assert [emoji for _, op, emoji in calls(result, message) if op == "set"] == ["👀", "👍"]
    assert_nothing_left(result)


@pytest.mark.parametrize(
    "platform", ["discord", "slack", "whatsapp", "mattermost", "zulip", "signal", "teams", "googlechat"]
)
def test_a_whole_run_leaves_nothing_behind(platform: str) -> None:
    steps = [
        received(0, "m1", thread="t"),
        event(100, "thinking"),
        event(3_000, "tool", name="web_search"),
        event(20_000, "text"),
        event(30_000, "sent", final=True),
        event(30_100, "done"),
    ]
    result = on(platform, *steps, until_ms=400_000)
    assert outcomes(result)["m1"] == ("done", None)
    assert len([emoji for _, op, emoji in calls(result) if op == "set"]) >= 2
    assert_nothing_left(result)
