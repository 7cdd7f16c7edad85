"""From anywhere: threads, short-lived threads, signal handlers, finalizers, patched processes."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pykka
import pytest

from actors.runtime import Actor, GreenletActor, HubDriver, MailboxFullError, Runtime, WrongDriverError
from tests.runtime.stand import GreenletRecorder, Recorder

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


@pytest.mark.parametrize("kind", [Tally, GreenletTally])
def test_no_message_is_lost_and_each_senders_order_holds(runtime: Runtime, kind: type[Actor]) -> None:
    senders, each = 8, 25_000
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
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        leave.wait(10)

    runtime.call_soon(hold)
    entered.wait(10)
    taken = [0] * 4

    def flood(sender: int) -> None:
        for _ in range(1_000):
            try:
                ref.tell((sender, taken[sender]))
                taken[sender] += 1
            except MailboxFullError:
                pass

    threads = [threading.Thread(target=flood, args=(sender,)) for sender in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leave.set()
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


# --- in a process of its own


def run(script: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


SIGNALS = """
    import signal, gevent
    from actors.runtime import Actor, HubDriver, Runtime
    class Tally(Actor):
        mailbox_capacity = 1 << 40
        told = handled = 0
        def on_receive(self, message):
            Tally.handled += message
    runtime = Runtime(HubDriver(watchdog_ms=0))
    refs = [runtime.spawn(Tally) for _ in range(3)]
    rang = 0
    def ring(*_):
        global rang
        rang += 1
        for ref in refs:
            ref.tell(1)
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
    told = 0
    while rang < 20_000:
        for ref in refs:
            ref.tell(1)
            told += 1
        if told % 30 == 0:
            gevent.sleep(0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    while runtime.backlog:
        gevent.sleep(0.001)
    assert Tally.handled == told + 3 * rang, (Tally.handled, told, rang)
    assert not any(ref.queued or ref.lane for ref in refs)
    runtime.close()
    print("nothing lost")
"""


def test_signal_handlers_on_the_runtimes_own_thread_lose_nothing() -> None:
    assert "nothing lost" in run(SIGNALS)


FINALIZERS = """
    import gc, gevent
    from actors.runtime import Actor, HubDriver, Runtime
    class Tally(Actor):
        mailbox_capacity = 1 << 40
        handled = 0
        def on_receive(self, message):
            Tally.handled += 1
    runtime = Runtime(HubDriver(watchdog_ms=0))
    ref = runtime.spawn(Tally)
    dropped = 0
    class Dropped:
        def __init__(self):
            self.me = self
        def __del__(self):
            global dropped
            dropped += 1
            ref.tell("finalized")
    gc.set_threshold(10, 2, 2)
    told = 0
    while dropped < 20_000:
        Dropped()
        ref.tell("plain")
        told += 1
        if told % 50 == 0:
            gevent.sleep(0)
    gc.disable()
    while runtime.backlog:
        gevent.sleep(0.001)
    assert Tally.handled == told + dropped, (Tally.handled, told, dropped)
    print("nothing lost")
"""


def test_finalizers_lose_nothing() -> None:
    assert "nothing lost" in run(FINALIZERS)


STOP_BY_SIGNAL = """
    import os, signal, gevent
    from actors.runtime import Actor, HubDriver, Runtime
    class Restless(Actor):
        def on_receive(self, message):
            self.actor_ref.tell(message)
        def on_stop(self):
            print("stopped")
    runtime = Runtime(HubDriver(watchdog_ms=0))
    signal.signal(signal.SIGTERM, lambda *_: runtime.shutdown(deadline_ms=2_000))
    for _ in range(3):
        runtime.spawn(Restless).tell("x")
    gevent.spawn_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
    runtime.wait(timeout=30)
    assert runtime.actor_count == 0
"""


def test_a_signal_handler_can_stop_a_busy_runtime() -> None:
    assert run(STOP_BY_SIGNAL).count("stopped") == 3


INTERRUPT = """
    import os, signal, gevent
    from actors.runtime import Actor, HubDriver, Runtime
    class Restless(Actor):
        def on_receive(self, message):
            self.actor_ref.tell(message)
    runtime = Runtime(HubDriver(watchdog_ms=0))
    for _ in range(3):
        runtime.spawn(Restless).tell("x")
    gevent.spawn_later(0.05, os.kill, os.getpid(), signal.SIGINT)
    try:
        runtime.wait(timeout=30)
    except KeyboardInterrupt:
        print("interrupted")
    runtime.close()
    assert runtime.actor_count == 0
"""


def test_control_c_stops_a_busy_runtime_and_comes_out_of_wait() -> None:
    assert "interrupted" in run(INTERRUPT)


BOTH_WAYS = """
    PATCH
    import threading, time
    import gevent
    from actors.runtime import Actor, ChildSpec, GreenletActor, HubDriver, Runtime, Supervisor
    class Echo(Actor):
        def on_receive(self, message):
            if message == "boom":
                raise ValueError
            return message
    class Waiting(GreenletActor):
        def on_receive(self, message):
            gevent.sleep(0.001)
            return message
    class Parent(Supervisor):
        def on_start(self):
            self.start_child(ChildSpec("a", Echo, key="a"))
            self.start_child(ChildSpec("b", Waiting, key="b"))
    def use(runtime):
        runtime.spawn(Parent).ask(None)
        a, b = runtime.lookup("a"), runtime.lookup("b")
        answers = []
        def work():
            for number in range(50):
                assert a.ask(number, timeout=30) == number
            answers.append(b.ask("b", timeout=30))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        while any(thread.is_alive() for thread in threads): gevent.sleep(0.001)
        a.tell("boom")
        assert a.ask("again", timeout=30) == "again"
        assert answers == ["b"] * 4, answers
        runtime.close()
    use(Runtime(HubDriver(watchdog_ms=1000)).start_thread())
    use(Runtime(HubDriver(watchdog_ms=1000)))
    assert Echo.start().ask("default", timeout=30) == "default"
    print("fine", time.sleep.__module__ if hasattr(time.sleep, "__module__") else "")
"""


@pytest.mark.parametrize("patch", ["", "import gevent.monkey; gevent.monkey.patch_all()"])
def test_it_works_in_a_patched_and_in_an_unpatched_process(patch: str) -> None:
    assert "fine" in run(BOTH_WAYS.replace("PATCH", patch))
