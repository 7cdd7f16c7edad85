"""Slack Web API: marks are added and removed one by one, by name; "typing" is the status line of a thread, which
lives two minutes and can be taken away.

- Refusals come with status 200 and ``"ok": false``; the error's name decides. 429 counts per method and workspace.
- Bots have no typing outside of threads: there it is no call at all. The status line is the text of the option
  ``thread_status_text``; as ``loading_messages`` too, because channels show phrases of Slack's own otherwise.
- ``thread_status`` chooses the method: ``assistant`` is assistant.threads.setStatus; ``session`` its successor
  agents.sessions.setStatus, which has no text and which a post does not end; ``off`` shows none.
- The ts of a message is text, never a number.
- Removing is paced harder than adding, so few states are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from actors.platforms.answers import bearer, by_status, json_body, json_object, retry_after_ms, text_at
from actors.platforms.emoji_names import SHORT, named
from actors.platforms.spec import (
    NO_OPTIONS,
    Credentials,
    HttpAdapter,
    Option,
    Options,
    PlatformSpec,
    Request,
    Response,
)
from actors.presence.pacing import Limit
from actors.presence.terms import TYPING_OPS, Command, LaneRules, Op, Outcome, OutcomeKind

STATUS_TEXT: Final = "is thinking..."
SESSION_LIFETIME_MS: Final = 3_600_000

SPEC: Final = PlatformSpec(
    name="slack",
    ids="channel id; ts of the thread; ts of the message",
    rules=LaneRules(
        reactions="add_remove", typing=True, typing_stop=True, typing_lifetime_ms=120_000, typing_in_threads=True
    ),
    base_url="https://slack.com/api",
    options=(
        Option("thread_status", "what shows the status of a thread", "assistant", allowed=("assistant", "session", "off")),
        Option("thread_status_text", "its text", STATUS_TEXT),
    ),
    keepalive_ms=90_000,
    min_change_ms=5_000,
    presentation="ends",
    concurrency=2,
    limits=MappingProxyType({
        "account.set": Limit(per_ms=60_000, count=45),
        "account.remove": Limit(per_ms=60_000, count=18),
        "account.typing": Limit(per_ms=1_000, count=1),
    }),
    needs="scopes `reactions:write` and, for the status, `chat:write`; to be in the channel",
    cannot="typing outside of a thread; each state (removals are limited to 20 a minute a workspace)",
    source=(
        "docs.slack.dev: reactions.add (tier 3, 50/min), reactions.remove (tier 2, 20/min), "
        "assistant.threads.setStatus (2 min; its limit is not published), agents.sessions.setStatus, rate-limits "
        "(per method, app and workspace); keep-alive, spacing, concurrency and the rest of limits (R)"
    ),
)  # fmt: skip

_NAME: Final = re.compile(r"[a-z0-9_+'\-]+(?:::skin-tone-[2-6])?")
_TS: Final = re.compile(r"\d+\.\d+", re.ASCII)
_JSON: Final = ("Content-Type", "application/json; charset=utf-8")

_K: Final = OutcomeKind
_ERRORS: Final[tuple[tuple[OutcomeKind, str | None, str], ...]] = (
    (_K.ALREADY_DONE, None, "already_reacted no_reaction"),
    (_K.GONE, None, "message_not_found file_not_found file_comment_not_found"),
    (
        _K.FORBIDDEN,
        "conversation",
        "channel_not_found is_archived not_in_channel no_access external_channel_migrating ekm_access_denied "
        "enterprise_is_restricted",
    ),
    (_K.FORBIDDEN, "message", "thread_locked not_reactable invalid_thread_ts too_many_emoji too_many_reactions"),
    (
        _K.FORBIDDEN,
        "account",
        "missing_scope no_permission not_allowed_token_type team_access_not_granted access_denied",
    ),
    (_K.INVALID_REACTION, None, "invalid_name"),
    (_K.RATE_LIMITED, "route", "ratelimited rate_limited"),
    (
        _K.TRANSIENT,
        None,
        "internal_error fatal_error service_unavailable request_timeout team_added_to_org org_login_required",
    ),
    (
        _K.AUTH,
        None,
        "not_authed invalid_auth account_inactive token_revoked token_expired two_factor_setup_required accesslimited",
    ),
    (
        _K.BAD_REQUEST,
        None,
        "bad_timestamp no_item_specified invalid_arg_name invalid_arguments invalid_array_arg invalid_charset "
        "invalid_form_data invalid_post_type missing_post_type invalid_json json_not_object method_deprecated "
        "deprecated_endpoint reserved_username upgrade_required unknown_method",
    ),
)
ERRORS: Final[Mapping[str, tuple[OutcomeKind, str | None]]] = MappingProxyType(
    {error: (kind, scope) for kind, scope, errors in _ERRORS for error in errors.split()}
)
"""What an error means and what a refusal covers. A message can be full of marks, whatever the emoji."""


class SlackAdapter(HttpAdapter):
    """See the module. Raises ValueError for a ``thread_status`` that there is not."""

    def __init__(self, options: Options = NO_OPTIONS) -> None:
        status = options.get("thread_status", "assistant")
        rules, clears = SPEC.rules, True
        if status == "session":
            rules, clears = replace(rules, typing_lifetime_ms=SESSION_LIFETIME_MS), False
        elif status == "off":
            rules = replace(rules, typing=False)
        elif status != "assistant":
            raise ValueError(f"thread_status must be one of assistant, session, off, not {status!r}")
        self._sessions = status == "session"
        self.spec = replace(SPEC, rules=rules, post_clears_typing=clears)

    def normalise(self, emoji: str) -> str | None:
        name = named(emoji, SHORT)
        return name if _NAME.fullmatch(name) else None

    def request(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.op is Op.CLEAR:
            return Outcome(OutcomeKind.BAD_REQUEST, detail="Slack marks are removed one by one")
        if command.op in TYPING_OPS:
            return self._status(command, credentials)
        if not _TS.fullmatch(command.message or ""):
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a Slack message is a ts: digits, a point, digits")
        name = self.normalise(command.emoji or "")
        if name is None:
            return Outcome(OutcomeKind.INVALID_REACTION, detail="neither a known emoji nor the name of one")
        method = "reactions.add" if command.op is Op.SET else "reactions.remove"
        body = {"channel": command.conversation, "timestamp": command.message, "name": name}
        return _call(method, body, credentials)

    def outcome(self, command: Command, response: Response) -> Outcome:
        answer = json_object(response.body)
        if answer.get("ok") is True:
            return Outcome(OutcomeKind.OK)
        error = text_at(answer, "error")
        detail = " ".join(filter(None, (error, _scopes(answer))))
        wait_ms = retry_after_ms(response.headers)
        if response.status == 429:
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=wait_ms, scope="route", detail=detail)
        if error in ERRORS:
            kind, scope = ERRORS[error]
            return Outcome(kind, retry_after_ms=wait_ms, scope=scope, detail=detail)
        if 200 <= response.status < 300:
            kind = OutcomeKind.BAD_REQUEST if answer.get("ok") is False else OutcomeKind.UNKNOWN
            return Outcome(kind, detail=detail or "an answer that is not Slack's")
        return by_status(response, detail)

    def _status(self, command: Command, credentials: Credentials) -> Request | Outcome:
        if command.thread is None:
            return Outcome(OutcomeKind.OK)  # nothing that Slack could show: a status needs a thread
        if not _TS.fullmatch(command.thread):
            return Outcome(OutcomeKind.BAD_REQUEST, detail="a Slack thread is a ts: digits, a point, digits")
        wanted = command.op is Op.TYPING_START
        body: dict[str, Any] = {"channel_id": command.conversation, "thread_ts": command.thread}
        if self._sessions:
            body["status"] = "processing" if wanted else "active"
            return _call("agents.sessions.setStatus", body, credentials)
        text = credentials.options.get("thread_status_text", STATUS_TEXT)
        body["status"] = text if wanted else ""
        if wanted:
            body["loading_messages"] = [text]
        return _call("assistant.threads.setStatus", body, credentials)


def _scopes(answer: Mapping[str, Any]) -> str:
    """What a missing_scope says of the scopes."""
    told = (f"{key}: {value}" for key in ("needed", "provided") if (value := text_at(answer, key)))
    return "; ".join(told)


def _call(method: str, body: Mapping[str, Any], credentials: Credentials) -> Request:
    return Request("POST", f"/{method}", (bearer(credentials.token), _JSON), json_body(body))
