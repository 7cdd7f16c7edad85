"""Many clients at once on real sockets: thousands of connections, no descriptors left, storms, and a flood beside a polite one.

The big form: ``LIVESIGN_CONNECTIONS=9900 pytest -s tests/server/test_crowds.py``.
"""

from __future__ import annotations

import gc
import os
import pathlib
import resource
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import gevent
import pytest

from actors.server_settings import ServerLimits
from protocol.events import Pong
from tests.server.world import QUICK, THINKING, Peer, World, eventually, running, unix_settings

pytestmark = pytest.mark.real

CONNECTIONS = int(os.environ.get("LIVESIGN_CONNECTIONS", "2000"))
PING = {"type": "ping"}
PATIENT = replace(QUICK, silence_s=120.0)


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """So many may be open at once; the test is skipped where the system does not allow it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(count, hard)))
    except ValueError:
        pytest.skip(f"the system allows {hard} open files, not {count}")
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def in_use() -> int:
    return len(os.listdir("/proc/self/fd"))


def delays_ms(peer: Peer, count: int) -> list[float]:
    """How long pings take to be answered."""
    found = []
    for _ in range(count):
        began = time.perf_counter()
        peer.send(PING)
        assert peer.receive() == Pong()
        found.append((time.perf_counter() - began) * 1_000)
        gevent.sleep(0.002)
    return found


def resident_kb() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1_024


def test_thousands_of_connections_are_served_and_leave_nothing(tmp_path: pathlib.Path) -> None:
    limits = ServerLimits(connections=CONNECTIONS + 10)
    with descriptors(in_use() + 2 * CONNECTIONS + 100), running(unix_settings(tmp_path, limits), PATIENT) as world:
        polite = world.unix()
        before_kb = resident_kb()
        peers = [world.unix() for _ in range(CONNECTIONS)]
        for peer in peers[:: CONNECTIONS // 50]:
            assert delays_ms(peer, 1)
        with gevent.Timeout(30):
            while len(world.server.connections) < CONNECTIONS + 1:
                gevent.sleep(0.01)
        grown_kb = (resident_kb() - before_kb) / CONNECTIONS
        among_ms = statistics.median(delays_ms(polite, 50))
        for peer in peers:
            peer.close()
        with gevent.Timeout(30):
            while len(world.server.connections) > 1:
                gevent.sleep(0.01)
        gc.collect()
        alone_ms = statistics.median(delays_ms(polite, 50))
        print(
            f"{CONNECTIONS} connections: {grown_kb:.1f} kB each with their client, ping {among_ms:.2f} ms, {alone_ms:.2f} ms alone"
        )
        assert grown_kb < 200
        assert among_ms < 10 * alone_ms + 5


def test_without_free_descriptors_the_server_waits_says_so_once_and_goes_on(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with running(unix_settings(tmp_path)) as world:
        polite = world.unix()
        assert delays_ms(polite, 1)
        with descriptors(in_use() + 7):
            crowd: list[Peer] = []
            with pytest.raises(OSError, match="Too many open files"):
                while True:
                    crowd.append(world.unix())
                    gevent.sleep(0.01)
            assert delays_ms(polite, 3)
            for peer in crowd:
                peer.close()
            gevent.sleep(0.3)
            late = world.unix()
            assert delays_ms(late, 1)
        assert 0 < world.server.counters["accepts_failed"] < 50
    assert caplog.text.count("no connection can be accepted (Too many open files)") == 1
    assert "Traceback" not in capfd.readouterr().err


def test_a_storm_of_reconnects_leaves_one_session(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        for number in range(300):
            peer = world.unix()
            peer.send(
                {"type": "hello", "protocol": 1, "client": "storm", "session": "s"}, {**THINKING, "id": f"e{number}"}
            )
            peer.close()
        eventually(lambda: not world.server.connections and len(world.router.events) == 300)
        again = world.unix()
        assert delays_ms(again, 1)


def flood(world: World) -> None:
    peer = world.unix()
    data = [{**THINKING, "message": str(number)} for number in range(200)]
    while True:
        peer.send(*data)
        gevent.sleep(0)


def test_a_flood_of_one_client_delays_a_polite_one_by_milliseconds(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        polite = world.unix()
        alone = sorted(delays_ms(polite, 200))
        flooding = gevent.spawn(flood, world)
        gevent.sleep(QUICK.check_s)
        beside = sorted(delays_ms(polite, 200))
        flooding.kill()
        assert len(world.router.events) > 1_000
        print(f"ping p99 {alone[-3]:.2f} ms alone, {beside[-3]:.2f} ms beside a flood")
        assert beside[-3] < 20 * alone[-3] + 50
