"""The HTTP interface, over real sockets; its time stands still unless the test moves it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from actors.platforms.sandbox import SandboxAdapter
from actors.platforms.spec import Credentials, Request, Response
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from actors.sandbox import FaultPlan, Rule, SandboxError, SandboxOptions, Window
from tests.sandbox.asking import running

pytestmark = pytest.mark.real

DONE = {"ok": True}
ALREADY = {"ok": True, "already": True}
COMMANDS = [
    Command(Op.SET, "team/eu?#", message="8 17", emoji="👨\u200d💻"),
    Command(Op.REMOVE, "team/eu?#", message="8 17", emoji="👨\u200d💻"),
    Command(Op.CLEAR, "team/eu?#", message="8 17"),
    Command(Op.TYPING_START, "team/eu?#", thread="a&b=c"),
    Command(Op.TYPING_STOP, "team/eu?#", thread="a&b=c"),
]
UNDOES = {Op.REMOVE: Op.SET, Op.CLEAR: Op.SET, Op.TYPING_STOP: Op.TYPING_START}


def test_marks_are_set_removed_and_cleared() -> None:
    with running(SandboxOptions(reactions="add_remove")) as asker:
        for emoji in ("👀", "🤔", "🔥"):
            assert asker.mark("PUT", "c", "m", emoji)[::2] == (200, DONE)
        assert asker.mark("PUT", "c", "m", "👀").body == ALREADY
        assert asker.mark("DELETE", "c", "m", "🤔").body == DONE
        assert asker.mark("DELETE", "c", "m", "🤔").body == ALREADY
        assert asker.client.marks("c", "m") == ["👀", "🔥"]
        assert asker.ask("DELETE", "/v1/chats/c/messages/m/marks").body == DONE
        assert asker.ask("DELETE", "/v1/chats/c/messages/m/marks").body == ALREADY
        assert asker.client.state().marks == 0


def test_typing_starts_ends_by_itself_and_stops() -> None:
    with running() as asker:
        assert asker.ask("PUT", "/v1/chats/c/typing?thread=7")[::2] == (200, DONE)
        assert asker.ask("PUT", "/v1/chats/c/typing").body == DONE
        asker.advance(2_000)
        assert asker.ask("PUT", "/v1/chats/c/typing").body == DONE
        asker.advance(3_000)
        [typing] = asker.client.state().chats[0].typing
        assert (typing.account, typing.thread, typing.remaining_ms) == ("support", None, 2_000)
        assert asker.ask("DELETE", "/v1/chats/c/typing").body == DONE
        assert asker.ask("DELETE", "/v1/chats/c/typing").body == ALREADY
        assert asker.client.state().typing == 0


def test_the_token_names_the_account() -> None:
    with running() as asker:
        asker.mark("PUT", "c", "m", "👀", token="one")
        asker.mark("PUT", "c", "m", "🤔", token="two")
        asker.mark("PUT", "c", "m", "🔥", token=None)
        marks = asker.client.state().chats[0].messages[0].marks
        assert [(mark.account, mark.emoji) for mark in marks] == [("one", "👀"), ("two", "🤔"), ("bot", "🔥")]


def test_a_service_with_a_list_lets_in_nobody_else_and_shows_names_not_tokens() -> None:
    with running(SandboxOptions(tokens={"secret": "support"})) as asker:
        for token in ("wrong", None, ""):
            said = asker.mark("PUT", "c", "m", "👀", token)
            assert (said.status, said.body["code"]) == (401, "auth")
        assert asker.ask("POST", "/v1/chats/c/messages", "wrong", {"text": "x"}).status == 401
        assert asker.mark("PUT", "c", "m", "👀", "secret").body == DONE
        assert asker.client.state().chats[0].messages[0].marks[0].account == "support"
        assert asker.client.calls().counts == {"set": {"auth": 3, "ok": 1}}


def test_names_with_slashes_spaces_and_signs_arrive_as_they_are() -> None:
    chat, message = "team/eu?#%", "8 17/ü"
    with running() as asker:
        asker.mark("PUT", chat, message, "👨\u200d💻")
        asker.ask("PUT", f"/v1/chats/{quote(chat, safe='')}/typing?thread={quote('a&b=c/ü', safe='')}")
        [shown] = asker.client.state(chat=chat).chats
        assert (shown.id, shown.messages[0].id, shown.typing[0].thread) == (chat, message, "a&b=c/ü")
        assert asker.client.marks(chat, message) == ["👨\u200d💻"]


def test_a_users_post_is_a_message_and_a_bots_post_ends_its_typing() -> None:
    with running() as asker:
        message = asker.client.post("c", "hello", "ana", thread="7", direct=True)
        asker.mark("PUT", "c", message, "👀")
        asker.ask("PUT", "/v1/chats/c/typing?thread=7")
        asker.client.post("c", "still there?", "ana", thread="7")
        assert asker.client.typing("c") == ["support"]
        asker.client.reply("c", "here", "support", thread="7")
        assert asker.client.typing("c") == []
        [chat] = asker.client.state().chats
        assert chat.direct is True
        assert [(m.sender, m.text, m.bot, m.thread) for m in chat.messages] == [
            ("ana", "hello", False, "7"),
            ("ana", "still there?", False, "7"),
            ("support", "here", True, "7"),
        ]


def test_a_deleted_message_is_gone() -> None:
    with running() as asker:
        message = asker.client.post("c", "hello")
        asker.client.delete("c", message)
        said = asker.mark("PUT", "c", message, "👀")
        assert (said.status, said.body["code"]) == (404, "gone")
        with pytest.raises(SandboxError, match="404 gone"):
            asker.client.delete("c", message)


def test_the_state_can_be_had_of_one_chat_or_the_latest_and_its_totals_are_of_all() -> None:
    with running() as asker:
        for number in range(5):
            asker.mark("PUT", f"c{number}", "m", "👀")
        assert [chat.id for chat in asker.client.state(recent=2).chats] == ["c4", "c3"]
        one = asker.client.state(chat="c1")
        assert ([chat.id for chat in one.chats], one.marks, one.chat_count) == (["c1"], 5, 5)
        assert asker.client.state(chat="nowhere").chats == []


def test_the_service_counts_calls_by_operation_and_outcome_and_keeps_the_last() -> None:
    with running() as asker:
        asker.mark("PUT", "c", "m", "👀")
        asker.mark("PUT", "c", "m", "👀")
        asker.advance(7)
        asker.ask("PUT", "/v1/chats/c/typing?thread=7")
        asker.client.post("c", "not a call")
        calls = asker.client.calls(last=1)
        assert calls.total == 3
        assert calls.counts == {"set": {"already_done": 1, "ok": 1}, "typing_start": {"ok": 1}}
        assert msgspec.to_builtins(calls.last) == [
            {
                "t_ms": 7, "account": "support", "conversation": "c", "thread": "7", "message": None,
                "op": "typing_start", "emoji": None, "outcome": "ok", "ended_ms": 7,
            }
        ]  # fmt: skip
        assert asker.client.calls(last=0).last == []


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [
        ("gone", 404, "gone"),
        ("forbidden", 403, "forbidden"),
        ("invalid_reaction", 422, "invalid_reaction"),
        ("rate_limited", 429, "rate_limited"),
        ("transient", 503, "unavailable"),
        ("auth", 401, "auth"),
        ("bad_request", 400, "bad_request"),
    ],
)
@pytest.mark.parametrize("applied", [False, True])
def test_a_rule_makes_a_call_fail_with_or_without_its_effect(
    outcome: Any, status: int, code: str, applied: bool
) -> None:
    with running() as asker:
        asker.client.rules(FaultPlan(rules=(Rule(op="set", outcome=outcome, applied=applied),)))
        said = asker.mark("PUT", "c", "m", "👀")
        assert (said.status, said.body["ok"], said.body["code"]) == (status, False, code)
        assert asker.client.state().marks == int(applied)
        assert asker.client.calls().counts == {"set": {outcome: 1}}


def test_an_already_done_by_rule_is_true() -> None:
    with running() as asker:
        asker.client.rules(FaultPlan(rules=(Rule(outcome="already_done"),)))
        assert asker.mark("PUT", "c", "m", "👀").body == ALREADY
        assert asker.client.marks("c", "m") == ["👀"]


def test_a_limit_says_when_and_what_and_lifts_with_time() -> None:
    with running() as asker:
        asker.client.rules(FaultPlan(rules=(Rule(limit=Window(per_ms=2_500, count=1, by="conversation")),)))
        assert asker.mark("PUT", "c", "m", "👀").status == 200
        said = asker.mark("PUT", "c", "m", "🤔")
        assert (said.status, said.headers["retry-after"]) == (429, "3")
        assert (said.body["retry_after_ms"], said.body["scope"]) == (2_500, "conversation")
        assert asker.mark("PUT", "d", "m", "🤔").status == 200
        asker.advance(2_500)
        assert asker.mark("PUT", "c", "m", "🤔").status == 200


def test_new_rules_take_the_place_of_the_old_and_count_from_now() -> None:
    with running(SandboxOptions(plan=FaultPlan(rules=(Rule(outcome="transient"),)))) as asker:
        assert asker.mark("PUT", "c", "m", "👀").status == 503
        asker.advance(10_000)
        asker.client.rules(FaultPlan(rules=(Rule(from_ms=0, until_ms=100, outcome="forbidden"),)))
        assert asker.mark("PUT", "c", "m", "👀").status == 403
        asker.advance(100)
        assert asker.mark("PUT", "c", "m", "👀").status == 200


def test_a_raw_answer_is_sent_as_it_is_and_takes_effect_only_when_good() -> None:
    raw = {"status": 418, "headers": {"X-Kind": "odd", "Content-Length": "3"}, "body": {"a": [1]}}
    with running() as asker:
        assert asker.ask("PUT", "/v1/rules", body={"rules": [{"nth": [0], "response": raw}]}).status == 200
        said = asker.mark("PUT", "c", "m", "👀")
        assert (said.status, said.headers["x-kind"], said.body) == (418, "odd", {"a": [1]})
        assert asker.client.state().marks == 0
        asker.ask("PUT", "/v1/rules", body={"rules": [{"response": {"status": 299, "body": "plain"}}]})
        assert asker.mark("PUT", "c", "m", "👀")[::2] == (299, b"plain")
        asker.ask("PUT", "/v1/rules", body={"rules": [{"response": {"status": 204}}]})
        assert asker.mark("PUT", "c", "m", "🤔")[::2] == (204, b"")
        assert asker.client.marks("c", "m") == ["🤔"]
        assert asker.client.calls().counts == {"set": {"response": 3}}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", None, 404),
        ("GET", "/v1/chats/c/members", None, 404),
        ("GET", "/v1/chats/c/typing", None, 405),
        ("POST", "/v1/chats/c/messages/m/marks/x", None, 405),
        ("PUT", "/v1/chats/c/messages/m/marks", None, 405),
        ("PUT", "/v1/chats/c/messages/m/marks/x/y", None, 405),
        ("PUT", "/v1/chats/c/messages/m/marks/", None, 400),
        ("PUT", "/v1/chats//typing", None, 400),
        ("PUT", "/v1/chats/%ff/typing", None, 400),
        ("PUT", f"/v1/chats/{'x' * 1_000}/typing", None, 400),
        ("POST", "/v1/state", None, 405),
        ("GET", "/v1/state?recent=-1", None, 400),
        ("GET", "/v1/rules", None, 405),
        ("PUT", "/v1/rules", b"{", 400),
        ("PUT", "/v1/rules", b'{"rules": [{"outcome": "broken"}]}', 400),
        ("POST", "/v1/chats/c/messages", b'{"from": "ana"}', 400),
        ("POST", "/v1/chats/c/messages", b" " * 70_000, 413),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(method: str, path: str, body: Any, status: int) -> None:
    with running() as asker:
        said = asker.ask(method, path, body=body)
        assert (said.status, said.body["ok"], said.body["code"]) == (status, False, "bad_request")
        assert said.body["detail"]
        assert asker.client.state().chat_count == 0
        assert asker.mark("PUT", "c", "m", "👀").status == 200


def test_a_user_needs_a_name() -> None:
    with running() as asker:
        said = asker.ask("POST", "/v1/chats/c/messages", None, {"text": "hello"})
        assert (said.status, said.body["code"]) == (400, "bad_request")


def test_without_room_a_post_and_a_mark_fail_for_now() -> None:
    with running(SandboxOptions(max_chats=1)) as asker:
        asker.mark("PUT", "a", "m", "👀")
        assert asker.mark("PUT", "b", "m", "👀").body["code"] == "unavailable"
        with pytest.raises(SandboxError, match="503 unavailable"):
            asker.client.post("b", "hello")


def test_health_tells_what_the_platform_is_like() -> None:
    with running(SandboxOptions(reactions="add_remove", typing_lifetime_ms=7_000)) as asker:
        platform = asker.ask("GET", "/v1/health", None).body["platform"]
        assert (platform["reactions"], platform["typing_lifetime_ms"]) == ("add_remove", 7_000)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.op.value)
@pytest.mark.parametrize("outcome", [kind.value for kind in OutcomeKind if kind is not OutcomeKind.UNKNOWN])
def test_livesigns_adapter_reads_every_answer_as_what_it_is(command: Command, outcome: Any) -> None:
    adapter = SandboxAdapter()

    def send(command: Command) -> Outcome:
        request = adapter.request(command, Credentials(token="support"))
        assert isinstance(request, Request)
        said = asker.ask(request.method, request.path)
        return adapter.outcome(command, Response(said.status, said.headers, msgspec.json.encode(said.body)))

    with running() as asker:
        if command.op in UNDOES:  # so that there is something to take away
            send(replace(command, op=UNDOES[command.op], emoji="👨\u200d💻"))
        rule = Rule(op=command.op.value, outcome=outcome, retry_after_ms=1_234, scope="route")
        asker.client.rules(FaultPlan(rules=(rule,)))
        read = send(command)
        assert read.kind == outcome
        if not read.happened:
            assert (read.retry_after_ms, read.scope) == (1_234, "route")
