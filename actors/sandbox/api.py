"""The sandbox's HTTP interface as a WSGI application: paths to calls, calls through the faults to the state.

For accounts (``Authorization: Bearer TOKEN``), all answered with ``{"ok": true}``, or with ``"already":
true`` added::

    PUT    /v1/chats/CHAT/messages/MESSAGE/marks/EMOJI     set (or add) a mark
    DELETE /v1/chats/CHAT/messages/MESSAGE/marks/EMOJI     remove it
    DELETE /v1/chats/CHAT/messages/MESSAGE/marks           remove all of the account's
    PUT    /v1/chats/CHAT/typing?thread=THREAD             start or renew typing
    DELETE /v1/chats/CHAT/typing?thread=THREAD             stop it

For users, tests and the page::

    POST   /v1/chats/CHAT/messages      {"from", "text", "thread"?, "direct"?} -> {"id"}; or a token
    DELETE /v1/chats/CHAT/messages/MESSAGE
    GET    /v1/state?chat=CHAT&recent=N      all, or one chat, or the N latest; totals are always of all
    GET    /v1/calls?last=N             the count of all calls, and the last ones
    PUT    /v1/rules                    a fault plan: {"latency_ms", "rules"}
    GET    /v1/health                   what the platform is like
    GET    /                            a page to look at

A call takes effect when its delay is over, or when its client leaves before: never after the client has gone,
so that it cannot overtake a later call. All times are the service's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct, field

from actors.presence.terms import Op, OutcomeKind
from actors.sandbox import answers
from actors.sandbox.answers import HttpAnswer, document, refusal
from actors.sandbox.calls import KEPT_CALLS, Call, CallLog
from actors.sandbox.chat import Answer, Chats
from actors.sandbox.faults import FaultPlan, Faults, Verdict
from actors.sandbox.options import SandboxOptions
from actors.sandbox.page import PAGE
from actors.sandbox.shelf import ShelfFullError
from actors.sandbox.waiting import ClientLeftError, client_left

MAX_BODY_BYTES = 64 * 1024
MAX_ID_BYTES = 255
NAMELESS_ACCOUNT = "bot"
"""Who makes the calls that carry no token, where every token is let in."""

NOT_FOUND = refusal(OutcomeKind.BAD_REQUEST, "no such path", status=404)
NO_SUCH_METHOD = refusal(OutcomeKind.BAD_REQUEST, "no such method here", status=405)
NO_TOKEN = refusal(OutcomeKind.AUTH, "a token is needed: Authorization: Bearer TOKEN")
WRONG_TOKEN = refusal(OutcomeKind.AUTH, "this token is not known here")

T = TypeVar("T")


class Refused(Exception):  # noqa: N818  it is an answer, not a fault
    """A request that gets no further."""

    def __init__(self, answer: HttpAnswer) -> None:
        self.answer = answer


class Posting(Struct):
    """The body of a new message."""

    text: str
    sender: str | None = field(name="from", default=None)
    thread: str | None = None
    direct: bool | None = None


class Api:
    """The application. ``now_ms``: the service's time; a delay of d ms takes d / ``time_scale`` real ones."""

    def __init__(self, options: SandboxOptions, now_ms: Callable[[], int]) -> None:
        self.chats = Chats(options)
        self.calls = CallLog()
        self.faults = Faults(options.plan, now_ms())
        self._options = options
        self._now_ms = now_ms

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request (WSGI). ``sandbox.path``: undecoded path, ``sandbox.socket``: connection."""
        try:
            answer = self._answer(environ)
        except Refused as refused:
            answer = refused.answer
        start_response(answer.status, answer.headers)
        return (answer.body,)

    def _answer(self, environ: dict[str, Any]) -> HttpAnswer:
        path, _, query_text = environ["sandbox.path"].partition("?")
        parts = [_unquoted(part) for part in path.split("/")[1:]]
        query = dict(parse_qsl(query_text)) if query_text else {}
        match parts:
            case ["v1", "chats", _, "messages", _, "marks", *_] | ["v1", "chats", _, "typing"]:
                return self._call(environ, parts, query)
            case ["v1", "chats", chat, "messages"]:
                return self._post(environ, chat)
            case ["v1", "chats", chat, "messages", message]:
                return self._delete(environ, chat, message)
            case ["v1", "state" | "calls" | "health"] | [""]:
                return self._look(environ, parts[-1], query)
            case ["v1", "rules"]:
                return self._put_rules(environ)
        return NOT_FOUND

    # --- calls ---

    def _call(self, environ: dict[str, Any], parts: list[str], query: dict[str, str]) -> HttpAnswer:
        call = _parsed(environ["REQUEST_METHOD"], parts, query)
        t_ms = self._now_ms()
        try:
            account = self._account(environ)
        except Refused:
            self.calls.note(call, t_ms, t_ms, "auth")
            raise
        call = call._replace(account=account)
        verdict = self.faults.judge(call, t_ms)
        left = verdict.latency_ms > 0 and self._waits_in_vain(environ, verdict.latency_ms)
        ended_ms = self._now_ms()
        result = self.chats.apply(call, ended_ms) if _takes_effect(verdict) else None
        if verdict.outcome == "hang":
            self.calls.note(call, t_ms, None, "hang")
            self._waits_in_vain(environ, None)
            raise ClientLeftError
        if left:
            self.calls.note(call, t_ms, ended_ms, "left")
            raise ClientLeftError
        if verdict.response is not None:
            self.calls.note(call, t_ms, ended_ms, "response")
            return answers.scripted(verdict.response)
        if verdict.outcome != "ok" or result is None:
            result = Answer(OutcomeKind(verdict.outcome), "by a rule")
        self.calls.note(call, t_ms, ended_ms, result.kind.value)
        if result.kind is OutcomeKind.OK:
            return answers.DONE
        if result.kind is OutcomeKind.ALREADY_DONE:
            return answers.ALREADY_DONE
        return refusal(result.kind, result.detail, retry_after_ms=verdict.retry_after_ms, scope=verdict.scope)

    def _waits_in_vain(self, environ: dict[str, Any], wait_ms: int | None) -> bool:
        wait_s = None if wait_ms is None else wait_ms / 1000 / self._options.time_scale
        return client_left(environ["sandbox.socket"], wait_s)

    def _account(self, environ: dict[str, Any]) -> str:
        given = environ.get("HTTP_AUTHORIZATION")
        if given is None and self._options.tokens is None:
            return NAMELESS_ACCOUNT
        scheme, _, token = (given or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Refused(NO_TOKEN)
        if self._options.tokens is None:
            return str(token)
        account = self._options.tokens.get(token)
        if account is None:
            raise Refused(WRONG_TOKEN)
        return account

    # --- messages ---

    def _post(self, environ: dict[str, Any], chat: str) -> HttpAnswer:
        _only(environ, "POST")
        posting = _body(environ, Posting)
        bot = "HTTP_AUTHORIZATION" in environ
        sender = self._account(environ) if bot else posting.sender
        if not sender:
            raise Refused(refusal(OutcomeKind.BAD_REQUEST, "a message needs from, or a token"))
        try:
            message = self.chats.post(
                chat,
                sender,
                posting.text,
                self._now_ms(),
                thread=posting.thread,
                bot=bot,
                direct=posting.direct,
            )
        except ShelfFullError:
            return refusal(OutcomeKind.TRANSIENT, "no room")
        return document({"id": message})

    def _delete(self, environ: dict[str, Any], chat: str, message: str) -> HttpAnswer:
        _only(environ, "DELETE")
        if self.chats.delete(chat, message, self._now_ms()):
            return answers.DONE
        return refusal(OutcomeKind.GONE, "no such message")

    # --- the rest ---

    def _look(self, environ: dict[str, Any], what: str, query: dict[str, str]) -> HttpAnswer:
        _only(environ, "GET")
        if what == "state":
            recent = _number(query, "recent")
            return document(self.chats.view(self._now_ms(), chat=query.get("chat"), recent=recent))
        if what == "calls":
            last = _number(query, "last")
            return document(self.calls.view(KEPT_CALLS if last is None else last))
        if what == "health":
            return document({"ok": True, "now_ms": self._now_ms(), "platform": _platform(self._options)})
        return answers.raw_bytes(PAGE, "text/html; charset=utf-8")

    def _put_rules(self, environ: dict[str, Any]) -> HttpAnswer:
        _only(environ, "PUT")
        self.faults = Faults(_body(environ, FaultPlan), self._now_ms())
        return answers.DONE


def _parsed(method: str, parts: list[str], query: dict[str, str]) -> Call:
    """The call that method and path ask for, its account still unknown."""
    chat = parts[2]
    if not all(parts):
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, "a name in the path is empty"))
    match method, parts[3:]:
        case "PUT", ["messages", message, "marks", emoji]:
            return Call(Op.SET, "", chat, None, message, emoji)
        case "DELETE", ["messages", message, "marks", emoji]:
            return Call(Op.REMOVE, "", chat, None, message, emoji)
        case "DELETE", ["messages", message, "marks"]:
            return Call(Op.CLEAR, "", chat, None, message)
        case "PUT", ["typing"]:
            return Call(Op.TYPING_START, "", chat, query.get("thread"))
        case "DELETE", ["typing"]:
            return Call(Op.TYPING_STOP, "", chat, query.get("thread"))
    raise Refused(NO_SUCH_METHOD)


def _takes_effect(verdict: Verdict) -> bool:
    if verdict.response is not None:
        return verdict.applied or verdict.response.status < 300
    return verdict.applied or verdict.outcome in ("ok", "already_done")


def _platform(options: SandboxOptions) -> dict[str, Any]:
    names = (
        "reactions",
        "typing_stop",
        "typing_lifetime_ms",
        "post_clears_typing",
        "typing_in",
        "strict_messages",
    )
    return {name: getattr(options, name) for name in (*names, "time_scale")}


def _only(environ: dict[str, Any], method: str) -> None:
    if environ["REQUEST_METHOD"] != method:
        raise Refused(NO_SUCH_METHOD)


def _unquoted(part: str) -> str:
    if len(part) > 3 * MAX_ID_BYTES:
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, "a name in the path is too long"))
    if "%" not in part:
        return part
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, "the path is not UTF-8")) from None


def _number(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, f"{name} must be a number"))
    return int(text)


def _body(environ: dict[str, Any], type_: type[T]) -> T:
    data = environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
    if len(data) > MAX_BODY_BYTES:
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, f"a body has at most {MAX_BODY_BYTES} bytes", status=413))
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.DecodeError as error:
        raise Refused(refusal(OutcomeKind.BAD_REQUEST, str(error))) from None
