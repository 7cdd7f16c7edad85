"""Events that wait for their ack: order, repetition, and what gives way when there are too many."""

from __future__ import annotations

import pytest

from protocol.client.outbox import Outbox, OutboxFullError
from protocol.codec import Decoder
from protocol.events import Done, Event, Progress, Received, Thinking


def thinking(message: str) -> Thinking:
    return Thinking(conversation="c", message=message)


def done(message: str) -> Done:
    return Done(conversation="c", message=message)


def messages(data: bytes) -> list[str]:
    return [getattr(item, "message", "?") for item in Decoder().feed(data)]


def test_events_leave_once_in_order_with_ids_of_their_own() -> None:
    box = Outbox()
    ids = [box.add(thinking(name)) for name in "abc"]
    events = [item for item in Decoder().feed(box.take(10_000)) if isinstance(item, Event)]
    assert [event.id for event in events] == ids
    assert len(set(ids)) == 3
    assert box.take(10_000) == b""
    assert len(box) == 3


def test_an_id_of_the_programs_own_is_kept() -> None:
    box = Outbox()
    assert box.add(Thinking(conversation="c", message="m", id="mine")) == "mine"
    assert "mine" in box


def test_two_outboxes_never_use_the_same_id() -> None:
    assert Outbox().add(thinking("a")) != Outbox().add(thinking("a"))


def test_pieces_hold_whole_events() -> None:
    box = Outbox()
    for name in "abc":
        box.add(thinking(name))
    assert messages(box.take(1)) == ["a"]
    assert messages(box.take(10_000)) == ["b", "c"]


def test_a_new_connection_gets_what_is_left_again() -> None:
    box = Outbox()
    first = box.add(thinking("a"))
    box.add(thinking("b"))
    box.take(10_000)
    box.add(thinking("c"))
    box.settle(first)
    box.begin_again()
    assert messages(box.take(10_000)) == ["b", "c"]


def test_an_answer_to_something_long_gone_is_nothing() -> None:
    Outbox().settle("?")


def test_in_a_full_box_the_oldest_phase_makes_room() -> None:
    box = Outbox(capacity=3)
    box.add(Received(conversation="c", message="r", direct=True))
    for name in "ab":
        box.add(thinking(name))
    box.add(done("d"))
    box.add(Progress(conversation="c", message="p"))
    assert messages(box.take(10_000)) == ["r", "d", "p"]
    assert (len(box), box.dropped) == (3, 2)


def test_a_terminal_is_never_dropped_and_never_dropped_for() -> None:
    box = Outbox(capacity=2)
    box.add(done("a"))
    box.add(done("b"))
    assert box.add(thinking("x"))
    assert box.dropped == 1
    with pytest.raises(OutboxFullError, match="2 events wait"):
        box.add(done("c"))
    assert messages(box.take(10_000)) == ["a", "b"]
