"""Signal handlers, finalizers, patched and unpatched processes: each in an interpreter of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.real


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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs are started without it
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
