"""What the golden tables of all platforms need: answers, and requests as they leave an adapter."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from actors.platforms.spec import Credentials, HttpAdapter, Request, Response
from actors.presence.terms import Command, Outcome


def answer(status: int, body: Any = b"", headers: dict[str, str] | None = None) -> Response:
    """An answer; ``body`` is JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, headers or {}, data)


def made(adapter: HttpAdapter, command: Command, credentials: Credentials) -> Request:
    """The request for ``command``."""
    request = adapter.request(command, credentials)
    assert isinstance(request, Request), request
    assert credentials.token == "" or credentials.token not in f"{request!r} {credentials!r}"
    return request


def no_call(adapter: HttpAdapter, command: Command, credentials: Credentials) -> Outcome:
    """The outcome of ``command``, which needs no request or can have none."""
    outcome = adapter.request(command, credentials)
    assert isinstance(outcome, Outcome), outcome
    return outcome


def header(request: Request, name: str) -> str:
    """The value of the only header with this name; empty: there is none."""
    found = [value for each, value in request.headers if each.lower() == name.lower()]
    assert len(found) <= 1
    return found[0] if found else ""


def json_of(request: Request) -> Any:
    """The body of a JSON request; None: there is no body."""
    if not request.body:
        assert header(request, "Content-Type") == ""
        return None
    assert header(request, "Content-Type").partition(";")[0] == "application/json"
    return json.loads(request.body)


def form_of(request: Request) -> dict[str, str]:
    """The fields of a form."""
    assert header(request, "Content-Type") == "application/x-www-form-urlencoded"
    return dict(parse_qsl(request.body.decode("ascii"), keep_blank_values=True, strict_parsing=True))
