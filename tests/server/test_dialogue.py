"""What a connection answers, without any socket."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import msgpack
import pytest

from actors.dialogue import Dialogue
from actors.grants import Grant, token_grant
from actors.messages import FromClient, SessionDown, SessionUp, Subscription, SubscriptionEnded
from actors.server_context import ServerContext
from actors.server_settings import TokenGrant
from protocol.codec import Decoder
from protocol.events import Ack, Pong, Rejected, Reply, State, StatsReply, Thinking, Welcome
from tests.server.world import THINKING, Router, context, local

TOKENS = (
    TokenGrant("for-a", frozenset({"a"})),
    TokenGrant("for-all", None, frozenset({"send", "subscribe", "execute"})),
    TokenGrant("watcher", None, frozenset({"subscribe"})),
    TokenGrant(""),
)


class Talk:
    """A dialogue and the replies it gave."""

    def __init__(self, shared: ServerContext, grant: Grant | None) -> None:
        self.replies: list[Reply] = []
        self.dialogue = Dialogue(shared, "peer", grant, self.replies.append)

    def say(self, *sources: dict[str, Any]) -> str | None:
        """Returns the reason to close."""
        for source in sources:
            for item in Decoder().feed(msgpack.packb(source)):
                reason = self.dialogue.take(item)
                if reason is not None:
                    return reason
        return None

    def answer(self, source: dict[str, Any]) -> Reply:
        """The only reply to ``source``."""
        self.replies.clear()
        assert self.say(source) is None
        [reply] = self.replies
        return reply


@pytest.fixture
def router() -> Router:
    return Router()


@pytest.fixture
def shared(router: Router) -> ServerContext:
    return context(router, *TOKENS)


@pytest.fixture
def at_home(shared: ServerContext) -> Talk:
    """A peer on the Unix socket."""
    return Talk(shared, local())


@pytest.fixture
def stranger(shared: ServerContext) -> Talk:
    """A peer on TCP."""
    return Talk(shared, None)


def hello(token: str, **fields: Any) -> dict[str, Any]:
    return {"type": "hello", "token": token, **fields}


def test_a_local_user_needs_no_hello(at_home: Talk, router: Router) -> None:
    assert at_home.say(THINKING) is None
    assert at_home.replies == []
    up, message = router.messages
    assert isinstance(up, SessionUp)
    assert message == FromClient(
        up.session, Thinking(account="a", conversation="c", message="m"), at_home.dialogue.reply, None
    )


def test_hello_is_answered_with_everything_a_client_needs_to_know(stranger: Talk, router: Router) -> None:
    welcome = stranger.answer(hello("for-a", session="bot"))
    assert welcome == Welcome(
        protocol=1,
        server="livesign test",
        session="bot",
        accounts=["a"],
        limits={"event_bytes": 65_536, "depth": 8, "open_runs": 100_000, "idle_ms": 0, "silence_ms": 500},
    )
    [up] = router.messages
    assert isinstance(up, SessionUp)
    assert up.session.endswith("/bot")


def test_a_client_without_a_session_name_is_given_one(at_home: Talk, shared: ServerContext) -> None:
    welcome = at_home.answer({"type": "hello"})
    assert isinstance(welcome, Welcome)
    other = Talk(shared, local()).answer({"type": "hello"})
    assert isinstance(other, Welcome)
    assert welcome.session != other.session
    assert len(welcome.session) >= 16
    assert welcome.accounts == ["a", "b"]


@pytest.mark.parametrize(
    ("first", "code", "field"),
    [
        (THINKING, "unauthorized", "type"),
        ({"type": "ping"}, "unauthorized", "type"),
        ({"type": "hello"}, "missing_field", "token"),
        (hello("wrong"), "unauthorized", "token"),
        (hello(""), "unauthorized", "token"),
        (hello("for-a", protocol=2), "bad_value", "protocol"),
        (hello("for-a", role="subscribe"), "unauthorized", "role"),
        (hello("watcher"), "unauthorized", "role"),
        (hello("for-a", role="execute"), "unauthorized", "role"),
        ({"type": "nonsense"}, "unknown_type", "type"),
    ],
)
def test_a_stranger_that_does_not_open_well_is_turned_away(
    stranger: Talk, router: Router, first: dict[str, Any], code: str, field: str
) -> None:
    reason = stranger.say({**first, "id": "e1"})
    assert reason
    [rejected] = stranger.replies
    assert rejected == Rejected(code=code, field=field, detail=reason, id="e1")  # type: ignore[arg-type]
    assert router.messages == []


def test_a_wrong_token_is_no_way_in_on_the_unix_socket_either(at_home: Talk, router: Router) -> None:
    assert at_home.say(hello("wrong")) == "unknown token"
    assert router.messages == []


def test_a_token_on_the_unix_socket_narrows_the_grant(at_home: Talk) -> None:
    at_home.say(hello("for-a"))
    reply = at_home.answer({**THINKING, "account": "b"})
    assert isinstance(reply, Rejected)


def test_no_token_is_ever_written_down(stranger: Talk, shared: ServerContext, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stranger.say(hello("hunter2"))
    Talk(shared, None).say(hello("for-all", client="c", session="s"))
    text = f"{caplog.text}{stranger.replies}{shared.settings!r}{token_grant('for-all', TOKENS)!r}"
    assert "refused" in caplog.text
    for secret in ("hunter2", "for-all", "for-a", "watcher"):
        assert secret not in text


def test_an_event_for_an_account_without_grant_is_refused_and_goes_nowhere(stranger: Talk, router: Router) -> None:
    stranger.say(hello("for-a"))
    reply = stranger.answer({**THINKING, "account": "b", "id": "e1"})
    assert reply == Rejected(code="unauthorized", field="account", detail="no grant for account 'b'", id="e1")
    assert router.events == []


def test_the_router_is_told_which_accounts_a_client_may_use(stranger: Talk, router: Router) -> None:
    source = {key: value for key, value in THINKING.items() if key != "account"}
    stranger.say(hello("for-a"), source)
    assert router.messages[-1].accounts == {"a"}


def test_a_repeated_id_is_acknowledged_and_not_applied(at_home: Talk, router: Router) -> None:
    assert at_home.answer({**THINKING, "id": "e1"}) == Ack(id="e1", result="applied")
    assert at_home.answer({**THINKING, "id": "e1"}) == Ack(id="e1", result="duplicate")
    assert len(router.events) == 1


def test_a_refused_event_may_come_again_under_its_id(at_home: Talk, router: Router) -> None:
    at_home.answer({**THINKING, "id": "e1", "lease_ms": 0})
    assert at_home.answer({**THINKING, "id": "e1"}) == Ack(id="e1", result="applied")
    router.answers = False
    at_home.say({**THINKING, "id": "e2"})
    router.messages[-1].reply(Rejected(code="unknown_account", detail="?", id="e2"))
    router.answers = True
    at_home.say({**THINKING, "id": "e2"})
    assert router.messages[-1].repeated, "the router knows that it was not applied"


def test_a_second_connection_of_the_session_knows_the_ids_of_the_first(shared: ServerContext) -> None:
    one, other = Talk(shared, local()), Talk(shared, local())
    one.say({"type": "hello", "session": "bot"}, {**THINKING, "id": "e1"})
    other.say({"type": "hello", "session": "bot"})
    assert other.answer({**THINKING, "id": "e1"}) == Ack(id="e1", result="duplicate")


def test_ping_is_answered_in_every_role(shared: ServerContext) -> None:
    for first in (hello("for-a"), hello("watcher", role="subscribe")):
        talk = Talk(shared, None)
        talk.say(first)
        assert not talk.dialogue.pings
        assert talk.answer({"type": "ping"}) == Pong()
        assert talk.dialogue.pings


def test_an_event_with_an_id_that_the_server_answers_itself_is_acknowledged_too(at_home: Talk) -> None:
    at_home.say({"type": "ping", "id": "e1"})
    assert at_home.replies == [Pong(), Ack(id="e1", result="applied")]


def test_stats_are_the_applications(at_home: Talk) -> None:
    assert at_home.answer({"type": "stats"}) == StatsReply(counters={"leases_expired": 2})


def test_a_second_hello_is_refused_and_changes_nothing(stranger: Talk) -> None:
    stranger.say(hello("for-a"))
    reply = stranger.answer(hello("for-all"))
    assert isinstance(reply, Rejected)
    assert isinstance(stranger.answer({**THINKING, "account": "b"}), Rejected)


def test_a_subscriber_only_listens(stranger: Talk, router: Router) -> None:
    stranger.say(hello("watcher", role="subscribe"))
    reply = stranger.answer({**THINKING, "id": "e1"})
    assert reply == Rejected(code="unauthorized", field="type", detail="this connection's role is subscribe", id="e1")
    assert stranger.answer({"type": "subscribe", "id": "e2", "conversation": "c"}) == Ack(id="e2", result="applied")
    message = router.messages[-1]
    assert isinstance(message, Subscription)
    state = State(account="a", conversation="c", run="r", phase="done", shown=[], typing=False)
    message.reply(state)
    assert stranger.replies[-1] == state


@pytest.mark.parametrize(
    "source",
    [
        {"type": "subscribe", "account": "b"},
        {"type": "subscribe", "what": "calls"},
        {"type": "subscribe"},
        {"type": "call_result", "call_id": "1", "outcome": "ok"},
    ],
)
def test_what_is_not_granted_is_refused(stranger: Talk, router: Router, source: dict[str, Any]) -> None:
    stranger.say(hello("for-a"))
    assert isinstance(stranger.answer(source), Rejected)
    assert not any(isinstance(message, Subscription) for message in router.messages)


def test_the_end_of_a_connection_ends_its_subscription_and_its_session(shared: ServerContext, router: Router) -> None:
    stay, go = Talk(shared, local()), Talk(shared, local())
    for talk in (stay, go):
        talk.say({"type": "hello", "session": "bot"})
    go.say({"type": "subscribe"})
    go.dialogue.leave()
    assert router.messages[-1] == SubscriptionEnded("uid-0/bot", go.dialogue.reply)
    stay.dialogue.leave()
    assert router.messages[-1] == SessionDown("uid-0/bot")
    Talk(shared, None).dialogue.leave()
    assert len(router.sessions) == 2


def test_what_the_router_still_owes_is_counted(at_home: Talk, router: Router) -> None:
    router.answers = False
    at_home.say({**THINKING, "id": "e1"}, THINKING, {"type": "subscribe", "id": "e2"}, {**THINKING, "id": "e1"})
    assert at_home.dialogue.owed == 3
    for message in router.messages:
        if isinstance(message, (FromClient, Subscription)) and message.event.id is not None:
            assert message.reply is not None
            message.reply(Ack(id=message.event.id, result="applied"))
    assert at_home.dialogue.owed == 0


def test_everything_said_is_counted(at_home: Talk, shared: ServerContext) -> None:
    at_home.say(
        {**THINKING, "id": "e1"},
        {**THINKING, "id": "e1"},
        {"type": "aura"},
        {"type": "subscribe", "what": "calls"},
    )
    assert shared.counters == Counter({"events": 3, "events_rejected": 2, "events_repeated": 1})
