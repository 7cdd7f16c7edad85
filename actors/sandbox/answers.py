"""HTTP answers: a success, a refusal with its code, a raw answer of a fault rule, a JSON document.

A refusal is ``{"ok": false, "code": …, "detail": …}``, with ``retry_after_ms`` and ``scope`` where known. A
limit also sends ``Retry-After`` in whole seconds, rounded up; ``retry_after_ms`` is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import json

from actors.presence.terms import OutcomeKind
from actors.sandbox.faults import RawAnswer

Headers = list[tuple[str, str]]


class HttpAnswer(NamedTuple):
    """Status line, headers and body, ready to be sent."""

    status: str
    headers: Headers
    body: bytes


REFUSALS: Mapping[OutcomeKind, tuple[HTTPStatus, str]] = MappingProxyType(
    {
        OutcomeKind.GONE: (HTTPStatus.NOT_FOUND, "gone"),
        OutcomeKind.FORBIDDEN: (HTTPStatus.FORBIDDEN, "forbidden"),
        OutcomeKind.INVALID_REACTION: (HTTPStatus.UNPROCESSABLE_ENTITY, "invalid_reaction"),
        OutcomeKind.RATE_LIMITED: (HTTPStatus.TOO_MANY_REQUESTS, "rate_limited"),
        OutcomeKind.AUTH: (HTTPStatus.UNAUTHORIZED, "auth"),
        OutcomeKind.BAD_REQUEST: (HTTPStatus.BAD_REQUEST, "bad_request"),
        OutcomeKind.TRANSIENT: (HTTPStatus.SERVICE_UNAVAILABLE, "unavailable"),
    }
)
"""Status and code of each refusal."""


def _status_line(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unassigned"


def raw_bytes(body: bytes, content_type: str, status: int = 200, headers: Headers | None = None) -> HttpAnswer:
    """A body as it is."""
    sent = [("Content-Type", content_type), ("Content-Length", str(len(body))), *(headers or ())]
    return HttpAnswer(_status_line(status), sent, body)


def document(value: Any, status: int = 200, headers: Headers | None = None) -> HttpAnswer:
    """Anything msgspec can write, as JSON."""
    return raw_bytes(json.encode(value), "application/json", status, headers)


def refusal(
    kind: OutcomeKind,
    detail: str,
    *,
    retry_after_ms: int | None = None,
    scope: str | None = None,
    status: int | None = None,
) -> HttpAnswer:
    """A refusal; ``status`` where the usual one of its kind does not fit."""
    usual, code = REFUSALS[kind]
    body: dict[str, Any] = {"ok": False, "code": code, "detail": detail}
    headers: Headers = []
    if retry_after_ms is not None:
        body["retry_after_ms"] = retry_after_ms
        headers.append(("Retry-After", str(-(-retry_after_ms // 1000))))
    if scope is not None:
        body["scope"] = scope
    return document(body, status or usual, headers)


def scripted(answer: RawAnswer) -> HttpAnswer:
    """The raw answer of a rule. Its length is ours: a wrong one would only break the connection."""
    own = {name.lower() for name in answer.headers}
    if answer.body is None:
        body = b""
    elif isinstance(answer.body, str):
        body = answer.body.encode()
    else:
        body = json.encode(answer.body)
    headers = [(name, value) for name, value in answer.headers.items() if name.lower() != "content-length"]
    if "content-type" not in own and body:
        headers.append(("Content-Type", "text/plain" if isinstance(answer.body, str) else "application/json"))
    if answer.status in (204, 304):
        return HttpAnswer(_status_line(answer.status), headers, b"")
    return HttpAnswer(_status_line(answer.status), [*headers, ("Content-Length", str(len(body)))], body)


DONE = document({"ok": True})
ALREADY_DONE = document({"ok": True, "already": True})
