"""Access tokens of limited life: fetched before the first call, once for all that wait, and anew when they expire."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gevent
import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials, Request, Response
from actors.presence.terms import OK, Command, Op, Outcome, OutcomeKind
from tests.platforms.fakes import FunctionTransport, outcome_of
from tests.platforms.raw_server import Exchange, RawServer

K = OutcomeKind
SECRET = "client~secret.0123456789"
MARK = Command(Op.SET, "a:1pL6i0", None, "1485983408511", "👀")


@dataclass
class Cloud:
    """A login service and a connector; ``good`` is the access token that the connector takes."""

    good: str = "access-1"
    logins: int = 0
    login: Response | None = None
    sent: list[str] = field(default_factory=list)
    """Authorization of each call."""

    def __post_init__(self) -> None:
        self.transport = FunctionTransport(self.answer)
        credentials = Credentials(token=SECRET, options={"app_id": "app"})
        self.platform = HttpPlatform(adapter("teams"), credentials, self.transport)

    def answer(self, request: Request) -> Response:
        if request.server is not None:
            self.logins += 1
            gevent.sleep(0)
            return self.login or Response(200, {}, json.dumps({"access_token": self.good}).encode())
        token = dict(request.headers)["Authorization"]
        self.sent.append(token)
        gevent.sleep(0)
        return Response(200, {}, b"{}") if token == f"Bearer {self.good}" else Response(401, {}, b"{}")


def test_all_calls_use_the_token_of_one_login() -> None:
    cloud, outcomes = Cloud(), list[Outcome]()
    for _ in range(5):
        cloud.platform.call(MARK, 1_000, outcomes.append)
    gevent.sleep(0.01)
    assert outcomes == [OK] * 5
    assert (cloud.logins, cloud.sent) == (1, ["Bearer access-1"] * 5)


def test_an_expired_token_is_replaced_once_for_all_calls_and_each_call_is_made_again() -> None:
    cloud, outcomes = Cloud(), list[Outcome]()
    assert outcome_of(cloud.platform, MARK) == OK
    cloud.good = "access-2"
    for _ in range(3):
        cloud.platform.call(MARK, 1_000, outcomes.append)
    gevent.sleep(0.01)
    assert outcomes == [OK] * 3
    assert cloud.logins == 2
    assert sorted(cloud.sent[1:]) == ["Bearer access-1"] * 3 + ["Bearer access-2"] * 3


def test_a_token_that_is_refused_when_it_is_new_is_auth_after_one_more_try() -> None:
    cloud = Cloud()
    cloud.login = Response(200, {}, b'{"access_token":"never good"}')
    assert outcome_of(cloud.platform, MARK).kind is K.AUTH
    assert (cloud.logins, len(cloud.sent)) == (2, 2)


def test_a_login_that_fails_makes_no_call_and_the_next_call_tries_again() -> None:
    cloud = Cloud()
    cloud.login = Response(401, {}, b'{"error":"invalid_client"}')
    outcome = outcome_of(cloud.platform, MARK)
    assert (outcome.kind, outcome.detail) == (K.AUTH, "login: invalid_client")
    assert cloud.sent == []
    cloud.login = None
    assert outcome_of(cloud.platform, MARK) == OK


def test_a_login_that_fails_when_a_token_has_expired_ends_the_call() -> None:
    cloud = Cloud()
    assert outcome_of(cloud.platform, MARK) == OK
    cloud.good, cloud.login = "access-2", Response(503)
    assert outcome_of(cloud.platform, MARK).kind is K.TRANSIENT
    cloud.login = None
    assert outcome_of(cloud.platform, MARK) == OK


def test_a_platform_without_a_login_is_not_asked_twice() -> None:
    transport = FunctionTransport(lambda request: Response(401, {}, b"{}"))
    credentials = Credentials(token="ya29.access-token")
    platform = HttpPlatform(adapter("googlechat"), credentials, transport)
    mark = Command(Op.SET, "spaces/A", None, "spaces/A/messages/B", "👀")
    assert outcome_of(platform, mark).kind is K.AUTH
    assert len(transport.seen) == 1


def test_no_secret_of_either_kind_is_in_any_text(caplog: pytest.LogCaptureFixture) -> None:
    cloud = Cloud(good="eyJ0eXAiOiJKV1QiLCJhbGciOi")
    assert outcome_of(cloud.platform, MARK) == OK
    told = {"error": {"code": "x", "message": f"no {SECRET} and no {cloud.good}"}}
    cloud.transport.answer = lambda request: Response(403, {}, json.dumps(told).encode())
    with caplog.at_level(logging.DEBUG):
        outcome = outcome_of(cloud.platform, MARK)
    assert outcome.detail == "403 x no *** and no ***"
    for text in (repr(vars(cloud.platform)), caplog.text):
        assert SECRET not in text
        assert cloud.good not in text


def test_the_parts_of_a_token_are_secrets_too() -> None:
    body = {
        "error": {"status": "PERMISSION_DENIED", "message": "client GOCSPX-secret-1, token 1//0g-refresh-1, id 12345"}
    }
    transport = FunctionTransport(lambda request: Response(403, {}, json.dumps(body).encode()))
    platform = HttpPlatform(adapter("googlechat"), Credentials(token="GOCSPX-secret-1:1//0g-refresh-1"), transport)
    mark = Command(Op.SET, "spaces/A", None, "spaces/A/messages/B", "👀")
    assert outcome_of(platform, mark).detail == "PERMISSION_DENIED client ***, token ***, id 12345"


# --- two servers ------------------------------------------------------------------------


@pytest.fixture
def servers() -> Iterator[tuple[RawServer, RawServer]]:
    def login(exchange: Exchange, sock: Any) -> None:
        reply(sock, 200, b'{"access_token":"access-1"}')

    def connector(exchange: Exchange, sock: Any) -> None:
        reply(sock, 200 if exchange.headers["authorization"] == "Bearer access-1" else 401, b"{}")

    with RawServer(login) as first, RawServer(connector) as second:
        yield first, second


def reply(sock: Any, status: int, body: bytes) -> None:
    sock.sendall(b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))


@pytest.mark.real
def test_the_login_is_made_at_its_own_server_and_the_secret_stays_there(servers: tuple[RawServer, RawServer]) -> None:
    login, connector = servers
    options = {"app_id": "app", "tenant": "contoso", "login_url": login.url}
    platform = HttpPlatform(
        adapter("teams"), Credentials(token=SECRET, base_url=f"{connector.url}/emea", options=options)
    )
    assert [outcome_of(platform, MARK) for _ in range(3)] == [OK] * 3
    platform.close()
    assert [exchange.line for exchange in login.seen] == ["POST /contoso/oauth2/v2.0/token HTTP/1.1"]
    path = "/emea/v3/conversations/a%3A1pL6i0/activities/1485983408511/reactions/1f440_eyes"
    assert [exchange.line for exchange in connector.seen] == [f"PUT {path} HTTP/1.1"] * 3
    assert SECRET not in "".join(exchange.head + exchange.body.decode() for exchange in connector.seen)
    assert (login.connections, connector.connections) == (1, 1)
    assert all(exchange.headers["content-length"] == "0" for exchange in connector.seen)
