"""The stream of maps: caps, framing faults, pieces of any size, and the bytes themselves."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgpack
import pytest

from protocol.codec import MAX_EVENT_BYTES, Decoder, ReplyDecoder, encode
from protocol.convert import REPLY_TYPES
from protocol.errors import DecodeError
from protocol.events import (
    Ack,
    Closing,
    Done,
    Event,
    Gap,
    Ping,
    Pong,
    Received,
    Rejected,
    State,
    Thinking,
    ToolEnd,
)

GOOD = {"type": "thinking", "conversation": "c", "message": "m"}
EVENT = Thinking(conversation="c", message="m")


def fed(*pieces: bytes) -> list[Any]:
    decoder = Decoder()
    return [item for piece in pieces for item in decoder.feed(piece)]


def padded(size: int) -> bytes:
    """A good event of exactly ``size`` bytes on the wire."""
    empty = len(msgpack.packb({**GOOD, "x": b"y" * 300})) - 300
    data = msgpack.packb({**GOOD, "x": b"y" * (size - empty)})
    assert isinstance(data, bytes)
    assert len(data) == size
    return data


@pytest.mark.parametrize(
    ("event", "golden"),
    [
        (Ping(), "81a474797065a470696e67"),
        (
            Received(conversation="-100123", message="817", direct=False, id="1"),
            "de0005a474797065a87265636569766564a26964a131ac636f6e766572736174696f6ea72d313030313233a76d657373616765a3383137"
            "a6646972656374c2",
        ),
        (
            ToolEnd(conversation="c", run="r", call="k", ok=False),
            "85a474797065a8746f6f6c5f656e64ac636f6e766572736174696f6ea163a372756ea172a463616c6ca16ba26f6bc2",
        ),
        (
            Done(conversation="c", message="m", lease_ms=600_000, reason="ok"),
            "85a474797065a4646f6e65ac636f6e766572736174696f6ea163a76d657373616765a16da86c656173655f6d73ce000927c0a6726561"
            "736f6ea26f6b",
        ),
    ],
)
def test_events_have_their_golden_bytes(event: Event, golden: str) -> None:
    assert encode(event).hex() == golden
    assert fed(bytes.fromhex(golden)) == [event]
    assert msgpack.unpackb(bytes.fromhex(golden))["type"] == type(event).__struct_config__.tag


def test_replies_have_their_golden_bytes() -> None:
    assert encode(Pong()).hex() == "81a474797065a4706f6e67"
    assert encode(Ack(id="1", result="late")).hex() == "83a474797065a361636ba26964a131a6726573756c74a46c617465"
    assert encode(Rejected(code="bad_value", detail="on: no", field="on")) == msgpack.packb(
        {"type": "rejected", "code": "bad_value", "detail": "on: no", "field": "on"}
    )


def test_replies_come_back_as_they_were() -> None:
    replies = [
        Pong(), Ack(id="1", result="applied"), Gap(dropped=3), Closing(reason="bye"),
        Rejected(code="limit", detail="too many", id="4"),
        State(account="a", conversation="c", run="r", phase="thinking", shown=["🤔"] * 70, typing=True),
    ]  # fmt: skip
    decoder = ReplyDecoder()
    assert list(decoder.feed(b"".join(map(encode, replies)))) == replies
    assert sorted(REPLY_TYPES) == [
        "ack", "call", "closing", "gap", "pong", "rejected", "state", "stats", "welcome",
    ]  # fmt: skip


def test_a_reply_of_a_later_version_is_passed_over() -> None:
    decoder = ReplyDecoder()
    later, wrong, pong = decoder.feed(
        b"".join(map(msgpack.packb, ({"type": "aura"}, {"type": "gap", "dropped": "x"}, {"type": "pong"})))
    )
    assert isinstance(later, DecodeError)
    assert isinstance(wrong, DecodeError)
    assert pong == Pong()


def test_a_bad_event_is_answered_in_its_place_and_the_stream_goes_on() -> None:
    bad = msgpack.packb({"type": "thinking", "message": "m"})
    first, error, last = fed(encode(EVENT) + bad + encode(EVENT))
    assert (first, last) == (EVENT, EVENT)
    assert isinstance(error, DecodeError)
    assert not error.fatal


BROKEN = {
    "a number at the top": (b"\x05", "malformed", "only maps"),
    "text at the top": (msgpack.packb("thinking"), "malformed", "only maps"),
    "a list at the top": (msgpack.packb([GOOD]), "malformed", "only maps"),
    "null at the top": (b"\xc0", "malformed", "only maps"),
    "an HTTP request": (b"GET / HTTP/1.1\r\n\r\n", "malformed", "only maps"),
    "a TLS hello": (bytes.fromhex("16030100c6"), "malformed", "only maps"),
    "the byte that is never used": (b"\xc1", "malformed", "no msgpack"),
    "text that is not UTF-8": (b"\x81\xa1a\xa1\xff", "malformed", "UTF-8"),
    "a key that is not UTF-8": (b"\x81\xa1\xff\x01", "malformed", "UTF-8"),
    "a list as key": (b"\x81\x91\x01\x01", "malformed", "key"),
    "a map as key": (b"\x81\x81\x01\x01\x01", "malformed", "key"),
    "an extension": (b"\x81\xa1x\xd4\x05a", "malformed", "extension"),
    "an empty extension": (b"\x81\xa1x\xc7\x00\x05", "malformed", "extension"),
    "a timestamp": (b"\x81\xa1x\xd6\xff\x00\x00\x00\x00", "malformed", "extension"),
    "an empty timestamp": (b"\x81\xa1x\xc7\x00\xff", "malformed", "extension"),
    "an extension at the top": (b"\xd4\x05a", "malformed", "extension"),
    "a header of two thousand million entries": (b"\x81\xa1x\xdd\x7f\xff\xff\xff", "too_large", "too many"),
    "a map of two thousand million entries": (b"\xdf\x7f\xff\xff\xff", "too_large", "too many"),
    "nine bytes that ask for gigabytes": (bytes.fromhex("9ffd74f7dd74fffdbd"), "too_large", "too many"),
    "too deep to take apart": (b"\x91" * 2_000, "too_large", "deeper"),
    "one byte too many": (padded(MAX_EVENT_BYTES + 1), "too_large", "at most 65536 bytes"),
    "without end": (b"\x81\xa1x\xc6\x00\x10\x00\x00" + b"y" * 70_000, "too_large", "at most 65536 bytes"),
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_what_breaks_the_framing_ends_the_stream(name: str) -> None:
    data, code, words = BROKEN[name]
    first, *rest = fed(encode(EVENT) + data + encode(EVENT) * 3)
    assert first == EVENT
    [error] = rest
    assert isinstance(error, DecodeError)
    assert (error.fatal, error.code) == (True, code)
    assert words in error.detail


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_after_a_fatal_error_nothing_is_given_any_more(name: str) -> None:
    decoder = Decoder()
    [error] = decoder.feed(BROKEN[name][0])
    assert decoder.broken is error
    assert list(decoder.feed(encode(EVENT) * 3)) == []


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_pieces_do_not_change_a_framing_fault(name: str) -> None:
    data = encode(EVENT) + BROKEN[name][0]
    whole = [getattr(item, "detail", item) for item in fed(data)]
    bytewise = [getattr(item, "detail", item) for item in fed(*(data[i : i + 1] for i in range(len(data))))]
    assert bytewise == whole


def test_an_event_may_be_exactly_as_long_as_the_limit() -> None:
    assert fed(padded(MAX_EVENT_BYTES) * 2) == [EVENT, EVENT]


def test_many_events_may_come_in_one_piece() -> None:
    assert fed(encode(EVENT) * 20_000) == [EVENT] * 20_000


def test_a_list_or_map_in_an_unknown_field_may_have_64_items() -> None:
    for items in ([0] * 64, {str(n): n for n in range(64)}):
        assert fed(msgpack.packb({**GOOD, "x": items})) == [EVENT]
    for items in ([0] * 65, {str(n): n for n in range(65)}):
        [error] = fed(msgpack.packb({**GOOD, "x": items}))
        assert error.fatal


def test_the_limit_of_an_event_can_be_lowered() -> None:
    decoder = Decoder(max_event_bytes=1_024)
    good, error = decoder.feed(padded(1_024) + padded(1_025))
    assert good == EVENT
    assert isinstance(error, DecodeError)
    assert (error.fatal, error.detail) == (True, "an event has at most 1024 bytes")


def test_an_unfinished_event_is_counted_and_bounded() -> None:
    decoder = Decoder()
    data = padded(MAX_EVENT_BYTES)
    assert list(decoder.feed(encode(EVENT) + data[:-1])) == [EVENT]
    assert decoder.pending == MAX_EVENT_BYTES - 1
    assert list(decoder.feed(data[-1:])) == [EVENT]
    assert decoder.pending == 0


@pytest.mark.parametrize(
    "attack",
    [
        b"\xdc\x00\x40" * 1_000,
        b"\xdc\x03\xe8" * 1_000,
        b"\x81\xa1x" * 1_000,
        bytes.fromhex("9ffd74f7dd74fffdbd"),
        b"\xdd\x7f\xff\xff\xff" * 10,
        b"\x81\xa1x\xc6\x7f\xff\xff\xff" + b"y" * 60_000,
    ],
)
def test_no_header_makes_the_decoder_take_a_megabyte(attack: bytes) -> None:
    list(Decoder().feed(encode(EVENT)))
    tracemalloc.start()
    try:
        list(Decoder().feed(attack))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
