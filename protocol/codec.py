"""Events and replies as msgpack, in and out.

The wire is a stream of msgpack maps with nothing around them. A decoder takes bytes as they come, in pieces
of any size, and gives the events in them; the pieces never change the result. What it holds is bounded: one
unfinished event of at most 64 KiB.

Two kinds of fault. An event that is well-formed msgpack but no good event is given as a `DecodeError` in its
place, and the stream goes on. What breaks the framing (not a map at the top, bytes that are no msgpack, text
that is not UTF-8, a map or list as key, an extension type or timestamp, too many items, too long) is given as
a *fatal* `DecodeError`; it is the last thing the decoder gives, because nothing after it can be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import msgpack
import msgspec

from protocol.convert import MAX_DEPTH, MAX_EVENT_BYTES, MAX_ID_BYTES, REPLY_TYPES, event_from_map, normalise
from protocol.errors import DecodeError
from protocol.events import Code, Event, Reply

__all__ = [
    "MAX_DEPTH",
    "MAX_EVENT_BYTES",
    "MAX_ID_BYTES",
    "MAX_ITEMS",
    "DecodeError",
    "Decoder",
    "ReplyDecoder",
    "encode",
    "normalise",
]

MAX_ITEMS = 64
"""Entries of one list or map a client may send. The unpacker sets aside room for a whole list when it reads
its head, so this, times its own depth limit, is what a few bytes can make it allocate."""
MAX_REPLY_ITEMS = 65_536
MAX_REPLY_BYTES = 1_048_576

T = TypeVar("T")

_ENCODER = msgspec.msgpack.Encoder()


def encode(message: Event | Reply) -> bytes:
    """One msgpack map; fields at their default are left out."""
    return _ENCODER.encode(message)


def _refuse_extension(code: int, data: bytes) -> NoReturn:
    raise ValueError("max_ext_len")


class _StreamDecoder(Generic[T]):
    """Cuts a stream into maps within the caps; what a map means is up to ``build``."""

    def __init__(self, build: Callable[[dict[Any, Any], int], T], max_items: int, max_bytes: int) -> None:
        self._build = build
        self._max_bytes = max_bytes
        self._unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,  # a number as key spoils its event, not the stream
            ext_hook=_refuse_extension,
            max_ext_len=0,
            max_str_len=max_bytes,
            max_bin_len=max_bytes,
            max_array_len=max_items,
            max_map_len=max_items,
            read_size=min(4_096, max_bytes),  # first size of its buffer
            max_buffer_size=2 * max_bytes + 2,
        )
        self._fed = 0
        self._start = 0
        """Offset of the first byte that belongs to no finished map."""
        self.broken: DecodeError | None = None
        """The fatal error that ended this stream."""

    @property
    def pending(self) -> int:
        """Bytes of the unfinished event at the end of what came so far."""
        return self._fed - self._start

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[T | DecodeError]:
        """What ``data`` completes, in order, lazily: the iterator has to be used up before the next
        ``feed``."""
        view = memoryview(data)
        while view and self.broken is None:
            room = self._max_bytes + 1 - self.pending  # one byte too many shows that it is too long
            piece, view = view[:room], view[room:]
            self._unpacker.feed(piece)
            self._fed += len(piece)
            yield from self._drain()
            if self.pending > self._max_bytes and self.broken is None:
                yield self._break("too_large", self._too_long())

    def _drain(self) -> Iterator[T | DecodeError]:
        unpacker = self._unpacker
        tell = unpacker.tell
        build = self._build
        try:
            for item in unpacker:
                end = tell()
                size = end - self._start
                self._start = end
                if size > self._max_bytes:
                    yield self._break("too_large", self._too_long())
                    return
                if type(item) is not dict:
                    yield self._break("malformed", "only maps are events; this is something else")
                    return
                try:
                    built: T | DecodeError = build(item, size)
                except DecodeError as error:
                    built = error
                yield built
        except (ValueError, TypeError, RecursionError) as error:
            yield self._break(*self._framing_fault(error))

    def _break(self, code: Code, detail: str) -> DecodeError:
        self.broken = DecodeError(code, detail, fatal=True)
        return self.broken

    def _too_long(self) -> str:
        return f"an event has at most {self._max_bytes} bytes"

    def _framing_fault(self, error: Exception) -> tuple[Code, str]:
        """Code and words for what the unpacker refused. Its own texts are only used to choose the words."""
        if isinstance(error, UnicodeDecodeError):
            return "malformed", "text that is not UTF-8"
        if isinstance(error, TypeError):
            return "malformed", "a map or list cannot be a key"
        if isinstance(error, (msgpack.StackError, RecursionError)):
            return "too_large", f"nested deeper than {MAX_DEPTH} levels"
        text = str(error)
        if "max_ext_len" in text or "timestamp" in text:
            return "malformed", "extension types and timestamps are not used here"
        if "max_array_len" in text or "max_map_len" in text:
            return "too_large", "too many items in one list or map"
        if "max_" in text:
            return "too_large", self._too_long()
        return "malformed", "these bytes are no msgpack"


class Decoder(_StreamDecoder[Event]):
    """Bytes from a client to events of at most ``max_event_bytes``."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(event_from_map, MAX_ITEMS, max_event_bytes)


class ReplyDecoder(_StreamDecoder[Reply]):
    """Bytes from livesign to replies. One of a later version is a `DecodeError` to pass over."""

    def __init__(self) -> None:
        super().__init__(_reply_from_map, MAX_REPLY_ITEMS, MAX_REPLY_BYTES)


def _reply_from_map(source: dict[Any, Any], size: int) -> Reply:
    try:
        return msgspec.convert(source, REPLY_TYPES[source["type"]])
    except (KeyError, TypeError):
        raise DecodeError("unknown_type", "a reply of unknown type", field="type") from None
    except msgspec.ValidationError as error:
        raise DecodeError("bad_value", f"a reply that does not fit its type: {error}") from None
