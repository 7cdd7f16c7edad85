"""What the exceptions and answers of the usual Python clients mean, told by their classes' names: nothing is imported.

A refusal is turned back into the platform's own answer and given to that platform's adapter, so that there is one table of
meanings for a call, whoever made it. What is left are the clients' own faults, `_FAULTS`.

| client | from |
| --- | --- |
| python-telegram-bot | ``telegram.error`` |
| aiogram | ``aiogram.exceptions`` |
| discord.py (and its forks that kept the names) | ``discord.errors`` |
| slack_sdk | ``slack_sdk.errors`` |
| matrix-nio | ``nio.responses`` (it returns its errors), ``nio.exceptions`` |
| aiohttp, httpx | what these raise when they are used directly |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from actors.platforms.answers import json_body
from actors.platforms.registry import adapter
from actors.platforms.spec import Response
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from protocol.client.execution import CallOutcome, seconds_ms
from protocol.events import Call

__all__ = ["command_of", "sdk_outcome", "to_call_outcome", "to_outcome"]

_FAULTS: Final[Mapping[tuple[str, str], str]] = MappingProxyType({
    ("telegram", "TimedOut"): "unknown",
    ("telegram", "InvalidToken"): "auth",
    ("telegram", "NetworkError"): "transient",
    ("aiogram", "TelegramUnauthorizedError"): "auth",
    ("aiogram", "TelegramNotFound"): "auth",
    ("aiogram", "TelegramServerError"): "transient",
    ("aiogram", "TelegramNetworkError"): "unknown",
    ("aiogram", "ClientDecodeError"): "unknown",
    ("discord", "LoginFailure"): "auth",
    ("discord", "RateLimited"): "rate_limited",
    ("slack_sdk", "BotUserAccessError"): "auth",
    ("slack_sdk", "SlackTokenRotationError"): "auth",
    ("slack_sdk", "SlackClientNotConnectedError"): "transient",
    ("nio", "LocalProtocolError"): "bad_request",
    ("nio", "SendRetryError"): "transient",
    ("nio", "TransportException"): "transient",
    ("httpx", "ConnectError"): "transient",
    ("httpx", "ConnectTimeout"): "transient",
    ("httpx", "PoolTimeout"): "transient",
    ("httpx", "TransportError"): "unknown",
    ("aiohttp", "ClientConnectorError"): "transient",
    ("aiohttp", "ClientResponseError"): "",  # it has a status
    ("aiohttp", "ClientError"): "unknown",
})  # fmt: skip
"""By package and class, of the thing itself or of a base class; empty: look at its status."""
_NOT_SENT: Final = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError"})


def sdk_outcome(call: Call, thing: object) -> CallOutcome | None:
    """What ``thing``, raised or returned by a client's method, means for ``call``; None: it is no known client's."""
    for cls in type(thing).__mro__:
        package = cls.__module__.partition(".")[0]
        answer = _ANSWERS.get(package)
        answered = answer(thing, cls.__name__) if answer is not None else None
        if isinstance(answered, CallOutcome):
            return answered
        if answered is not None:
            platform, response = answered
            return to_call_outcome(adapter(platform).outcome(command_of(call), response))
        kind = _FAULTS.get((package, cls.__name__))
        if kind == "":
            return None
        if kind is not None:
            cause = getattr(thing, "__cause__", None)
            sent = cause is None or type(cause).__name__ not in _NOT_SENT
            return CallOutcome(kind if sent else "transient", _wait_ms(thing), detail=_words(thing))
    return None


# --- refusals as the platform's own answer ---------------------------------------------------------------------

_Answered = tuple[str, Response] | CallOutcome | None


def _telegram(thing: Any, name: str) -> _Answered:
    match name:
        case "RetryAfter" | "TelegramRetryAfter":
            return CallOutcome("rate_limited", _wait_ms(thing), detail=_words(thing))
        case "ChatMigrated" | "TelegramMigrateToChat":
            return _described(400, "Bad Request: group chat was upgraded to a supergroup chat")
        case "BadRequest" | "TelegramBadRequest":
            return _described(400, str(thing.message))
        case "Forbidden" | "TelegramForbiddenError":
            return _described(403, str(thing.message))
        case "Conflict" | "TelegramConflictError":
            return _described(409, str(thing.message))
    return None


def _described(status: int, description: str) -> tuple[str, Response]:
    return "telegram", Response(status, body=json_body({"ok": False, "error_code": status, "description": description}))


def _discord(thing: Any, name: str) -> _Answered:
    if name != "HTTPException":
        return None
    headers = _headers(getattr(thing, "response", None))
    body: dict[str, object] = {"code": thing.code, "message": thing.text}
    retry_after = headers.get("retry-after", "")
    if thing.status == 429 and retry_after.replace(".", "", 1).isdigit():
        body["retry_after"] = float(retry_after)
    return "discord", Response(int(thing.status), headers, json_body(body))


def _slack(thing: Any, name: str) -> _Answered:
    if name != "SlackApiError":
        return None
    response = thing.response
    if isinstance(response, Mapping):
        return "slack", Response(200, body=json_body(dict(response)))
    data = getattr(response, "data", None)
    body = json_body(data) if isinstance(data, dict) else b""
    return "slack", Response(int(getattr(response, "status_code", 200)), _headers(response), body)


def _nio(thing: Any, name: str) -> _Answered:
    if name == "ErrorResponse":
        code = thing.status_code or "M_UNKNOWN"
        body = {"errcode": code, "error": thing.message or "", "retry_after_ms": thing.retry_after_ms}
        transport = getattr(thing, "transport_response", None)
        status = getattr(transport, "status", None) or (429 if code == "M_LIMIT_EXCEEDED" else 400)
        return "matrix", Response(int(status), body=json_body(body))
    if name == "Response":
        event_id = getattr(thing, "event_id", None)
        return CallOutcome(handle=event_id if isinstance(event_id, str) and event_id else None)
    return None


_ANSWERS: Final[Mapping[str, Callable[[Any, str], _Answered]]] = MappingProxyType(
    {"telegram": _telegram, "aiogram": _telegram, "discord": _discord, "slack_sdk": _slack, "nio": _nio}
)


def _headers(response: object) -> dict[str, str]:
    headers = getattr(response, "headers", None)
    try:
        return {str(name).lower(): str(value) for name, value in dict(headers or {}).items()}
    except (TypeError, ValueError):
        return {}


def _wait_ms(thing: object) -> int | None:
    # python-telegram-bot warns whoever reads the public name, which has two types
    value = getattr(thing, "_retry_after", None)
    if value is None and type(thing).__module__.partition(".")[0] != "telegram":
        value = getattr(thing, "retry_after", None)
    return seconds_ms(value)


def _words(thing: object) -> str:
    """The class alone: texts of clients may hold an address, and with it a token."""
    return type(thing).__name__


# --- between the words of clients and ours ---------------------------------------------------------------------


def command_of(call: Call) -> Command:
    """The command that ``call`` stands for."""
    return Command(Op(call.op), call.conversation, call.thread, call.message, call.emoji, call.handle)


def to_call_outcome(outcome: Outcome) -> CallOutcome:
    """The same in a client's words."""
    return CallOutcome(outcome.kind.value, outcome.retry_after_ms, outcome.scope, outcome.handle, outcome.detail)


def to_outcome(outcome: CallOutcome) -> Outcome:
    """The same in ours."""
    return Outcome(
        OutcomeKind(outcome.outcome), outcome.handle, outcome.retry_after_ms, outcome.scope, outcome.detail or ""
    )
