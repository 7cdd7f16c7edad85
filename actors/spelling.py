"""What somebody may have meant by a name that there is not, in the words of an error."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from protocol.convert import EVENT_KINDS, Kind

_LONGEST = 64
"""Comparing takes the square of a name's length."""


def meant(name: object, known: Collection[str]) -> str:
    """``did you mean X?``, or what is known."""
    near = difflib.get_close_matches(str(name)[:_LONGEST], known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known)) or 'none'}"


def unknown_type(kind: object) -> str:
    """Why this is no type of an event."""
    return f"there is no event {str(kind)[:_LONGEST]!r}; {meant(kind, EVENT_KINDS)}"


def unknown_fields(event: Mapping[Any, Any]) -> list[str]:
    """The fields that events of this type do not have; none for a type that there is not.

    A server ignores them, so that clients may be newer than it; somebody who has mistyped one has to be told.
    """
    kind = _kind(event)
    return [] if kind is None else [str(name) for name in event if name not in _fields(kind)]


def unknown_field(event: Mapping[Any, Any], name: str) -> str:
    """Why an event of this type has no such field."""
    kind = _kind(event)
    own = [field for field in _fields(kind) if field != "type"] if kind else []
    return f"{event['type']} has no such field; {meant(name, own)}"


def _kind(event: Mapping[Any, Any]) -> Kind | None:
    name = event.get("type")
    return EVENT_KINDS.get(name) if isinstance(name, str) else None


def _fields(kind: Kind) -> tuple[str, ...]:
    return ("type", *kind.cls.__struct_fields__)
