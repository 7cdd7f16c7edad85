"""One map in, one checked event out: the rules every event has to meet, on the socket and embedded alike.

- ``type`` chooses the struct; unknown fields are ignored.
- Ids are text of 1 to 255 UTF-8 bytes. A whole number is taken as its decimal text; true, false and fractions
  are not.
- Everything else is strict: a number with a fraction is no duration, a number is no text, null stands for
  "absent" and only where the field may be absent. Durations are at least 1 ms.
- A run event names its run by ``message`` or ``run`` (typing events: or a ``scope``); an ``alive`` that names
  either also names the conversation, and the other way round.

The good path is one conversion by msgspec. Only a map that does not fit is looked at field by field, so that
the error can name the first field that is wrong and say what was expected instead.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, cast, get_args

import msgspec
from msgspec import inspect

from protocol import events
from protocol.errors import DecodeError
from protocol.events import Alive, Event, Id, Reply, RunEvent, TypingStart, TypingStop

__all__ = [
    "EVENT_KINDS",
    "MAX_DEPTH",
    "MAX_EVENT_BYTES",
    "MAX_ID_BYTES",
    "REPLY_TYPES",
    "event_from_map",
    "normalise",
]

MAX_EVENT_BYTES = 65_536
MAX_DEPTH = 8
MAX_ID_BYTES = 255
_SAFE_ID_LENGTH = MAX_ID_BYTES // 4
"""Text this short is within the limit whatever its characters are."""
_MAX_INT_BITS = 512
"""A larger number is no id, and its decimal text would be expensive to make."""


class Kind(NamedTuple):
    """What conversion needs to know of one event type."""

    cls: type[Event]
    ids: frozenset[str]
    names_run_by: tuple[str, ...]
    """At least one of these fields is given; empty: no such rule."""


def _kind(cls: type[Event]) -> Kind:
    ids = frozenset(
        field.name for field in msgspec.structs.fields(cls) if field.type == Id or Id in get_args(field.type)
    )
    if issubclass(cls, (TypingStart, TypingStop)):
        return Kind(cls, ids, ("message", "run", "scope"))
    return Kind(cls, ids, ("message", "run") if issubclass(cls, RunEvent) else ())


def _tag(cls: type[Event] | type[Reply]) -> str:
    return cast(str, cls.__struct_config__.tag)


EVENT_KINDS: Mapping[str, Kind] = {_tag(cls): _kind(cls) for cls in events.RUN_EVENTS + events.BARE_EVENTS}
"""Every event a client may send, by the name in ``type``."""
REPLY_TYPES: Mapping[str, type[Reply]] = {_tag(cls): cls for cls in Reply.__subclasses__()}

_ENCODER = msgspec.msgpack.Encoder()


def event_from_map(source: dict[Any, Any], size: int = MAX_EVENT_BYTES) -> Event:
    """The event that ``source`` describes; ``source`` belongs to the callee, which may change it.

    ``size`` is its length on the wire if known: what is short as a whole has no long id. Raises
    `DecodeError`.
    """
    try:
        kind = EVENT_KINDS[source["type"]]
    except (KeyError, TypeError):
        _refuse_type(source)
    for value in source.values():
        if type(value) is not str and type(value) is not bool:
            _straighten(source, kind)
            break
    try:
        event: Any = msgspec.convert(source, kind.cls)
    except msgspec.ValidationError as error:
        raise _explain(source, kind) from error
    if size > MAX_ID_BYTES:
        _check_ids(event, kind)
    if kind.names_run_by:
        if event.message is None and all(getattr(event, name) is None for name in kind.names_run_by):
            raise _missing("message", event.id, f"{source['type']} needs {' or '.join(kind.names_run_by)}")
    elif kind.cls is Alive:
        _check_alive(event)
    checked: Event = event
    return checked


def normalise(source: Mapping[str, Any] | Event) -> Event:
    """The same checks for an event that was not read from a socket: a mapping, or an event built by hand.

    Raises `DecodeError`, never anything else.
    """
    if isinstance(source, Event):
        fields: dict[Any, Any] = msgspec.structs.asdict(source)
        fields["type"] = _tag(type(source))
    elif isinstance(source, Mapping):
        fields = dict(source)
    else:
        raise DecodeError("malformed", f"an event is a map, not {_described(source)}")
    event = event_from_map(fields)
    try:
        size = len(_ENCODER.encode(event))
    except UnicodeEncodeError:
        raise _broken_text(event) from None
    if size > MAX_EVENT_BYTES:
        raise DecodeError("too_large", f"an event has at most {MAX_EVENT_BYTES} bytes", event_id=event.id)
    return event


# --- the rules that msgspec does not hold ---


def _straighten(source: dict[Any, Any], kind: Kind) -> None:
    """Write whole numbers in id fields as text, make plain text of text subclasses, and hold the depth
    limit."""
    for key, value in source.items():
        if isinstance(value, str):
            source[key] = str.__str__(value)
        elif isinstance(value, int):
            if key in kind.ids and not isinstance(value, bool) and value.bit_length() <= _MAX_INT_BITS:
                source[key] = int.__repr__(value)
        elif isinstance(value, (dict, list)) and _deeper_than(value, MAX_DEPTH - 1):
            raise DecodeError("too_large", f"nested deeper than {MAX_DEPTH} levels", event_id=_readable_id(source))


def _deeper_than(value: object, levels: int) -> bool:
    if not isinstance(value, (dict, list)):
        return False
    if levels == 0:
        return True
    inner = value.values() if isinstance(value, dict) else value
    return any(_deeper_than(item, levels - 1) for item in inner)


def _check_ids(event: Event, kind: Kind) -> None:
    for name in kind.ids:
        if _too_long(getattr(event, name)):
            detail = f"{name}: an id has at most {MAX_ID_BYTES} bytes"
            raise DecodeError("bad_value", detail, field=name, event_id=_id_unless(event, name))


def _too_long(id_: str | None) -> bool:
    return id_ is not None and len(id_) > _SAFE_ID_LENGTH and len(id_.encode(errors="replace")) > MAX_ID_BYTES


def _check_alive(event: Alive) -> None:
    names_run = event.message is not None or event.run is not None
    if names_run and event.conversation is None:
        raise _missing("conversation", event.id, "alive for a run needs its conversation")
    if event.conversation is not None and not names_run:
        raise _missing("message", event.id, "alive for a run needs message or run (without any: all runs)")


# --- what is wrong, in words ---


def _refuse_type(source: dict[Any, Any]) -> NoReturn:
    id_ = _readable_id(source)
    if "type" not in source:
        raise _missing("type", id_, "an event needs a type")
    name = source["type"]
    if not isinstance(name, str):
        raise DecodeError("wrong_type", f"type: expected text, got {_described(name)}", field="type", event_id=id_)
    raise DecodeError("unknown_type", f"unknown type {name[:40]!r}", field="type", event_id=id_)


def _missing(field: str, id_: str | None, detail: str) -> DecodeError:
    return DecodeError("missing_field", detail, field=field, event_id=id_)


def _explain(source: dict[Any, Any], kind: Kind) -> DecodeError:
    """Why ``source`` does not fit ``kind``: the first wrong field, by the order of the struct's fields."""
    id_ = _readable_id(source)
    if not all(isinstance(key, str) for key in source):
        return DecodeError("malformed", "every key of an event is text", event_id=id_)
    for field in msgspec.structs.fields(kind.cls):
        if field.name not in source:
            if field.required:
                return _missing(field.name, id_, f"{source['type']} needs {field.name}")
            continue
        value = source[field.name]
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            expected, plain = _expectation(field.type)
            detail = f"{field.name}: expected {expected}"
            if isinstance(value, plain) and (plain is bool or not isinstance(value, bool)):
                return DecodeError("bad_value", detail, field=field.name, event_id=id_)
            return DecodeError("wrong_type", f"{detail}, got {_described(value)}", field=field.name, event_id=id_)
    return DecodeError("bad_value", f"does not fit {source['type']}", event_id=id_)


@functools.cache
def _expectation(annotation: Any) -> tuple[str, type]:
    """What a field's type asks for, in words, and the plain type a value of it has."""
    info = inspect.type_info(annotation)
    if isinstance(info, inspect.UnionType):
        info = next(part for part in info.types if not isinstance(part, inspect.NoneType))
    if isinstance(info, inspect.StrType):
        return (f"text of 1 to {MAX_ID_BYTES} bytes" if info.max_length else "text"), str
    if isinstance(info, inspect.LiteralType):
        return " or ".join(map(str, info.values)), str
    if isinstance(info, inspect.IntType):
        return ("a whole number" if info.ge is None else f"a whole number of at least {info.ge}"), int
    return "true or false", bool


_WORDS = {
    type(None): "null",
    bool: "true or false",
    int: "a number",
    float: "a number with a fraction",
    str: "text",
    bytes: "bytes",
    list: "a list",
    dict: "a map",
}


def _described(value: object) -> str:
    return _WORDS.get(type(value), type(value).__name__)


def _readable_id(source: dict[Any, Any]) -> str | None:
    value = source.get("id")
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= _MAX_INT_BITS:
        value = int.__repr__(value)
    if not isinstance(value, str) or not value or _too_long(value):
        return None
    return value


def _id_unless(event: Event, field: str) -> str | None:
    """The event's id, unless it is the very field that is wrong."""
    return event.id if field != "id" else None


def _broken_text(event: Event) -> DecodeError:
    """Which text of ``event`` has no UTF-8 form (half of a surrogate pair)."""
    texts = ((name, getattr(event, name)) for name in event.__struct_fields__)
    name = next(
        name for name, value in texts if isinstance(value, str) and value.encode(errors="ignore").decode() != value
    )
    detail = f"{name}: text that cannot be written as UTF-8"
    return DecodeError("bad_value", detail, field=name, event_id=_id_unless(event, name))
