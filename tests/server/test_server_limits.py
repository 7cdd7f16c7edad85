"""Time and size limits of connections, on real sockets with short times."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import time

import gevent
import pytest

from actors.server_context import Gate, Timing
from actors.server_settings import ServerLimits, ServerSettings, TokenGrant
from protocol.codec import encode
from protocol.events import Ack, Closing, Hello, Pong, Thinking
from tests.server.world import QUICK, THINKING, Peer, World, eventually, running, unix_settings

pytestmark = pytest.mark.real

TCP = ServerSettings(tcp="127.0.0.1:0", tokens=(TokenGrant("t0ken"),))
HALF = b"\x82\xa4type\xa8thinking\xa1x\xda\xff\x00"
"""The beginning of an event of 65 kB."""


def closing_after(peer: Peer) -> tuple[str, float]:
    """The reason of the next `Closing`, and how long it took."""
    began = time.monotonic()
    replies = peer.rest()
    assert isinstance(replies[-1], Closing), replies
    return replies[-1].reason, time.monotonic() - began


def test_a_stranger_that_says_nothing_is_closed() -> None:
    with running(TCP) as world:
        reason, after_s = closing_after(world.tcp())
        assert reason == "no hello within 0.2 s"
        assert 0.1 < after_s < 1


def test_a_local_user_may_be_silent_for_as_long_as_its_work_takes(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send({**THINKING, "id": "e1"})
        peer.receive()
        gevent.sleep(2 * QUICK.silence_s)
        peer.send({**THINKING, "id": "e2"})
        assert peer.receive() == Ack(id="e2", result="applied")


def test_who_pings_and_falls_silent_is_lost(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send({"type": "ping"})
        reason, after_s = closing_after(peer)
        assert reason == "no ping for 0.5 s"
        assert after_s > 0.2


def test_who_keeps_pinging_stays(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        for _ in range(6):
            peer.send({"type": "ping"})
            assert peer.receive() == Pong()
            gevent.sleep(0.1)


def test_half_an_event_is_not_waited_for(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send({**THINKING, "id": "e1"}, HALF)
        reason, after_s = closing_after(peer)
        assert reason == "an event was not finished within 0.2 s"
        assert 0.1 < after_s < 1


def test_half_an_event_that_drips_is_not_waited_for_either(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send(HALF)
        dripping = gevent.spawn(drip, peer)
        reason, after_s = closing_after(peer)
        dripping.kill()
        assert reason == "an event was not finished within 0.2 s"
        assert after_s < 1


def drip(peer: Peer) -> None:
    while True:
        peer.send(b"y")
        gevent.sleep(0.02)


def test_events_in_pieces_that_do_end_are_never_cut_off(tmp_path: pathlib.Path) -> None:
    stream = b"".join(encode(Thinking(conversation="c", message=str(n))) for n in range(12))
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        for start in range(0, len(stream), 25):  # every piece leaves another event unfinished
            peer.send(stream[start : start + 25])
            gevent.sleep(0.03)
        eventually(lambda: len(world.router.events) == 12)


def test_endless_data_is_cut_off_at_the_size_of_an_event(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        peer.send(b"\x81\xa1x\xc6\x00\x10\x00\x00", b"y" * 66_000)
        assert closing_after(peer)[0] == "an event has at most 65536 bytes"


def test_an_idle_connection_is_closed_only_if_the_settings_say_so(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path, ServerLimits(idle_ms=150))) as world:
        assert closing_after(world.unix())[0] == "nothing was said for 150 ms"


def test_the_size_limit_of_the_settings_counts(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path, ServerLimits(event_bytes=1_024))) as world:
        peer = world.unix()
        peer.send({**THINKING, "x": "y" * 1_024})
        assert closing_after(peer)[0] == "an event has at most 1024 bytes"


def test_a_peer_that_never_reads_is_closed(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peer = world.unix()
        sending = gevent.spawn(flood, peer, {"type": "nonsense", "id": "i" * 200})
        eventually(lambda: world.server.connections)
        [connection] = world.server.connections
        eventually(lambda: not world.server.connections)
        sending.kill()
        assert connection._replies.size < 1_000_000


def flood(peer: Peer, source: dict[str, str]) -> None:
    while True:
        peer.send(source)


def test_readers_wait_while_the_runtime_is_behind_and_lose_nothing(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path)) as world:
        peers = [world.unix() for _ in range(3)]
        for peer in peers:
            peer.send({"type": "ping"})
            peer.receive()
        world.router.backlog = 10**6
        for peer in peers:
            peer.send(*[THINKING] * 50)
        gevent.sleep(0.1)
        seen = len(world.router.events)
        gevent.sleep(2 * QUICK.silence_s)
        assert len(world.router.events) == seen < 150
        assert len(world.server.connections) == 3  # to be silent was not their choice
        world.router.backlog = 0
        eventually(lambda: len(world.router.events) == 150)


def test_the_gate_opens_only_well_below_the_mark_that_closed_it() -> None:
    levels = [101]
    gate = Gate(lambda: levels[-1], high=100, low=50)
    waiting = [gevent.spawn(gate.wait) for _ in range(3)]
    for level in (101, 51):
        levels.append(level)
        gevent.sleep(0.02)
        assert not any(greenlet.dead for greenlet in waiting)
    levels.append(50)
    gevent.joinall(waiting, timeout=1, raise_error=True)
    assert all(greenlet.dead for greenlet in waiting)


def test_a_busy_client_does_not_keep_the_others_waiting(tmp_path: pathlib.Path) -> None:
    with running(unix_settings(tmp_path), timing=Timing()) as world:
        busy, quiet = world.unix(), world.unix()
        eventually(lambda: len(world.server.connections) == 2)
        waiting = fill(busy)
        quiet.send({"type": "ping"})
        assert quiet.receive() == Pong()
        assert len(world.router.events) < waiting / 2
        eventually(lambda: len(world.router.events) == waiting)


def fill(peer: Peer) -> int:
    """Send until the socket takes no more; returns how many whole events it took."""
    event = encode(Thinking(conversation="c", message="m"))
    peer.sock.settimeout(0)
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            taken += peer.sock.send(event * 1_000)
    return taken // len(event)


def test_tcp_connections_are_watched_by_the_system_and_never_hold_replies_back() -> None:
    with running(TCP) as world:
        peer = world.tcp()
        peer.send(Hello(token="t0ken"))
        peer.receive()
        [connection] = world.server.connections
        sock = connection._sock
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle_s = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        every_s = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        assert idle_s + every_s * sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 20


def broken() -> dict[str, int]:
    raise RuntimeError("no figures today")


def test_a_fault_of_ours_closes_one_connection_and_is_logged(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(unix_settings(tmp_path))
    try:
        good, bad = world.unix(), world.unix()
        world.server.context.stats = broken
        bad.send({"type": "stats"})
        assert closing_after(bad)[0] == "internal error"
        assert "fault of ours" in caplog.text
        assert world.server.counters["faults"] == 1
        good.send({"type": "ping"})
        assert good.receive() == Pong()
    finally:
        world.close()
