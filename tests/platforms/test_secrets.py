"""No secret of an account is in any text that leaves its platform port, whatever the other side repeats."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import gevent
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.application import Application
from actors.config import Account, load
from actors.ledger import MemoryLedger
from actors.messages import FromClient
from actors.platforms.port import HttpPlatform
from actors.platforms.registry import PLATFORMS, adapter
from actors.platforms.spec import Credentials, Request, Response
from actors.platforms.transport import NoAnswer, NotSent
from actors.presence.terms import TYPING_OPS, Command, Op
from actors.runtime import Runtime
from protocol import events
from tests.config_trees import account_on
from tests.platforms.fakes import FunctionTransport, outcome_of

pytestmark = pytest.mark.real

WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~+/=", min_size=16, max_size=40)
PASSWORD = "p%40ss-word"
PROXY = f"http://me:{PASSWORD}@127.0.0.1:3128"
IDS = {
    "telegram": ("-1001", "42"), "discord": ("7", "8"), "slack": ("C1", "1700000000.000100"), "matrix": ("!r:d", "$m"),
    "zulip": ("7", "8"), "signal": ("+1", "1700000000123"), "googlechat": ("spaces/A", "spaces/A/messages/B"),
}  # fmt: skip
OPTIONS = MappingProxyType({
    "user_id": "@b:d", "phone_number_id": "106", "email": "bot@x.org", "number": "+49", "app_id": "app", "client_id": "c",
})  # fmt: skip
"""Options of all platforms; each takes its own."""


def commands(platform: str) -> Iterator[Command]:
    conversation, message = IDS.get(platform, ("c", "m"))
    for op in Op:
        marked = op not in TYPING_OPS
        thread = None if marked else {"slack": "1.1", "zulip": "topic"}.get(platform)
        yield Command(op, conversation, thread, message if marked else None, "👀", None, "key", inbound="wamid.1")


def echo(request: Request, secrets: list[str]) -> str:
    """All of a request and all secrets, in every form, as one text."""
    sent = [request.path, *(value for _, value in request.headers), request.body.decode()]
    forms = [form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""))]
    pairs = (f"bot@x.org:{secrets[0]}", "me:p@ss-word")
    basic = [b64encode(pair.encode()).decode() for pair in pairs]
    return " ".join([*sent, *forms, *basic])


def bodies(told: str) -> list[dict[str, Any]]:
    """The shapes of refusals of all platforms."""
    flat = dict.fromkeys(("description", "error", "message", "errcode", "msg", "code", "id", "detail", "needed"), told)
    inner = {"message": told, "code": told, "status": told, "error_data": {"details": told}}
    return [{"ok": False, **flat}, {"error": inner}, {**flat, "error": inner, "code": 5}]


@pytest.mark.parametrize("name", sorted(PLATFORMS))
@settings(max_examples=2, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(token=WORDS, more=WORDS, status=st.sampled_from([200, 400, 401, 403, 404, 407, 409, 429, 500]))
def test_nothing_that_a_port_tells_holds_a_secret(name: str, token: str, more: str, status: int) -> None:
    token = f"{token}:{more}"
    secrets = [token, token.partition(":")[0], more, "p@ss-word", PASSWORD]
    logged: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    try:
        for kind in range(6):

            def answer(request: Request, kind: int = kind) -> Response:
                told = echo(request, secrets)
                if kind >= 3:
                    raise (NotSent("connect: deadline"), NoAnswer("deadline"), ValueError(told))[kind - 3]
                return Response(status, {"retry-after": told}, json.dumps(bodies(told)[kind]).encode())

            credentials = Credentials(token=token, access=more, options=OPTIONS, proxy=PROXY)
            platform = HttpPlatform(adapter(name), credentials, FunctionTransport(answer))
            for command in commands(name):
                logged += [repr(outcome_of(platform, command)), repr(vars(platform)), repr(credentials)]
    finally:
        logging.getLogger().removeHandler(handler)
    basic = b64encode(f"bot@x.org:{token}".encode()).decode()
    for text in set(logged):
        for secret in (*secrets, basic, b64encode(b"me:p@ss-word").decode()):
            assert secret not in text


@pytest.mark.parametrize("name", sorted(set(PLATFORMS) - {"callback", "remote"}))
def test_nothing_that_the_whole_tree_tells_holds_the_token(name: str, caplog: pytest.LogCaptureFixture) -> None:
    token = "s3cr3t-0123456789-token"
    seen: list[Request] = []

    def port(account: Account) -> HttpPlatform:
        def answer(request: Request) -> Response:
            seen.append(request)
            status = 401 if len(seen) > 2 else 400
            return Response(status, {}, json.dumps(bodies(echo(request, [token]))[len(seen) % 3]).encode())

        return HttpPlatform(account.adapter, account.credentials, FunctionTransport(answer))

    conversation, message = IDS.get(name, ("c", "m"))
    config = load({"accounts": {"a": {**account_on(name), "token": token, "proxy": PROXY}}, "ack": {"scope": "all"}})
    told: list[str] = [repr(config), repr(config.describe())]
    with caplog.at_level(logging.DEBUG):
        runtime = Runtime()
        app = Application(config, runtime, port, MemoryLedger())
        app.start()
        run: dict[str, Any] = {"account": "a", "conversation": conversation, "message": message}
        for event in (events.Received(**run, direct=True, id="1"), events.Thinking(**run, id="2"), events.Done(**run)):
            app.submit(FromClient("s", event, lambda reply: told.append(repr(reply))))
            gevent.sleep(0.02)
        lanes = app.parts.accounts["a"].lanes
        told += [repr(lanes.snapshot(0)), repr(runtime.snapshot()), repr(app.counters()), repr(app.parts.accounts["a"])]
        app.close()
        runtime.close()
    assert seen
    for text in (*told, caplog.text):
        assert token not in text
        assert "p@ss-word" not in text
        assert PASSWORD not in text
