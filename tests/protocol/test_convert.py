"""The rules of one event, the same for a socket's map and for the embedded path."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any

import msgpack
import msgspec
import pytest

from protocol.codec import Decoder, encode, normalise
from protocol.convert import EVENT_KINDS, MAX_EVENT_BYTES, event_from_map
from protocol.errors import DecodeError
from protocol.events import Alive, Event, Received, RunEvent, Text, Thinking, Tool, TypingStart, Waiting

BASE: dict[str, Any] = {"type": "thinking", "conversation": "c", "message": "m"}


def over_the_wire(source: dict[Any, Any]) -> Event | DecodeError:
    [item] = list(Decoder().feed(msgpack.packb(source)))
    return item


def refused(source: dict[Any, Any]) -> DecodeError:
    """The error of ``source``, which has to be the same on both paths."""
    with pytest.raises(DecodeError) as caught:
        normalise(source)
    embedded = caught.value
    wire = over_the_wire(source)
    assert isinstance(wire, DecodeError)
    assert wire.reply() == embedded.reply()
    assert not wire.fatal
    return embedded


def accepted(source: dict[Any, Any]) -> Event:
    event = normalise(source)
    assert over_the_wire(source) == event
    return event


def test_a_plain_event_is_taken_as_it_is() -> None:
    assert accepted(BASE) == Thinking(conversation="c", message="m")


def test_every_event_type_of_the_wire_is_known() -> None:
    documented = (
        "hello received queued waiting thinking tool tool_end compacting compacting_end text progress alive"
        " child child_end merged moved sending sent done error cancelled silent clear restore typing_start"
        " typing_stop subscribe call_result ping stats"
    )
    assert set(EVENT_KINDS) == set(documented.split())


def test_unknown_fields_are_ignored() -> None:
    assert accepted({**BASE, "shade": {"deep": [1, 2, None]}, "x": 1.5}) == accepted(BASE)


def test_whole_numbers_as_ids_become_decimal_text() -> None:
    source = {
        "type": "tool",
        "conversation": -100123,
        "message": 817,
        "thread": 0,
        "call": 2**64 - 1,
        "id": 7,
    }
    event = accepted(source)
    assert event == Tool(conversation="-100123", message="817", thread="0", call="18446744073709551615", id="7")


@pytest.mark.parametrize(
    "name", sorted({(kind, id_) for kind, row in EVENT_KINDS.items() for id_ in row.ids}), ids="-".join
)
def test_no_id_field_takes_a_boolean_or_a_fraction(name: tuple[str, str]) -> None:
    kind, field = name
    source = {**whole(kind), field: True}
    error = refused(source)
    assert (error.code, error.field) == ("wrong_type", field)
    error = refused({**source, field: False, "x": 5})
    assert (error.code, error.field) == ("wrong_type", field)
    error = refused({**source, field: 5.0})
    assert (error.code, error.field) == ("wrong_type", field)
    assert accepted({**source, field: 5}) == accepted({**source, field: "5"})


def whole(kind: str) -> dict[str, Any]:
    """A good map of this type."""
    source: dict[str, Any] = {"type": kind}
    row = EVENT_KINDS[kind]
    if issubclass(row.cls, (RunEvent, Alive)):
        source |= {"conversation": "c", "message": "m"}
    required = {
        "direct": True, "on": "slot", "call": "k", "child": "k", "into": "r", "thread": "t",
        "call_id": "1", "outcome": "ok",
    }  # fmt: skip
    for field in msgspec.structs.fields(row.cls):
        if field.required and field.name not in source:
            source[field.name] = required[field.name]
    return source


@pytest.mark.parametrize("kind", sorted(EVENT_KINDS))
def test_every_event_survives_encoding_and_each_missing_required_field_is_named(kind: str) -> None:
    event = accepted(whole(kind))
    assert list(Decoder().feed(encode(event))) == [event]
    for field in msgspec.structs.fields(type(event)):
        if field.required:
            source = whole(kind)
            del source[field.name]
            error = refused(source)
            assert (error.code, error.field) == ("missing_field", field.name)
            assert error.detail == f"{kind} needs {field.name}"


@pytest.mark.parametrize("kind", sorted(kind for kind, row in EVENT_KINDS.items() if row.names_run_by))
def test_a_run_event_needs_message_or_run(kind: str) -> None:
    source = whole(kind)
    del source["message"]
    error = refused({**source, "id": "e1"})
    assert (error.code, error.field, error.event_id) == ("missing_field", "message", "e1")
    assert "message or run" in error.detail
    accepted({**source, "run": "r"})


def test_typing_events_may_name_a_scope_instead_of_a_run() -> None:
    source = {"type": "typing_start", "conversation": "c", "scope": "s"}
    assert accepted(source) == TypingStart(conversation="c", scope="s")
    assert refused({"type": "typing_stop", "conversation": "c"}).field == "message"


def test_alive_stands_alone_or_names_a_whole_run() -> None:
    assert accepted({"type": "alive"}) == Alive()
    assert refused({"type": "alive", "conversation": "c"}).field == "message"
    assert refused({"type": "alive", "run": "r"}).field == "conversation"
    assert accepted({"type": "alive", "conversation": "c", "run": "r"}) == Alive(conversation="c", run="r")


ID = "expected text of 1 to 255 bytes"
AT_LEAST_1 = "expected a whole number of at least 1"
FRACTION = "a number with a fraction"
FLAG = "expected true or false"


@pytest.mark.parametrize(
    ("change", "code", "field", "detail"),
    [
        ({"type": "thinkin"}, "unknown_type", "type", "unknown type 'thinkin'"),
        ({"type": 5}, "wrong_type", "type", "type: expected text, got a number"),
        ({"type": None}, "wrong_type", "type", "type: expected text, got null"),
        ({"type": []}, "wrong_type", "type", "type: expected text, got a list"),
        ({"conversation": None}, "wrong_type", "conversation", f"conversation: {ID}, got null"),
        ({"conversation": ""}, "bad_value", "conversation", f"conversation: {ID}"),
        ({"conversation": b"c"}, "wrong_type", "conversation", f"conversation: {ID}, got bytes"),
        ({"message": {"id": 1}}, "wrong_type", "message", f"message: {ID}, got a map"),
        ({"lease_ms": 3e4}, "wrong_type", "lease_ms", f"lease_ms: {AT_LEAST_1}, got {FRACTION}"),
        ({"lease_ms": 0}, "bad_value", "lease_ms", f"lease_ms: {AT_LEAST_1}"),
        ({"lease_ms": -1}, "bad_value", "lease_ms", f"lease_ms: {AT_LEAST_1}"),
        ({"lease_ms": True}, "wrong_type", "lease_ms", f"lease_ms: {AT_LEAST_1}, got true or false"),
        ({"lease_ms": "30000"}, "wrong_type", "lease_ms", f"lease_ms: {AT_LEAST_1}, got text"),
        ({"lease_ms": 2**60}, "bad_value", "lease_ms", f"lease_ms: {AT_LEAST_1}"),
        ({"type": "text", "visible": 1}, "wrong_type", "visible", f"visible: {FLAG}, got a number"),
        ({"type": "text", "visible": None}, "wrong_type", "visible", f"visible: {FLAG}, got null"),
        ({"type": "waiting", "on": "rain"}, "bad_value", "on", "on: expected slot or user"),
        ({"type": "waiting", "on": 1}, "wrong_type", "on", "on: expected slot or user, got a number"),
        ({"type": "error", "scope": "all"}, "bad_value", "scope", "scope: expected lane or run"),
        ({"type": "child", "child": "k", "max_ms": 0}, "bad_value", "max_ms", f"max_ms: {AT_LEAST_1}"),
        ({"type": "received", "direct": True, "sent_at_ms": -1}, "bad_value", "sent_at_ms",
         "sent_at_ms: expected a whole number of at least 0"),
        ({5: "x"}, "malformed", None, "every key of an event is text"),
    ],
)  # fmt: skip
def test_an_error_names_code_field_and_reason(
    change: dict[Any, Any], code: str, field: str | None, detail: str
) -> None:
    error = refused({**BASE, "id": "e1", **change})
    assert (error.code, error.field, error.detail, error.event_id) == (code, field, detail, "e1")


def test_a_map_without_type_is_a_missing_field() -> None:
    error = refused({"id": 9, "conversation": "c"})
    assert (error.code, error.field, error.event_id) == ("missing_field", "type", "9")


@pytest.mark.parametrize("bad", ["", True, 1.5, b"x", "é" * 128, None, [1]])
def test_an_id_that_is_no_id_is_not_repeated(bad: object) -> None:
    assert refused({**BASE, "type": "nonsense", "id": bad}).event_id is None


def test_ids_are_measured_in_bytes_not_in_characters() -> None:
    accepted({**BASE, "message": "é" * 127})
    accepted({**BASE, "message": "x" * 255})
    for text in ("é" * 128, "x" * 256, "😀" * 64):
        error = refused({**BASE, "message": text, "id": "e1"})
        assert (error.code, error.field, error.event_id) == ("bad_value", "message", "e1")
    assert refused({**BASE, "id": "😀" * 64}).event_id is None


def test_null_is_absent_where_a_field_may_be_absent() -> None:
    source = {**BASE, "thread": None, "run": None, "lease_ms": None, "id": None}
    assert accepted(source) == accepted(BASE)


def test_a_token_of_the_wrong_type_is_not_repeated() -> None:
    error = refused({"type": "hello", "token": ["s3cret"]})
    assert error.field == "token"
    assert "s3cret" not in f"{error} {error!r}"


def test_depth_is_limited_even_in_unknown_fields() -> None:
    def nested(levels: int) -> object:
        return [nested(levels - 1)] if levels else []

    accepted({**BASE, "x": nested(6)})  # the map itself is level 1
    error = refused({**BASE, "x": nested(7), "id": "e1"})
    assert (error.code, error.event_id) == ("too_large", "e1")
    assert "8 levels" in error.detail


def test_text_classes_of_the_embedding_program_become_plain_text() -> None:
    class Name(StrEnum):
        CHAT = "c"

    class Number(IntEnum):
        FIRST = 817

    event = normalise({"type": "thinking", "conversation": Name.CHAT, "message": Number.FIRST})
    assert isinstance(event, Thinking)
    assert (type(event.conversation), event.conversation) == (str, "c")
    assert (type(event.message), event.message) == (str, "817")


def test_an_event_built_by_hand_is_checked_like_any_other() -> None:
    good = Received(conversation="c", message="m", direct=True, sent_at_ms=5)
    assert normalise(good) == good
    for bad, field in (
        (Thinking(conversation=""), "conversation"),
        (Thinking(conversation="c"), "message"),
        (Thinking(conversation="c", message="m", lease_ms=-5), "lease_ms"),
        (Text(conversation="c", message="m", visible="yes"), "visible"),  # type: ignore[arg-type]
        (Waiting(conversation="c", message="m", on="bus"), "on"),  # type: ignore[arg-type]
    ):
        with pytest.raises(DecodeError) as caught:
            normalise(bad)
        assert caught.value.field == field
    numbered: Any = 5
    assert normalise(Thinking(conversation=numbered, message="m")) == Thinking(conversation="5", message="m")


def test_normalise_leaves_the_callers_mapping_alone() -> None:
    source = {"type": "thinking", "conversation": 5, "message": 6}
    normalise(source)
    assert source == {"type": "thinking", "conversation": 5, "message": 6}


@pytest.mark.parametrize("bad", [None, 5, "thinking", [("type", "thinking")]])
def test_what_is_no_map_at_all_is_malformed(bad: Any) -> None:
    with pytest.raises(DecodeError, match="malformed"):
        normalise(bad)


def test_a_base_class_is_no_event() -> None:
    with pytest.raises(DecodeError, match="unknown type"):
        normalise(RunEvent(conversation="c", message="m"))


def test_embedded_text_without_utf8_form_is_refused() -> None:
    with pytest.raises(DecodeError) as caught:
        normalise({**BASE, "message": "half \ud83d"})
    assert (caught.value.code, caught.value.field) == ("bad_value", "message")
    with pytest.raises(DecodeError) as caught:
        normalise({**BASE, "id": "\ud83d"})
    assert caught.value.event_id is None


def test_embedded_events_have_the_same_size_limit() -> None:
    with pytest.raises(DecodeError) as caught:
        normalise({"type": "done", "conversation": "c", "message": "m", "reason": "x" * MAX_EVENT_BYTES})
    assert caught.value.code == "too_large"


def test_a_number_too_long_to_write_out_is_refused() -> None:
    for field in ("message", "id"):
        with pytest.raises(DecodeError) as caught:
            normalise({**BASE, field: 10**5000})
        assert (caught.value.code, caught.value.field) == ("wrong_type", field)


def test_long_ids_are_looked_for_whenever_the_size_does_not_rule_them_out() -> None:
    with pytest.raises(DecodeError):
        event_from_map({**BASE, "message": "é" * 128})
