"""Executors that answer anything: any types, unknown calls, twice, late, each other's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gevent
import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.presence.terms import Outcome, OutcomeKind
from protocol.codec import Decoder
from protocol.errors import DecodeError
from protocol.events import Ack, Rejected
from tests.server.test_execution import Peer, Scene

pytestmark = pytest.mark.real

OUTCOMES = [kind.value for kind in OutcomeKind]
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats()
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8) | st.binary(max_size=4)
ANYTHING = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(st.text(max_size=3), SCALARS, max_size=3)
FIELDS = st.fixed_dictionaries(
    {"outcome": st.sampled_from(OUTCOMES) | ANYTHING},
    optional={
        "id": st.sampled_from(["r1", "r2"]) | ANYTHING,
        "retry_after_ms": st.integers(-1, 10**18) | ANYTHING,
        "scope": st.sampled_from(["account", "conversation", "route", "message"]) | ANYTHING,
        "handle": st.text(max_size=300) | ANYTHING,
        "detail": st.text(max_size=300) | ANYTHING,
        "what": ANYTHING,
    },
)
ANSWERS = st.tuples(st.sampled_from([0, 1]), st.sampled_from([0, 1, 2, 3, "gone", "other"]) | ANYTHING, FIELDS)
QUICK = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()
    gevent.sleep(0.001)


def say(peer: Peer, source: dict[str, Any]) -> None:
    """As it comes from a socket."""
    count = len(peer.replies)
    fatal = False
    for item in Decoder().feed(msgpack.packb(source)):
        peer.dialogue.take(item)
        fatal = isinstance(item, DecodeError) and item.fatal
    replies = peer.replies[count:]
    assert len(replies) <= 1
    for reply in replies:
        assert isinstance(reply, Ack | Rejected)
    assert fatal or replies or "id" not in source or source["id"] is None


@QUICK
@given(st.lists(ANSWERS, max_size=8))
def test_no_result_does_harm_and_every_call_ends_once(answers: list[tuple[int, Any, dict[str, Any]]]) -> None:
    scene = Scene()
    peers = [scene.peer(session="first"), scene.peer(session="second")]
    for peer, account in zip(peers, ("a", "b"), strict=True):
        assert peer.take_calls(account=account) == Ack(id="s", result="applied")
    for number in range(4):
        scene.call("ab"[number % 2])
    calls = [peers[number % 2].calls[number // 2] for number in range(4)]
    for which, call, fields in answers:
        known = isinstance(call, int) and not isinstance(call, bool) and 0 <= call < 4
        call_id = calls[call].call_id if known else call
        say(peers[which], {"type": "call_result", "call_id": call_id, **fields})
    assert all(isinstance(each, Outcome) for each in scene.outcomes)
    for outcome in scene.outcomes:
        assert outcome.retry_after_ms is None or outcome.retry_after_ms >= 0
    for peer in peers:
        peer.dialogue.leave()
    for port in scene.ports.values():
        port.close()
    gevent.sleep(0)
    assert len(scene.outcomes) == 4
    assert scene.executors._calls == {}


def test_a_result_from_the_wrong_session_ends_nothing(scene: Scene) -> None:
    first, second = scene.peer(session="first"), scene.peer(session="second")
    first.take_calls(account="a")
    second.take_calls(account="b")
    scene.call("a")
    say(second, {"type": "call_result", "call_id": first.calls[0].call_id, "outcome": "ok"})
    assert scene.outcomes == []
    assert scene.executors.counters["calls_late"] == 1
    first.answer(first.calls[0])
    first.answer(first.calls[0])
    assert [outcome.kind for outcome in scene.outcomes] == [OutcomeKind.OK]
    assert scene.executors.counters["calls_late"] == 2
