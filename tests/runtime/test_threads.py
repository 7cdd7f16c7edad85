"""From anywhere: threads, short-lived threads, signal handlers, finalizers, patched processes."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar

import gevent
import pykka
import pytest

from actors.runtime import Actor, GreenletActor, HubDriver, MailboxFullError, Runtime, WrongDriverError
from tests.runtime.stand import GreenletRecorder, Recorder, in_native_threads, native_sleep

pytestmark = pytest.mark.real


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    """A runtime in a thread of its own."""
    with Runtime(HubDriver(watchdog_ms=0)).start_thread() as runtime:
        yield runtime
    assert runtime.actor_count == 0


class Tally(Actor):
    """Checks that each sender's messages come complete and in order."""

    mailbox_capacity: ClassVar[int] = 1 << 40

    def __init__(self) -> None:
        self.last: dict[int, int] = {}

    def on_receive(self, message: Any) -> Any:
        if message is None:
            return dict(self.last)
        sender, number = message
        assert self.last.get(sender, -1) == number - 1
        self.last[sender] = number
        return None


class GreenletTally(Tally, GreenletActor):
    pass


@pytest.mark.parametrize(("kind", "each"), [(Tally, 250_000), (GreenletTally, 25_000)])
def test_no_message_is_lost_and_each_senders_order_holds(runtime: Runtime, kind: type[Actor], each: int) -> None:
    senders = 8
    ref = runtime.spawn(kind)

    def send(sender: int) -> None:
        for number in range(each):
            ref.tell((sender, number))

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ref.ask(None) == dict.fromkeys(range(senders), each - 1)
    assert runtime.backlog == 0


def test_asks_from_many_threads_all_get_their_own_answer(runtime: Runtime) -> None:
    ref = runtime.spawn(Recorder)
    wrong: list[Any] = []

    def ask(thread: int) -> None:
        for number in range(500):
            answer = ref.ask((thread, number), timeout=30)
            if answer != (thread, number):
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_flood_from_threads_is_bounded(runtime: Runtime) -> None:
    class Bounded(Tally):
        mailbox_capacity = 100

    ref = runtime.spawn(Bounded)
    held: list[bool] = []

    def hold() -> None:
        held.append(True)
        while held:
            native_sleep(0.001)

    runtime.call_soon(hold)
    while not held:
        native_sleep(0.001)
    taken = [0] * 4

    def flood(sender: int) -> None:
        for _ in range(1_000):
            try:
                ref.tell((sender, taken[sender]))
                taken[sender] += 1
            except MailboxFullError:
                pass

    in_native_threads(*(partial(flood, sender) for sender in range(4)))
    held.clear()
    while runtime.backlog:
        time.sleep(0.001)
    assert 100 <= sum(taken) <= 104
    assert sum(ref.ask(None).values()) == sum(taken) - sum(1 for count in taken if count)


def test_actors_can_be_started_and_stopped_from_many_threads(runtime: Runtime) -> None:
    def live(thread: int) -> None:
        for number in range(100):
            ref = runtime.spawn(Recorder, key=(thread, number))
            assert ref.ask("x") == "x"
            assert ref.stop() is True
            assert runtime.lookup((thread, number)) is None

    threads = [threading.Thread(target=live, args=(each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert runtime.actor_count == 0


def test_short_lived_threads_leave_nothing_behind(runtime: Runtime) -> None:
    ref = runtime.spawn(Recorder)

    def work(count: int) -> int:
        for _ in range(count):
            thread = threading.Thread(target=lambda: ref.ask("log", timeout=30))
            thread.start()
            thread.join()
        gc.collect()
        return len(gc.get_objects())

    work(50)
    before = work(50)
    assert work(500) - before < 200


def test_two_hubs_in_two_threads_do_not_meet() -> None:
    with Runtime(HubDriver(watchdog_ms=0)).start_thread() as one, Runtime(HubDriver(watchdog_ms=0)) as two:
        first = one.spawn(Recorder, key="same key")
        second = two.spawn(GreenletRecorder, key="same key")
        assert first is not second
        assert one.lookup("same key") is first
        assert two.lookup("same key") is second
        second.tell("x")
        assert first.ask("log") == ["start"]
        assert second.ask("log") == ["start", "x"]


def test_a_greenlet_of_the_runtimes_own_thread_can_close_it() -> None:
    runtime = Runtime(HubDriver(watchdog_ms=0)).start_thread()
    runtime.spawn(Recorder)
    runtime.call_soon(lambda: gevent.spawn(runtime.close))
    runtime.wait(timeout=30)
    assert runtime.actor_count == 0


def test_a_runtime_in_use_cannot_move_to_a_thread() -> None:
    with Runtime(HubDriver(watchdog_ms=0)) as runtime:
        runtime.spawn(Recorder).ask("x")
        with pytest.raises(WrongDriverError):
            runtime.start_thread()
    with Runtime.manual() as runtime, pytest.raises(WrongDriverError):
        runtime.start_thread()


def test_pykkas_own_start_uses_a_default_runtime_and_pykkas_registry() -> None:
    ref = Recorder.start()
    assert ref in pykka.ActorRegistry.get_all()
    assert ref.ask("x") == "x"
    assert pykka.ActorRegistry.get_by_urn(ref.actor_urn) is ref
    assert ref.stop() is True
    assert ref not in pykka.ActorRegistry.get_all()
    other = GreenletRecorder.start()
    assert all(pykka.ActorRegistry.stop_all())
    assert not other.is_alive()
