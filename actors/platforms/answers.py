"""What answers of most platforms have in common: JSON bodies, Retry-After, and the class of a bare HTTP
status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from actors.platforms.spec import Response
from actors.presence.pacing import MAX_WAIT_MS
from actors.presence.terms import Outcome, OutcomeKind

JSON_HEADERS: Final = (("Content-Type", "application/json"),)


def segment(value: str) -> str:
    """``value`` as one segment of a path: nothing in it can be taken for a separator or a step upwards."""
    return quote(value, safe="").replace(".", "%2E") if value.strip(".") == "" else quote(value, safe="")


def bearer(token: str) -> tuple[str, str]:
    """The header that carries ``token``."""
    return ("Authorization", f"Bearer {token}")


def json_body(value: object) -> bytes:
    """``value`` as compact UTF-8 JSON."""
    return msgspec.json.encode(value)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in ``body``; empty where there is none."""
    return _decoded(body) or {}


def _decoded(body: bytes) -> dict[str, Any] | None:
    """The JSON object in ``body``. None: not JSON, not an object, nested beyond reason."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text_at(value: Mapping[str, Any], key: str) -> str:
    """The text at ``key``; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def mapping_at(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at ``key``; empty where there is none."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def duration_ms(value: object, unit_ms: int) -> int | None:
    """A platform's waiting time in ms, rounded up; ``unit_ms`` is its unit. None: it is not one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if value < 0 or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return math.ceil(min(value, MAX_WAIT_MS) * unit_ms)


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """The Retry-After header in ms, where it is a number of seconds (no chat platform sends dates)."""
    try:
        return duration_ms(float(headers.get("retry-after", "")), 1_000)
    except ValueError:
        return None


def plain_success(response: Response) -> Outcome:
    """The outcome of a 2xx that need not say anything: its body is empty, or a JSON object. Anything else did not
    come from the platform."""
    if response.body and _decoded(response.body) is None:
        return Outcome(OutcomeKind.UNKNOWN, detail="an answer that is not the platform's")
    return Outcome(OutcomeKind.OK)


def by_status(response: Response, detail: str = "") -> Outcome:
    """The outcome of an answer whose body says nothing that is known. Redirects are not followed: our bug."""
    status = response.status
    detail = f"{status} {detail}".rstrip()
    if 200 <= status < 300:
        return Outcome(OutcomeKind.OK)
    if status == 429:
        return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=retry_after_ms(response.headers), detail=detail)
    if status == 401:
        return Outcome(OutcomeKind.AUTH, detail=detail)
    if status == 403:
        return Outcome(OutcomeKind.FORBIDDEN, detail=detail)
    if status == 408 or status >= 500:
        return Outcome(OutcomeKind.TRANSIENT, retry_after_ms=retry_after_ms(response.headers), detail=detail)
    return Outcome(OutcomeKind.BAD_REQUEST, detail=detail)
