"""Access tokens that live for an hour or so and are fetched with a secret (OAuth 2): what platforms that want them
have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlencode

from actors.platforms.answers import by_status, json_object, text_at
from actors.platforms.spec import Credentials, Request, Response
from actors.presence.terms import Outcome, OutcomeKind

FORM: Final = ("Content-Type", "application/x-www-form-urlencoded")


def token_request(server: str, path: str, fields: Mapping[str, str]) -> Request:
    """The call that fetches an access token."""
    return Request("POST", path, (FORM,), urlencode(fields).encode("ascii"), server)


def fetched(credentials: Credentials, response: Response) -> Credentials | Outcome:
    """The credentials with the access token that was given, or why there is none. A secret that is refused is AUTH."""
    answer = json_object(response.body)
    access, error = text_at(answer, "access_token"), text_at(answer, "error")
    if response.status == 200 and access:
        return replace(credentials, access=access)
    detail = f"login: {error}" if error else "login"
    if response.status in (400, 401, 403) and error:
        return Outcome(OutcomeKind.AUTH, detail=detail)
    outcome = by_status(response, detail)
    return Outcome(OutcomeKind.TRANSIENT, detail=detail) if outcome.kind is OutcomeKind.OK else outcome
