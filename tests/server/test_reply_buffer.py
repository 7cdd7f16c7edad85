"""Replies that wait: in order, bounded, states first to go."""

from __future__ import annotations

from actors.reply_buffer import ReplyBuffer
from protocol.codec import ReplyDecoder, encode
from protocol.events import Ack, Gap, Pong, Reply, State

SIZE = len(encode(Ack(id="1", result="applied")))


def state(phase: str) -> State:
    return State(account="a", conversation="c", run="r", phase=phase, shown=[], typing=False)


def taken(buffer: ReplyBuffer) -> list[Reply]:
    return [item for item in ReplyDecoder().feed(buffer.take()) if isinstance(item, Reply)]


def test_replies_leave_in_the_order_they_came() -> None:
    buffer = ReplyBuffer()
    replies = [Pong(), state("thinking"), Ack(id="1", result="applied")]
    assert all(buffer.put(reply) for reply in replies)
    assert taken(buffer) == replies
    assert buffer.size == 0
    assert buffer.take() == b""


def test_above_the_soft_limit_states_are_dropped_and_the_gap_is_told_once() -> None:
    buffer = ReplyBuffer(soft_bytes=SIZE, hard_bytes=100 * SIZE)
    acks = [Ack(id="1", result="applied")] * 2
    for ack in acks:
        buffer.put(ack)
    assert buffer.crowded
    for _ in range(3):
        assert buffer.put(state("tool"))
    assert buffer.put(Ack(id="2", result="applied"))
    assert taken(buffer) == [*acks, Ack(id="2", result="applied"), Gap(dropped=3)]
    assert buffer.dropped == 3
    assert buffer.put(state("done"))
    assert taken(buffer) == [state("done")]


def test_what_must_not_be_dropped_is_kept_until_the_hard_limit_and_then_reported() -> None:
    buffer = ReplyBuffer(soft_bytes=SIZE, hard_bytes=3 * SIZE)
    ack = Ack(id="1", result="applied")
    assert [buffer.put(ack) for _ in range(4)] == [True, True, True, False]
    assert taken(buffer) == [ack] * 4
