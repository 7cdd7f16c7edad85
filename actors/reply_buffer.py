"""Replies on their way to one connection: encoded, in order, bounded.

`State` replies are worth little when late: above ``soft_bytes`` they are dropped, and the reader is told how
many by one `Gap` as soon as it reads again. Every other reply stays; a buffer above ``hard_bytes`` of those
is one whose peer does not read, and its connection is to be closed.
"""

from __future__ import annotations

from protocol.codec import encode
from protocol.events import Gap, Reply, State

SOFT_BYTES = 262_144
HARD_BYTES = 1_048_576


class ReplyBuffer:
    """What `take` hands to the socket is out of the bounds' sight, so one socket buffer more may be under
    way."""

    __slots__ = ("_chunks", "_gap", "_hard_bytes", "_soft_bytes", "dropped", "size")

    def __init__(self, soft_bytes: int = SOFT_BYTES, hard_bytes: int = HARD_BYTES) -> None:
        self._soft_bytes = soft_bytes
        self._hard_bytes = hard_bytes
        self._chunks: list[bytes] = []
        self._gap = 0
        self.size = 0
        """Bytes that wait."""
        self.dropped = 0
        """States dropped so far."""

    @property
    def crowded(self) -> bool:
        """Whether the peer should be read no further until it has read its replies."""
        return self.size > self._soft_bytes

    def put(self, reply: Reply) -> bool:
        """False: the buffer is over its hard limit."""
        if self.crowded and isinstance(reply, State):
            self._gap += 1
            self.dropped += 1
            return True
        data = encode(reply)
        self._chunks.append(data)
        self.size += len(data)
        return self.size <= self._hard_bytes

    def take(self) -> bytes:
        """Everything that waits, and with it the notice of what was dropped meanwhile."""
        if self._gap:
            self._chunks.append(encode(Gap(dropped=self._gap)))
            self._gap = 0
        data = b"".join(self._chunks)
        self._chunks.clear()
        self.size = 0
        return data
