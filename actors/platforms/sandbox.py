"""The chat service that ships with livesign (`actors.sandbox`). Its model is chosen by the account's options,
which must be those that the service was started with: ``reactions``, ``typing_stop``, ``typing_lifetime_ms``,
``post_clears_typing``,
``typing_in``. It has no limits of its own and takes any emoji as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import quote

from actors.platforms.answers import by_status, duration_ms, json_object, retry_after_ms, segment, text_at
from actors.platforms.spec import (
    NO_OPTIONS,
    Credentials,
    HttpAdapter,
    Option,
    Options,
    PlatformSpec,
    Request,
    Response,
    whole_option,
)
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

_MODELS: Final = ("replace", "add_remove", "none")
_PLACES: Final = ("all", "direct")

SPEC: Final = PlatformSpec(
    name="sandbox",
    ids="any names",
    rules=LaneRules(
        reactions="replace", typing=True, typing_stop=True, typing_lifetime_ms=5_000, typing_in_threads=True
    ),
    base_url=None,
    needs_token=False,
    options=(
        Option("reactions", "the reaction model", "replace", allowed=_MODELS),
        Option("typing_stop", "whether typing can be ended by a call", "true", kind="flag"),
        Option("typing_lifetime_ms", "how long typing lasts; 0: until ended", "5000", kind="ms"),
        Option("post_clears_typing", "whether a post ends typing", "true", kind="flag"),
        Option("typing_in", "chats that show typing", "all", allowed=_PLACES),
    ),
    keepalive_ms=3_000,
    concurrency=16,
    source="actors.sandbox",
)

_CODES: Final[Mapping[str, OutcomeKind]] = MappingProxyType({
    "gone": OutcomeKind.GONE,
    "forbidden": OutcomeKind.FORBIDDEN,
    "invalid_reaction": OutcomeKind.INVALID_REACTION,
    "rate_limited": OutcomeKind.RATE_LIMITED,
    "auth": OutcomeKind.AUTH,
    "bad_request": OutcomeKind.BAD_REQUEST,
    "unavailable": OutcomeKind.TRANSIENT,
})  # fmt: skip
_SCOPES: Final = frozenset({"account", "conversation", "route"})


class SandboxAdapter(HttpAdapter):
    """See the module. Raises ValueError for an option that is not a value of its kind."""

    def __init__(self, options: Options = NO_OPTIONS) -> None:
        lifetime_ms = whole_option(options, "typing_lifetime_ms", SPEC.rules.typing_lifetime_ms)
        rules = replace(
            SPEC.rules,
            reactions=_one_of(options, "reactions", _MODELS),
            typing_stop=_flag(options, "typing_stop", True),
            typing_lifetime_ms=lifetime_ms,
        )
        _one_of(options, "typing_in", _PLACES)
        # A refresh must come before the indicator fades; one that lasts needs none.
        keepalive_ms = min(SPEC.keepalive_ms, lifetime_ms * 3 // 5)
        post_clears = _flag(options, "post_clears_typing", True)
        self.spec = replace(SPEC, rules=rules, keepalive_ms=keepalive_ms, post_clears_typing=post_clears)

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        chat = f"/v1/chats/{segment(command.conversation)}"
        if command.op in TYPING_OPS:
            thread = f"?thread={quote(command.thread, safe='')}" if command.thread is not None else ""
            return _request("PUT" if command.op is Op.TYPING_START else "DELETE", f"{chat}/typing{thread}", credentials)
        marks = f"{chat}/messages/{segment(command.message or '')}/marks"
        if not command.message:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a mark needs a message")
        if command.op is Op.CLEAR:
            return _request("DELETE", marks, credentials)
        if not command.emoji:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="an empty mark")
        return _request("PUT" if command.op is Op.SET else "DELETE", f"{marks}/{segment(command.emoji)}", credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if answer.get("ok") is True:
            return Outcome(OutcomeKind.ALREADY_DONE if answer.get("already") is True else OutcomeKind.OK)
        detail = text_at(answer, "detail")
        kind = _CODES.get(text_at(answer, "code"))
        if kind is None:
            if 200 <= response.status < 300:
                return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the sandbox's")
            return by_status(response, detail)
        wait_ms = duration_ms(answer.get("retry_after_ms"), 1)
        if wait_ms is None:
            wait_ms = retry_after_ms(response.headers)
        scope = text_at(answer, "scope")
        return Outcome(kind, retry_after_ms=wait_ms, scope=scope if scope in _SCOPES else None, detail=detail)


def _request(method: Literal["PUT", "DELETE"], path: str, credentials: Credentials) -> Request:
    headers = (("Authorization", f"Bearer {credentials.token}"),) if credentials.token else ()
    return Request(method, path, headers)


def _one_of(options: Options, name: str, allowed: tuple[str, ...]) -> str:
    value = options.get(name, allowed[0])
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    return value


def _flag(options: Options, name: str, default: bool) -> bool:
    return _one_of(options, name, ("true", "false") if default else ("false", "true")) == "true"
