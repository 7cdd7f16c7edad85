"""Futures: set once, waited for from anywhere, derived."""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import traceback
from typing import Any

import gevent
import pykka
import pytest

from actors.runtime import Future, HubDriver, Runtime
from tests.runtime.stand import Recorder, Stand, in_native_threads, native_sleep


def test_it_is_fulfilled_once() -> None:
    future: Future[int] = Future()
    assert not future.done
    future.set(1)
    assert bool(future.done)
    again: Any
    for again in (lambda: future.set(2), future.set_exception, lambda: future.set_get_hook(lambda timeout: 3)):
        with pytest.raises(queue.Full):
            again()
    assert future.get() == 1


def test_an_exception_is_raised_with_its_own_traceback_each_time() -> None:
    future: Future[int] = Future()

    def deep() -> None:
        raise LookupError("deep")

    try:
        deep()
    except LookupError:
        future.set_exception()
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            future.get()
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[-1] == "deep"
        assert frames.count("get") == 1


def test_an_exception_class_without_instance_is_made_one() -> None:
    future: Future[int] = Future()
    future.set_exception((ValueError, None, None))
    with pytest.raises(ValueError, match=r"^$"):
        future.get()


def test_map_filter_join_reduce() -> None:
    first: Future[Any] = Future()
    second: Future[Any] = Future()
    mapped = first.map(lambda value: value[0])
    kept = first.filter(lambda item: item > 1)
    both = first.join(second)
    total = first.reduce(lambda a, b: a + b, 10)
    first.set([1, 2, 3])
    second.set("x")
    assert mapped.get(timeout=0) == 1
    assert kept.get(timeout=0) == [2, 3]
    assert both.get(timeout=0) == [[1, 2, 3], "x"]
    assert total.get(timeout=0) == 16
    assert pykka.get_all([mapped, total]) == [1, 16]


def test_a_derived_value_is_computed_once_and_times_out_as_its_parent() -> None:
    calls: list[int] = []
    future: Future[int] = Future()
    derived = future.map(calls.append)
    with pytest.raises(pykka.Timeout):
        derived.get(timeout=0)
    future.set(1)
    assert derived.get() is derived.get() is None
    assert calls == [1]


@pytest.mark.real
@pytest.mark.parametrize("timeout", [0, 0.01])
def test_waiting_ends_with_the_timeout_in_a_thread_and_in_a_greenlet(timeout: float) -> None:
    future: Future[int] = Future()
    caught: list[str] = []

    def wait() -> None:
        try:
            future.get(timeout=timeout)
        except pykka.Timeout:
            caught.append("timeout")

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join()
    gevent.spawn(wait).join()
    assert caught == ["timeout"] * 2
    assert not future._waiters
    future.set(1)
    wait()
    assert len(caught) == 2


@pytest.mark.real
def test_it_wakes_threads_greenlets_of_other_hubs_and_asyncio_tasks_alike() -> None:
    future: Future[int] = Future()
    answers: list[Any] = []

    def in_thread() -> None:
        answers.append(("thread", future.get()))

    def in_other_hub() -> None:
        greenlets = [gevent.spawn(lambda: answers.append(("greenlet", future.get()))) for _ in range(3)]
        gevent.joinall(greenlets)
        gevent.get_hub().destroy(destroy_loop=True)

    def in_loop() -> None:
        async def wait() -> None:
            answers.extend(("task", value) for value in await asyncio.gather(*(_await(future) for _ in range(3))))

        asyncio.run(wait())

    def fulfil() -> None:
        while len(future._waiters) < 7:
            native_sleep(0.001)
        future.set(5)

    # Native ones: a patched process's threads share a hub, which must not be destroyed under them.
    in_native_threads(in_thread, in_other_hub, in_loop, fulfil)
    assert sorted(answers) == [("greenlet", 5)] * 3 + [("task", 5)] * 3 + [("thread", 5)]


async def _await(future: Any) -> Any:
    return await future


@pytest.mark.real
def test_await_leaves_the_loop_free_also_for_derived_and_stop_futures() -> None:
    async def scenario(runtime: Runtime) -> None:
        ref = runtime.spawn(Recorder)
        pending: Future[int] = Future()
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while not pending.done:
                beats += 1
                if beats == 3:
                    pending.set(1)
                await asyncio.sleep(0)

        hooked: Future[int] = Future()
        hooked.set_get_hook(lambda timeout: 7)
        waiting = asyncio.gather(
            _await(pending), _await(pending.map(lambda value: value + 1)), _await(pending.join(hooked)), beat()
        )
        assert list(await waiting)[:3] == [1, 2, [1, 7]]
        assert await ref.ask("hello", block=False) == "hello"
        with pytest.raises(ValueError, match="boom"):
            await ref.ask("boom", block=False)
        assert await ref.stop(block=False) is True

    with Runtime(HubDriver(watchdog_ms=0)).start_thread() as runtime:
        asyncio.run(scenario(runtime))


@pytest.mark.real
def test_a_cancelled_await_is_forgotten_and_a_closed_loop_harms_nobody() -> None:
    future: Future[int] = Future()

    async def give_up() -> None:
        task = asyncio.ensure_future(_await(future))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    assert not future._waiters
    loop = asyncio.new_event_loop()
    task = loop.create_task(_await(future))
    loop.run_until_complete(asyncio.sleep(0))
    coroutine_waits = bool(future._waiters)
    future.set(3)
    loop.run_until_complete(task)
    loop.close()
    assert coroutine_waits


def test_without_a_loop_await_is_pykkas_way() -> None:
    future: Future[int] = Future()
    future.set(4)
    steps = future.__await__()
    with pytest.raises(StopIteration) as caught:
        next(steps)
    assert caught.value.value == 4


def test_get_in_a_greenlet_of_the_runtimes_hub_waits_there(hub: Stand) -> None:
    ref = hub.runtime.spawn(Recorder)
    answers = [gevent.spawn(ref.ask, each) for each in range(20)]
    gevent.joinall(answers)
    assert [greenlet.value for greenlet in answers] == list(range(20))


def test_a_greenlet_killed_while_waiting_is_forgotten(hub: Stand) -> None:
    future: Future[int] = Future(hub.runtime.scheduler)
    hub.runtime.spawn(Recorder).ask("x")
    waiting = gevent.spawn(future.get)
    gevent.sleep(0)
    assert len(future._waiters) == 1
    waiting.kill()
    assert not future._waiters
    future.set(1)


def test_importing_the_runtime_does_not_import_asyncio() -> None:
    import subprocess

    code = "import sys, actors.runtime; from actors.runtime import Future; assert 'asyncio' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
