"""Lanes, bounds and overflow policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from actors.runtime import Exit, Future, MailboxFullError, Overflow, Runtime, Terminated
from tests.runtime.stand import Call, Narrow, Recorder, Stand, in_native_threads, plain


@dataclass(frozen=True)
class Item:
    name: str
    droppable: bool = True
    coalesce_key: str | None = None


class Shedding(Narrow):
    overflow: ClassVar[Overflow] = Overflow.DROP_OLDEST


class Newest(Narrow):
    overflow: ClassVar[Overflow] = Overflow.COALESCE


def names(log: list[Any]) -> list[str]:
    return [each.name for each in log if isinstance(each, Item)]


def test_a_full_lane_rejects_and_counts(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Narrow, log)
    for each in range(3):
        ref.tell(each)
    with pytest.raises(MailboxFullError, match="3 messages waiting"):
        ref.tell("too many")
    assert ref.dropped == 1
    assert stand.runtime.counters["dropped"] == 1
    assert stand.runtime.backlog == 3
    stand.settle()
    assert plain(log) == [0, 1, 2]
    assert stand.runtime.backlog == 0
    ref.tell("room again")
    stand.settle()
    assert plain(log)[-1] == "room again"


def test_a_full_lane_rejects_an_ask_at_once(stand: Stand) -> None:
    ref = stand.runtime.spawn(Narrow)
    for each in range(3):
        ref.tell(each)
    with pytest.raises(MailboxFullError):
        ref.ask("too many", block=False)


def test_a_stop_passes_a_full_lane(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Narrow, log)
    for each in range(3):
        ref.tell(each)
    assert ref.stop() is True
    assert log == ["start", 0, 1, 2, "stop"]


def test_answers_and_notices_pass_a_full_lane(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Narrow, log)
    other = stand.runtime.spawn(Recorder)
    future: Future[str] = Future()

    def work(actor: Recorder) -> None:
        for each in range(3):
            actor.actor_ref.tell(each)
        actor.pipe(future, lambda answer: answer)
        future.set("answer")
        actor.watch(other)

    ref.tell(Call(work))
    stand.runtime.stop(other)
    stand.settle()
    assert plain(log) == [0, 1, 2, "answer", Terminated(other, Exit.SHUTDOWN)]
    assert ref.dropped == 0


def test_drop_oldest_gives_up_the_oldest_droppable_message(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Shedding, log)
    for item in (Item("a", False), Item("b"), Item("c"), Item("d"), Item("e", False)):
        ref.tell(item)
    assert ref.dropped == 2
    stand.settle()
    assert names(log) == ["a", "d", "e"]


def test_drop_oldest_with_nothing_to_drop_drops_a_droppable_newcomer_and_rejects_another(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Shedding, log)
    for name in "abc":
        ref.tell(Item(name, False))
    ref.tell(Item("d"))
    with pytest.raises(MailboxFullError):
        ref.tell(Item("e", False))
    assert ref.dropped == 2
    stand.settle()
    assert names(log) == ["a", "b", "c"]


def test_drop_oldest_never_drops_an_ask_or_a_tick(stand: Stand) -> None:
    class EverythingDroppable(Shedding):
        @classmethod
        def droppable(cls, message: Any) -> bool:
            return True

    log: list[Any] = []
    ref = stand.runtime.spawn(EverythingDroppable, log)
    asked = ref.ask(Item("asked"), block=False)
    for name in "abcdef":
        ref.tell(Item(name))
    assert asked.get() == Item("asked")
    assert names(log) == ["asked", "e", "f"]


def test_coalesce_keeps_the_place_of_the_first_and_the_content_of_the_last(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Newest, log)
    for name, key in (("a1", "a"), ("b1", "b"), ("a2", "a"), ("plain", None), ("a3", "a"), ("b2", "b")):
        ref.tell(Item(name, coalesce_key=key))
    assert ref.dropped == 3
    with pytest.raises(MailboxFullError):
        ref.tell(Item("c1", coalesce_key="c"))
    stand.settle()
    assert names(log) == ["a3", "b2", "plain"]
    ref.tell(Item("a4", coalesce_key="a"))
    stand.settle()
    assert names(log)[-1] == "a4"


def test_the_system_lane_overtakes_a_backlog(stand: Stand) -> None:
    log: list[Any] = []
    ref = stand.runtime.spawn(Recorder, log)
    stand.settle()
    for each in range(1_000):
        ref.tell(each)
    assert stand.runtime.stop(ref).get() is True
    assert len(plain(log)) < 1_000
    assert log[-1] == "stop"
    assert stand.runtime.backlog == 0
    assert stand.runtime.dead_letters.count == 1_000 - len(plain(log))


def test_an_idle_mailbox_owns_no_lane(stand: Stand) -> None:
    ref = stand.runtime.spawn(Recorder)
    ref.tell(1)
    assert ref.depth == 1
    stand.settle()
    assert ref.depth == 0
    assert ref.empty()
    assert ref.lane is None
    assert ref.system is None
    assert ref.timers is None


def test_a_deep_mailbox_is_named_in_the_log_once(stand: Stand, caplog: pytest.LogCaptureFixture) -> None:
    stand.runtime.scheduler.alarm.depth = 100
    ref = stand.runtime.spawn(Recorder, key="deep one")
    for each in range(500):
        ref.tell(each)
    stand.settle()
    warnings = [record.getMessage() for record in caplog.records if "messages waiting" in record.getMessage()]
    assert len(warnings) == 1
    assert "'deep one'" in warnings[0]


def flood(runtime: Runtime, ref: Any, count: int, message: Any = None) -> int:
    """Tell from another thread while the runtime does not run; how many were refused."""
    refused = 0

    def work() -> None:
        nonlocal refused
        for each in range(count):
            try:
                ref.tell(each if message is None else message)
            except MailboxFullError:
                refused += 1

    in_native_threads(work)
    return refused


def test_a_flood_from_another_thread_counts_against_the_same_bound(manual: Stand) -> None:
    log: list[Any] = []
    ref = manual.runtime.spawn(Narrow, log)
    manual.settle()
    ref.tell("local")
    assert flood(manual.runtime, ref, 10) == 8
    assert ref.depth == 3
    for _ in range(2):  # those on their way have their room already, but the lane is not full
        ref.tell("local")
    with pytest.raises(MailboxFullError):
        ref.tell("local")
    manual.settle()
    assert [each for each in plain(log) if isinstance(each, int)] == [0, 1]


def test_a_flood_from_another_thread_is_bounded_where_the_policy_makes_room(manual: Stand) -> None:
    log: list[Any] = []
    ref = manual.runtime.spawn(Shedding, log)
    refused = flood(manual.runtime, ref, 10, Item("x", False))
    assert refused == 7
    manual.settle()
    assert len(names(log)) == 3
    assert flood(manual.runtime, ref, 10, Item("y")) == 7


def test_a_flood_of_one_mailbox_takes_no_room_from_another(manual: Stand) -> None:
    crowded = manual.runtime.spawn(Narrow)
    log: list[Any] = []
    other = manual.runtime.spawn(Narrow, log)
    flood(manual.runtime, crowded, 100)
    assert flood(manual.runtime, other, 3) == 0
    manual.settle()
    assert plain(log) == [0, 1, 2]


def test_nothing_is_kept_of_a_hand_over_that_is_done(manual: Stand) -> None:
    ref = manual.runtime.spawn(Recorder)
    flood(manual.runtime, ref, 100)
    manual.settle()
    assert not manual.runtime.scheduler.handover._lanes
    manual.runtime.stop(ref).get()
    in_native_threads(lambda: ref.ask("x", block=False))
    assert not manual.runtime.scheduler.handover._lanes


def test_the_handler_may_fill_its_own_mailbox(stand: Stand) -> None:
    class Echo(Recorder):
        def on_receive(self, message: Any) -> Any:
            if isinstance(message, int) and message:
                self.actor_ref.tell(message - 1)
            return super().on_receive(message)

    log: list[Any] = []
    ref = stand.runtime.spawn(Echo, log)
    ref.tell(40)
    stand.settle()
    assert plain(log) == list(range(40, -1, -1))
    assert ref.ask(Call(lambda actor: actor.actor_ref.depth)) == 0
