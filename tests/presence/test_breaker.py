"""Circuits open once, probe one call at a time and heal; refusals are forgotten after ten minutes."""

from __future__ import annotations

from actors.presence.breaker import NEVER, Circuits, Gate, Kind, Outage, Refusals
from actors.presence.terms import Rank


def test_a_circuit_opens_probes_and_closes() -> None:
    circuits = Circuits()
    assert circuits.forbidden("c", Kind.MARKS, 0)
    assert circuits.gate("c", Kind.MARKS, 599_999) is Gate.REFUSE
    assert circuits.gate("c", Kind.TYPING, 0) is Gate.PASS
    assert circuits.gate("c", Kind.MARKS, 600_000) is Gate.PROBE
    assert circuits.begun("c", Kind.MARKS, 2, 600_000)
    assert circuits.gate("c", Kind.MARKS, 600_000) is Gate.WAIT
    circuits.ended("c", Kind.MARKS, 2, answered=True)
    assert circuits.gate("c", Kind.MARKS, 600_000) is Gate.PASS


def test_another_call_that_is_refused_during_the_probe_does_not_speak_for_it() -> None:
    circuits = Circuits()
    circuits.forbidden("c", Kind.MARKS, 0)
    circuits.begun("c", Kind.MARKS, 2, 600_000)
    assert not circuits.forbidden("c", Kind.MARKS, 600_100)
    circuits.ended("c", Kind.MARKS, 2, answered=True)
    assert circuits.gate("c", Kind.MARKS, 600_200) is Gate.PASS


def test_the_stricter_of_account_and_conversation_decides() -> None:
    circuits = Circuits()
    circuits.forbidden("", Kind.MARKS, 300_000)
    circuits.forbidden("c", Kind.MARKS, 0)
    assert circuits.gate("c", Kind.MARKS, 600_000) is Gate.REFUSE
    assert circuits.gate("d", Kind.MARKS, 600_000) is Gate.REFUSE
    assert circuits.gate("c", Kind.MARKS, 900_000) is Gate.PROBE


def test_a_circuit_that_nobody_asks_for_is_forgotten_after_a_while() -> None:
    circuits = Circuits()
    circuits.forbidden("c", Kind.MARKS, 0)
    circuits.sweep(1_199_999)
    assert circuits.gate("c", Kind.MARKS, 1_199_999) is Gate.PROBE
    circuits.sweep(1_200_000)
    assert circuits.gate("c", Kind.MARKS, 1_200_000) is Gate.PASS


def test_a_circuit_that_is_being_probed_is_not_forgotten() -> None:
    circuits = Circuits()
    circuits.forbidden("c", Kind.MARKS, 0)
    circuits.begun("c", Kind.MARKS, 2, 600_000)
    circuits.sweep(9_000_000)
    assert circuits.gate("c", Kind.MARKS, 9_000_000) is Gate.WAIT


def test_refusals_stop_phases_at_a_half_and_everything_at_four_fifths() -> None:
    refusals = Refusals(ceiling=10)
    for _ in range(4):
        refusals.count(0)
    assert refusals.wait(Rank.PHASE, 0) == 0
    refusals.count(0)
    assert refusals.wait(Rank.PHASE, 0) == 610_000
    assert refusals.wait(Rank.ACK, 0) == 0
    for _ in range(3):
        refusals.count(20_000)
    assert refusals.wait(Rank.TERMINAL, 20_000) == 610_000
    assert refusals.wait(Rank.TERMINAL, 610_000) == 0
    assert refusals.total(610_000) == 3
    assert refusals.total(630_000) == 0


def test_refusals_are_not_watched_without_a_ceiling() -> None:
    refusals = Refusals(ceiling=0)
    for _ in range(1_000):
        refusals.count(0)
    assert refusals.wait(Rank.TYPING, 0) == 0


def failing(outage: Outage, conversations: str) -> bool:
    for call_id, conversation in enumerate(conversations):
        outage.failed(conversation, call_id, 0)
    return outage.down


def test_an_outage_takes_five_failures_in_a_row_in_three_conversations() -> None:
    assert failing(Outage(), "aabbc")
    assert not failing(Outage(), "aabc")
    assert not failing(Outage(), "abababababab")
    interrupted = Outage()
    failing(interrupted, "aabb")
    assert not interrupted.answered()
    assert not failing(interrupted, "cdef")


def test_the_probes_of_an_outage_come_less_and_less_often() -> None:
    outage = Outage()
    failing(outage, "abcde")
    gaps, now_ms = [], 0
    for call_id in range(100, 109):
        probe_at_ms = outage.wait(now_ms)
        gaps.append(probe_at_ms - now_ms)
        now_ms = probe_at_ms
        assert outage.wait(now_ms) == 0
        outage.begun(call_id)
        assert outage.wait(now_ms) == NEVER
        outage.failed("a", 1, now_ms)
        assert outage.wait(now_ms) == NEVER
        outage.failed("a", call_id, now_ms)
    assert gaps == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert outage.answered()
    assert outage.wait(now_ms) == 0


def test_a_lost_probe_is_followed_by_another_one() -> None:
    outage = Outage()
    failing(outage, "abcde")
    outage.begun(9)
    outage.lost(8)
    assert outage.wait(1_000) == NEVER
    outage.lost(9)
    assert outage.wait(1_000) == 0
