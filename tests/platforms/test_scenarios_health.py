"""What refusals of platforms do to whole runs, on virtual time: circuits of single destinations, the account that is
stopped, the budget of refused calls. Answers are raw and go through the account's own adapter."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import Any

import pytest

from actors import application
from actors.presence.breaker import Refusals
from actors.simulate import Result
from tests.config_trees import account_on
from tests.scenes import assert_nothing_left, outcomes, play

MINUTE_MS = 60_000
LOGGED = "livesign"


def answer(status: int, body: dict[str, Any], **headers: str) -> dict[str, Any]:
    return {"status": status, "headers": headers, "body": json.dumps(body)}


def telegram(code: int, description: str) -> dict[str, Any]:
    return answer(code, {"ok": False, "error_code": code, "description": description})


def discord(status: int, code: int) -> dict[str, Any]:
    return answer(status, {"code": code, "message": "what it says"})


IDS = {
    "telegram": ("-1001", "{n}"),
    "discord": ("7", "800{n}"),
    "slack": ("C1", "1700000000.00{n}"),
    "matrix": ("!r:d", "$m{n}"),
    "mattermost": ("c", "post{n}"),
    "zulip": ("7", "{n}"),
    "teams": ("a:1", "{n}"),
    "whatsapp": ("1650", "wamid.{n}"),
    "signal": ("+1650", "170000000{n}"),
}


def run(platform: str, number: int, at_ms: int, for_ms: int = 2_000, **fields: Any) -> list[list[Any]]:
    """A run of ``for_ms`` on a message of its own."""
    conversation, message = IDS[platform]
    place = {"conversation": conversation, "message": message.format(n=number), "account": "a"}
    place |= (
        {"thread": {"slack": "1699999999.000100", "zulip": "topic"}[platform]} if platform in ("slack", "zulip") else {}
    )
    place |= fields
    return [
        [at_ms, {"type": "received", "direct": False, "mentioned": True, **place}],
        [at_ms + for_ms, {"type": "done", **place}],
    ]


def on(platform: str, *steps: list[Any], rules: list[dict[str, Any]], until_ms: int = 100_000) -> Result:
    accounts = {"a": account_on(platform)}
    return play(*steps, config={"accounts": accounts, "typing": {"probe_ms": 0}}, rules=rules, until_ms=until_ms)


def made(result: Result, from_ms: int = 0, until_ms: int = 1 << 60) -> list[tuple[str, str | None]]:
    """(kind, outcome) of the calls that show something."""
    names = {"set": "mark", "typing_start": "typing"}
    return [
        (names[call.command.op.value], call.outcome)
        for call in result.world.calls
        if call.command.op.value in names and from_ms <= call.t_ms < until_ms
    ]


# --- circuits ---------------------------------------------------------------------------

CHATS_THAT_ARE_AWAY = {
    "telegram, the bot was kicked": ("telegram", telegram(403, "Forbidden: bot was kicked from the group chat")),
    "telegram, blocked": ("telegram", telegram(403, "Forbidden: bot was blocked by the user")),
    "telegram, no such chat": ("telegram", telegram(400, "Bad Request: chat not found")),
    "discord, the channel was deleted": ("discord", discord(404, 10003)),
    "discord, no access": ("discord", discord(403, 50001)),
    "slack, not in the channel": ("slack", answer(200, {"ok": False, "error": "not_in_channel"})),
    "slack, archived": ("slack", answer(200, {"ok": False, "error": "is_archived"})),
    "matrix, not in the room": ("matrix", answer(403, {"errcode": "M_FORBIDDEN", "error": "not in room"})),
    "mattermost, no permission": ("mattermost", answer(403, {"id": "api.context.permissions.app_error"})),
    "zulip, no such channel": ("zulip", answer(400, {"result": "error", "code": "STREAM_DOES_NOT_EXIST", "msg": ""})),
    "teams, the conversation is gone": ("teams", answer(404, {"error": {"code": "ConversationNotFound"}})),
    "teams, the bot was removed": ("teams", answer(403, {"error": {"code": "BotNotInConversationRoster"}})),
    "whatsapp, cannot be reached": ("whatsapp", answer(400, {"error": {"code": 131026, "message": "no"}})),
    "signal, not registered": ("signal", answer(400, {"error": "User +1650 is not registered."})),
}


@pytest.mark.parametrize(("platform", "refusal"), CHATS_THAT_ARE_AWAY.values(), ids=CHATS_THAT_ARE_AWAY.keys())
def test_a_chat_that_is_away_costs_one_call_of_each_kind_and_heals(platform: str, refusal: dict[str, Any]) -> None:
    back_ms = 5 * MINUTE_MS
    steps = [step for number in range(1, 6) for step in run(platform, number, number * 30_000)]
    probed = 31_000 + 10 * MINUTE_MS
    steps += [*run(platform, 7, probed), *run(platform, 8, probed + 30_000)]
    result = on(platform, *steps, rules=[{"op": "*", "until_ms": back_ms, "response": refusal}], until_ms=2 * probed)
    refused = made(result, 0, back_ms)
    assert len([kind for kind, _ in refused if kind == "mark"]) == 1
    assert len([kind for kind, _ in refused if kind == "typing"]) <= 1
    assert made(result, back_ms, probed) == []
    assert {kind for kind, outcome in made(result, probed) if outcome == "ok"} == {kind for kind, _ in refused}
    assert ("mark", "ok") in made(result, probed + 30_000)
    assert result.counters["breaker_opened"] == len(refused)
    assert outcomes(result)[IDS[platform][1].format(n=8)] == ("done", None)
    assert_nothing_left(result)


def test_a_chat_that_stays_away_is_asked_less_and_less_often() -> None:
    steps = [step for number in range(1, 241) for step in run("telegram", number, number * MINUTE_MS)]
    rules = [{"op": "*", "response": telegram(403, "Forbidden: bot was kicked from the group chat")}]
    result = on("telegram", *steps, rules=rules, until_ms=242 * MINUTE_MS)
    marks = [call.t_ms // MINUTE_MS for call in result.world.calls if call.command.op.value == "set"]
    assert marks == [1, 11, 31, 71, 151]
    assert len(result.world.calls) <= 2 * len(marks)


def test_a_chat_that_has_healed_is_like_any_other() -> None:
    refusal = telegram(403, "Forbidden: bot was kicked from the group chat")
    minutes = (1, 11, 12, 22)
    steps = [step for number, minute in enumerate(minutes) for step in run("telegram", number, minute * MINUTE_MS)]
    rules = [
        {"op": "*", "from_ms": minute * MINUTE_MS, "until_ms": minute * MINUTE_MS + 1, "response": refusal}
        for minute in (1, 12)
    ]
    result = on("telegram", *steps, rules=rules, until_ms=25 * MINUTE_MS)
    first = [made(result, minute * MINUTE_MS, minute * MINUTE_MS + 1)[0] for minute in minutes]
    assert first == [("mark", "forbidden"), ("mark", "ok"), ("mark", "forbidden"), ("mark", "ok")]


def test_where_the_bot_may_not_react_it_still_types_and_the_other_way_round() -> None:
    steps = [*run("discord", 1, 0, 20_000), *run("discord", 2, 30_000, 20_000)]
    marks = on("discord", *steps, rules=[{"op": "set", "response": discord(403, 50013)}], until_ms=5 * MINUTE_MS)
    assert [kind for kind, _ in made(marks)].count("mark") == 1
    assert [kind for kind, _ in made(marks)].count("typing") >= 5
    typing = on(
        "discord", *steps, rules=[{"op": "typing_start", "response": discord(403, 50013)}], until_ms=5 * MINUTE_MS
    )
    assert [kind for kind, _ in made(typing)].count("typing") == 1
    assert [kind for kind, _ in made(typing)].count("mark") == 4
    for result in (marks, typing):
        assert_nothing_left(result)


def test_one_chat_that_is_away_is_no_other_s_trouble() -> None:
    steps = [*run("discord", 1, 0), *run("discord", 2, 100, conversation="8"), *run("discord", 3, 5_000)]
    result = on(
        "discord",
        *steps,
        rules=[{"op": "*", "conversation": "7", "response": discord(404, 10003)}],
        until_ms=5 * MINUTE_MS,
    )
    assert {call.command.conversation for call in result.world.calls if call.outcome == "ok"} == {"8"}
    assert_nothing_left(result)


# --- credentials ------------------------------------------------------------------------

REVOKED = {
    "telegram": telegram(401, "Unauthorized"),
    "discord": discord(401, 0),
    "slack": answer(200, {"ok": False, "error": "token_revoked"}),
    "matrix": answer(401, {"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token passed."}),
    "mattermost": answer(401, {"id": "api.context.session_expired.app_error"}),
    "zulip": answer(401, {"result": "error", "code": "INVALID_API_KEY", "msg": "Invalid API key"}),
    "teams": answer(401, {"error": {"code": "BotNotRegistered"}}),
    "whatsapp": answer(401, {"error": {"code": 190, "message": "expired"}}),
    "signal": answer(400, {"error": "Specified account does not exist"}),
}


@pytest.mark.parametrize("new", [{"token": "new"}, {}], ids=["new credentials", "the same credentials"])
@pytest.mark.parametrize("platform", REVOKED)
def test_a_revoked_token_stops_the_account_says_so_once_and_a_reload_revives_it(
    platform: str, new: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    again = {"accounts": {"a": account_on(platform) | new}}
    steps = [step for number in range(1, 5) for step in run(platform, number, number * 100, 30_000)]
    steps += [[MINUTE_MS, "@reload", {"config": again}], *run(platform, 30, 2 * MINUTE_MS)]
    rules = [{"op": "*", "until_ms": 50_000, "response": REVOKED[platform]}]
    with caplog.at_level(logging.ERROR, LOGGED):
        result = on(platform, *steps, rules=rules, until_ms=5 * MINUTE_MS)
    limit = 2  # a mark and an indicator may be under way together
    assert 1 <= len([call for call in result.world.calls if call.t_ms < MINUTE_MS]) <= limit
    assert result.counters["accounts_stopped"] == 1
    assert [record.message for record in caplog.records if "refuses its credentials" in record.message] == [
        record.message for record in caplog.records
    ][:1]
    assert ("mark", "ok") in made(result, 2 * MINUTE_MS)
    assert_nothing_left(result)


def test_a_reload_with_credentials_that_are_refused_too_costs_one_more_call() -> None:
    again = {"accounts": {"a": account_on("discord") | {"token": "wrong-as-well"}}}
    steps = [
        *run("discord", 1, 0, 30_000),
        [MINUTE_MS, "@reload", {"config": again}],
        *run("discord", 2, 2 * MINUTE_MS),
    ]
    result = on("discord", *steps, rules=[{"op": "*", "response": REVOKED["discord"]}], until_ms=5 * MINUTE_MS)
    assert len(result.world.calls) <= 4
    assert result.counters["accounts_stopped"] == 2


# --- refused calls ----------------------------------------------------------------------


def flood(count: int, every_ms: int, account: str) -> list[Any]:
    """Runs without marks, each in a chat of its own."""
    opened = {"type": "queued", "conversation": "{n}", "run": "i{n}", "account": account}
    ends = {"type": "cancelled", "conversation": "{n}", "run": "i{n}", "account": account}
    return [0, "@repeat", {"count": count, "every_ms": every_ms, "events": [[0, opened], [20_000, ends]]}]


LIMITED = answer(429, {"code": 20028, "message": "slow", "retry_after": 0.001}, **{"X-RateLimit-Scope": "user"})


@pytest.mark.parametrize("refusal", [discord(403, 50001), LIMITED], ids=["403", "429"])
def test_all_accounts_on_one_server_share_the_budget_of_refused_calls(
    refusal: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "Refusals", partial(Refusals, 200))
    accounts = {name: account_on("discord") for name in "ab"} | {"c": account_on("discord") | {"base_url": "http://c"}}
    steps = [flood(150, 200, name) for name in "abc"]
    late = [[60_000, {"type": "received", "conversation": "9", "message": "1", "account": "a", "direct": True}]]
    until_ms = 11 * MINUTE_MS
    again = [[until_ms, {"type": "queued", "conversation": "777", "run": "x", "account": "a"}]]
    result = play(
        *steps, *late, *again, rules=[{"op": "*", "response": refusal, "until_ms": 9 * MINUTE_MS}],
        config={"accounts": accounts, "ack": {"scope": "all"}}, until_ms=until_ms + 10_000,
    )  # fmt: skip
    soon = [call for call in result.world.calls if call.t_ms < 9 * MINUTE_MS]
    here = [call for call in soon if call.account in "ab"]
    typed = [call for call in here if call.command.op.value == "typing_start"]
    assert 100 <= len(typed) <= 108  # typing stops at half, what was under way may still be refused
    assert len(here) < 160
    assert {call.account for call in typed} == {"a", "b"}
    assert 100 <= len([call for call in soon if call.account == "c"]) <= 104
    assert result.counters["refusal_pauses"] == 2
    assert {call.command.op.value for call in here if call.t_ms >= 60_000} == {"set"}  # an ack may still go out
    assert [call.outcome for call in result.world.calls if call.command.conversation == "777"][:1] == ["ok"]


# --- quotas -----------------------------------------------------------------------------

SPENT = {
    "whatsapp": answer(400, {"error": {"code": 131048, "message": "spam rate limit hit"}}),
    "telegram": answer(429, {"ok": False, "error_code": 429, "description": "x", "parameters": {"retry_after": 3_600}}),
    "slack": answer(429, {"ok": False, "error": "ratelimited"}, **{"Retry-After": "3600"}),
    "discord": answer(429, {"message": "x", "retry_after": 3_600.5, "global": True}, Via="1.1 google"),
    "matrix": answer(429, {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 3_600_000}),
    "zulip": answer(429, {"result": "error", "code": "RATE_LIMIT_HIT", "retry-after": 3_600.0}),
    "mattermost": answer(429, {}, **{"Retry-After": "3600"}),
    "signal": answer(429, {}, **{"Retry-After": "3600"}),
}


@pytest.mark.parametrize("platform", SPENT)
def test_a_quota_that_is_spent_for_an_hour_costs_a_call_of_each_kind(platform: str) -> None:
    steps = [*run(platform, 1, 0, 50 * MINUTE_MS), *run(platform, 2, 5 * MINUTE_MS, 3 * MINUTE_MS)]
    rules = [{"op": "*", "until_ms": 3_500_000, "response": SPENT[platform]}]
    result = on(platform, *steps, rules=rules, until_ms=100 * MINUTE_MS)
    soon = [call for call in result.world.calls if call.t_ms < 59 * MINUTE_MS]
    assert 1 <= len(soon) <= 3
    assert result.counters["rate_limited"] == len(soon)
    assert outcomes(result)[IDS[platform][1].format(n=1)] == ("done", None)
    assert ("mark", "ok") in made(result, 59 * MINUTE_MS)  # the result is still told
    assert_nothing_left(result)
