"""Slow, hanging and stopping services, over real sockets and on the real clock."""

from __future__ import annotations

import socket
import threading
import time

import gevent
import pytest

from actors.sandbox import FaultPlan, Rule, SandboxClient, SandboxOptions, SandboxService
from tests.sandbox.asking import Asker, mark_path, running

pytestmark = pytest.mark.real


def raw_call(service: SandboxService, path: str) -> socket.socket:
    """Send a call and do not wait for its answer."""
    connection = gevent.socket.create_connection(("127.0.0.1", service.port))
    connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer support\r\n\r\n".encode())
    return connection


def until(asker: Asker, op: str, outcome: str) -> None:
    """Wait until the service has counted a call with this outcome."""
    with gevent.Timeout(5):
        while outcome not in asker.client.calls().counts.get(op, {}):
            gevent.sleep(0.002)


def test_a_call_on_a_kept_connection_does_not_wait_for_delayed_acknowledgements() -> None:
    with running() as asker:
        start_s = time.monotonic()
        for _ in range(50):
            asker.mark("PUT", "c", "m", "👀")
        assert time.monotonic() - start_s < 1.0  # it would be above 2 s


def test_a_delay_is_kept_and_runs_faster_with_the_services_time() -> None:
    for time_scale, least_s, most_s in ((1.0, 0.1, 1.0), (20.0, 0.005, 0.09)):
        plan = FaultPlan(latency_ms=100)
        with running(SandboxOptions(plan=plan, time_scale=time_scale)) as asker:
            start_s = time.monotonic()
            assert asker.mark("PUT", "c", "m", "👀").status == 200
            assert least_s <= time.monotonic() - start_s < most_s


def test_a_delayed_call_takes_effect_at_the_end_of_its_delay_and_others_do_not_wait_for_it() -> None:
    plan = FaultPlan(rules=(Rule(message="slow", latency_ms=200),))
    with running(SandboxOptions(plan=plan)) as asker:
        slow = gevent.spawn(asker.mark, "PUT", "c", "slow", "👀")
        gevent.sleep(0.02)
        assert asker.mark("PUT", "c", "quick", "👀").status == 200
        assert (asker.client.marks("c", "quick"), asker.client.marks("c", "slow")) == (["👀"], [])
        assert slow.get(timeout=5).status == 200
        assert asker.client.marks("c", "slow") == ["👀"]


def test_a_client_that_does_not_wait_for_a_delay_has_its_call_take_effect_when_it_leaves() -> None:
    plan = FaultPlan(rules=(Rule(latency_ms=60_000),))
    with running(SandboxOptions(plan=plan)) as asker:
        connection = raw_call(asker.service, mark_path("c", "m", "x"))
        gevent.sleep(0.05)
        assert asker.client.state().marks == 0
        connection.close()
        until(asker, "set", "left")
        assert asker.client.marks("c", "m") == ["x"]


def test_a_failing_call_whose_client_left_has_no_effect_unless_the_rule_says_so() -> None:
    for applied in (False, True):
        plan = FaultPlan(rules=(Rule(latency_ms=60_000, outcome="transient", applied=applied),))
        with running(SandboxOptions(plan=plan)) as asker:
            raw_call(asker.service, mark_path("c", "m", "x")).close()
            until(asker, "set", "left")
            assert asker.client.state().marks == int(applied)


@pytest.mark.parametrize("applied", [False, True])
def test_a_hanging_call_is_never_answered_and_ends_when_its_client_leaves(applied: bool) -> None:
    plan = FaultPlan(rules=(Rule(outcome="hang", applied=applied),))
    with running(SandboxOptions(plan=plan)) as asker:
        connection = raw_call(asker.service, mark_path("c", "m", "x"))
        until(asker, "set", "hang")
        assert asker.client.state().marks == int(applied)
        connection.settimeout(0.05)
        with pytest.raises(TimeoutError):
            connection.recv(1)
        open_before = connections(asker.service)
        connection.close()
        with gevent.Timeout(5):
            while connections(asker.service) == open_before:
                gevent.sleep(0.002)
        assert asker.client.calls().last[-1].ended_ms is None


def connections(service: SandboxService) -> int:
    assert service._clients is not None
    return len(service._clients)


def test_stopping_closes_idle_slow_and_hanging_connections_without_an_answer() -> None:
    plan = FaultPlan(rules=(Rule(message="hang", outcome="hang"), Rule(message="slow", latency_ms=60_000)))
    with running(SandboxOptions(plan=plan)) as asker:
        service = asker.service
        port = service.port
        held = [raw_call(service, mark_path("c", message, "x")) for message in ("hang", "slow", "idle")]
        with gevent.Timeout(5):
            assert held[2].recv(4_096).startswith(b"HTTP/1.1 200 OK")
        until(asker, "set", "hang")
        start_s = time.monotonic()
        service.stop()
        assert time.monotonic() - start_s < 0.5
        with gevent.Timeout(5):
            # the idle one may still have the body of its answer to read
            assert [connection.recv(4_096) for connection in held[:2]] == [b"", b""]
            while held[2].recv(4_096):
                pass
        with pytest.raises(ConnectionRefusedError):
            gevent.socket.create_connection(("127.0.0.1", port))
        for connection in held:
            connection.close()
        with pytest.raises(RuntimeError, match="not running"):
            _ = service.port


def test_a_stopped_service_starts_again_with_all_it_had() -> None:
    with running() as asker:
        asker.mark("PUT", "c", "m", "👀")
        asker.service.stop()
        asker.service.start()
        again = SandboxClient(asker.service.base_url)
        assert again.marks("c", "m") == ["👀"]
        again.close()


def test_a_service_runs_on_the_hub_of_another_thread_without_patching() -> None:
    started, stop, found = threading.Event(), threading.Event(), list[str]()

    def serve() -> None:
        with SandboxService() as service:
            found.append(service.base_url)
            started.set()
            while not stop.is_set():
                gevent.sleep(0.005)
        gevent.get_hub().destroy()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        assert started.wait(5)
        client = SandboxClient(found[0])
        assert client.post("c", "hello") == "1"
        client.close()
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive()


def test_time_runs_as_fast_as_it_is_told() -> None:
    with SandboxService(options=SandboxOptions(time_scale=1_000.0)) as service:
        client = SandboxClient(service.base_url)
        before_ms = client.state().now_ms
        gevent.sleep(0.05)
        assert 50_000 <= client.state().now_ms - before_ms < 2_000_000
        client.close()


def test_a_thousand_connections_at_once_are_answered() -> None:
    with running() as asker:
        for number in range(1_000):
            raw = raw_call(asker.service, mark_path(f"c{number}", "m", "x"))
            with gevent.Timeout(5):
                assert raw.recv(4_096).startswith(b"HTTP/1.1 200 OK")
            raw.close()
        assert asker.client.state(recent=0).marks == 1_000
