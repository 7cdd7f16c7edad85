"""The run table: opening, first terminal, leases, children, merging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from actors.presence.policy import AckSettings, LeaseSettings, Policy, StatusSettings
from actors.presence.run import NEVER_MS
from actors.presence.runs import ENDED_MAX, Decision, MergeError, RunTable
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Event

Make = Callable[..., Event]


class Table:
    """A run table with a hand-held clock, one conversation and one client."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.runs = RunTable(lambda *_: self.policy)
        self.runs.session_up("c1")
        self.now_ms = 0

    def send(self, kind: Make, message: str | None = "m1", session: str = "c1", **fields: Any) -> Decision:
        event = kind(conversation="c", message=message, **fields)
        return self.runs.handle("a", event, session, self.now_ms, 1_700_000_000_000 + self.now_ms)

    def received(self, message: str = "m1", **fields: Any) -> Decision:
        return self.send(events.Received, message, **{"direct": False, "mentioned": True, **fields})

    def at(self, now_ms: int) -> Table:
        self.now_ms = now_ms
        return self

    def due(self, message: str = "m1") -> Decision:
        return self.runs.on_deadline(key(message), self.now_ms)

    def outcome(self, message: str = "m1") -> tuple[str, str | None]:
        ended = self.runs.ended["a"][key(message)]
        return ended.outcome, ended.reason


def key(message: str) -> RunKey:
    return RunKey("a", "c", message)


OPENING: list[tuple[Make, dict[str, Any]]] = [
    (events.Received, {"direct": True}), (events.Queued, {}), (events.Waiting, {"on": "slot"}), (events.Thinking, {}),
    (events.Tool, {}), (events.Compacting, {}), (events.Text, {}), (events.Progress, {}),
]  # fmt: skip
NOT_OPENING: list[tuple[Make, dict[str, Any]]] = [
    (events.ToolEnd, {"call": "1"}), (events.CompactingEnd, {}), (events.Alive, {}), (events.Child, {"child": "k"}),
    (events.ChildEnd, {"child": "k"}), (events.Merged, {"into": "x"}), (events.Moved, {"thread": "t"}), (events.Sending, {}),
    (events.Sent, {}), (events.Done, {}), (events.Error, {}), (events.Cancelled, {}), (events.Silent, {}), (events.Clear, {}),
    (events.Restore, {}), (events.TypingStart, {}), (events.TypingStop, {}),
]  # fmt: skip
TERMINALS = [
    (events.Done, "done"),
    (events.Error, "error"),
    (events.Cancelled, "cancelled"),
    (events.Silent, "silent"),
]


@pytest.mark.parametrize(("kind", "fields"), OPENING)
def test_received_phases_and_progress_open_an_unknown_run(kind: Make, fields: dict[str, Any]) -> None:
    table = Table()
    decision = table.send(kind, **fields)
    assert decision.result == "applied"
    assert decision.opened is not None
    assert key("m1") in table.runs.open


@pytest.mark.parametrize(("kind", "fields"), NOT_OPENING)
def test_anything_else_for_an_unknown_run_changes_nothing(kind: Make, fields: dict[str, Any]) -> None:
    table = Table()
    assert table.send(kind, **fields).result == "unknown"
    assert not table.runs.open
    assert table.runs.counters["unknown_events"] == 1


@pytest.mark.parametrize(("kind", "fields"), [*OPENING[1:], *NOT_OPENING])
def test_nothing_revives_an_ended_run(kind: Make, fields: dict[str, Any]) -> None:
    table = Table()
    table.received()
    table.send(events.Cancelled)
    table.runs.settled(key("m1"), not_shown=False)
    decision = table.send(kind, **fields)
    assert decision.result == "late"
    assert not decision.deliveries
    assert not table.runs.open
    assert table.runs.counters["late_events"] == 1


def test_the_same_message_again_is_a_duplicate_and_takes_the_lease() -> None:
    table = Table()
    table.received()
    decision = table.received(session="c2")
    assert (decision.result, decision.deliveries) == ("duplicate", [])
    assert table.runs.open[key("m1")].holders == ("c1", "c2")
    assert table.runs.counters["duplicate_messages"] == 1


def test_a_message_that_was_answered_is_a_duplicate_when_delivered_again() -> None:
    table = Table()
    table.received()
    table.send(events.Done)
    assert table.received().result == "duplicate"
    assert not table.runs.open


def test_a_second_run_on_a_message_needs_its_own_run_and_owns_the_marks() -> None:
    table = Table()
    first = table.received().opened
    second = table.received(run="r2").opened
    assert first is not None
    assert second is not None
    assert table.runs.owns_marks(second)
    assert not table.runs.owns_marks(first)


@pytest.mark.parametrize(("first", "outcome"), TERMINALS)
@pytest.mark.parametrize(("second", "_"), TERMINALS)
def test_the_first_terminal_wins(first: Make, outcome: str, second: Make, _: str) -> None:
    table = Table()
    table.received()
    assert [type(event) for _, event in table.send(first).deliveries] == [first]
    assert table.send(second).result == "late"
    assert table.outcome()[0] == outcome


def test_an_error_of_a_lane_is_progress_only() -> None:
    table = Table()
    table.received()
    table.send(events.Error, scope="lane")
    assert key("m1") in table.runs.open


def test_clear_before_the_end_is_a_cancelled_run() -> None:
    table = Table()
    table.received()
    table.send(events.Clear)
    assert table.outcome() == ("cancelled", "cleared")


@pytest.mark.parametrize("kind", [events.Clear, events.Restore])
def test_clear_and_restore_count_while_the_marks_of_an_ended_run_settle(kind: Make) -> None:
    table = Table()
    table.received()
    table.send(events.Done)
    assert table.send(kind).result == "applied"
    table.runs.settled(key("m1"), not_shown=False)
    assert table.send(kind).result == "late"


def test_a_connected_client_keeps_a_silent_run_open_until_run_max() -> None:
    table = Table()
    table.received()
    assert table.runs.deadline_ms(key("m1")) == 21_600_000
    table.at(21_600_000).due()
    assert table.outcome() == ("error", "run_max")


def test_a_lost_client_has_one_lease_to_come_back() -> None:
    table = Table()
    table.received()
    table.runs.session_down("c1", 5_000)
    assert table.runs.deadline_ms(key("m1")) == 35_000
    table.runs.session_up("c1")
    assert table.runs.deadline_ms(key("m1")) == 21_600_000
    table.runs.session_down("c1", 40_000)
    table.at(69_999).due()
    assert key("m1") in table.runs.open
    table.at(70_000).due()
    assert table.outcome() == ("error", "lease_expired")
    assert table.runs.counters["leases_expired"] == 1


def test_an_event_after_the_loss_moves_the_lease() -> None:
    table = Table()
    table.received()
    table.runs.session_down("c1", 5_000)
    table.at(20_000).send(events.Alive)
    assert table.runs.deadline_ms(key("m1")) == 50_000


def test_a_second_holder_keeps_the_run_when_the_first_is_lost() -> None:
    table = Table()
    table.runs.session_up("c2")
    table.received()
    table.send(events.Thinking, session="c2")
    table.runs.session_down("c1", 5_000)
    assert table.runs.deadline_ms(key("m1")) == 21_600_000
    table.runs.session_down("c2", 6_000)
    assert table.runs.deadline_ms(key("m1")) == 36_000


def test_a_lease_in_the_opening_event_means_events_only() -> None:
    table = Table()
    table.received(lease_ms=15_000)
    assert table.runs.deadline_ms(key("m1")) == 15_000
    table.at(10_000).send(events.Alive)
    assert table.runs.deadline_ms(key("m1")) == 25_000
    table.at(25_000).due()
    assert table.outcome() == ("error", "lease_expired")


def test_alive_without_a_run_renews_all_of_the_sender() -> None:
    table = Table()
    table.received("m1", lease_ms=15_000)
    table.received("m2", lease_ms=15_000)
    table.runs.session_up("c2")
    table.received("m3", lease_ms=15_000, session="c2")
    table.now_ms = 10_000
    decision = table.runs.handle("a", events.Alive(), "c1", 10_000, 0)
    assert {info.key.run for info, _ in decision.deliveries} == {"m1", "m2"}
    assert [table.runs.deadline_ms(key(m)) for m in ("m1", "m2", "m3")] == [25_000, 25_000, 15_000]


def test_done_waits_for_open_children() -> None:
    table = Table()
    table.received()
    table.send(events.Child, child="k1")
    table.send(events.Child, child="k2")
    assert table.send(events.Done).deliveries == []
    assert table.send(events.ChildEnd, child="k1").ended == []
    assert table.send(events.ChildEnd, child="k2").ended == [key("m1")]
    assert table.outcome() == ("done", None)


def test_a_failed_child_makes_a_waiting_done_an_error() -> None:
    table = Table()
    table.received()
    table.send(events.Child, child="k1")
    table.send(events.Done)
    table.send(events.ChildEnd, child="k1", ok=False)
    assert table.outcome() == ("error", "child_failed")


def test_a_child_is_given_up_at_its_own_limit_and_never_later_than_the_policy_allows() -> None:
    table = Table()
    table.at(1_000).received()
    table.send(events.Child, child="k1", max_ms=30_000)
    table.send(events.Done)
    assert table.runs.deadline_ms(key("m1")) == 31_000
    table.at(31_000).due()
    assert table.outcome() == ("done", None)
    table.received("m2")
    table.send(events.Child, "m2", child="k", max_ms=10**9)
    assert table.runs.deadline_ms(key("m2")) == 31_000 + 600_000


@pytest.mark.parametrize("kind", [events.Error, events.Cancelled, events.Silent])
def test_other_terminals_do_not_wait_for_children(kind: Make) -> None:
    table = Table()
    table.received()
    table.send(events.Child, child="k1")
    assert table.send(kind).ended == [key("m1")]


def test_a_final_post_counts_as_done_after_a_while_unless_a_phase_follows() -> None:
    table = Table()
    table.at(7_000).received()
    table.send(events.Sent, final=True)
    table.runs.session_down("c1", 7_000)
    assert table.runs.deadline_ms(key("m1")) == 37_000
    table.at(37_000).due()
    assert table.outcome() == ("done", "final_sent")
    table.runs.session_up("c1")
    table.received("m2")
    table.send(events.Sent, "m2", final=True)
    table.send(events.Thinking, "m2")
    assert table.runs.deadline_ms(key("m2")) > 37_000 + 30_000


def test_a_failed_final_post_does_not_end_the_run() -> None:
    table = Table()
    table.received()
    table.send(events.Sent, final=True, ok=False)
    assert table.runs.deadline_ms(key("m1")) == 21_600_000


def test_waiting_for_the_user_ends_at_wait_max() -> None:
    table = Table(Policy(status=StatusSettings(wait_max_ms=60_000)))
    table.received()
    table.at(1_000).send(events.Waiting, on="user")
    table.at(61_000).due()
    assert table.outcome() == ("cancelled", "wait_max")


def test_a_merged_run_follows_the_outcome_of_the_other() -> None:
    table = Table()
    table.received("m1")
    table.received("m2")
    table.send(events.Merged, "m2", into="m1")
    table.runs.session_down("c1", 0)
    assert table.runs.open[key("m2")].lease_deadline_ms() == NEVER_MS
    assert table.send(events.Error, "m1", reason="x").ended == [key("m1"), key("m2")]
    assert table.outcome("m2") == ("error", "x")


@pytest.mark.parametrize("into", ["m1", "m2", "nobody", "over"])
def test_a_merge_into_itself_a_follower_or_nothing_is_rejected_and_changes_nothing(into: str) -> None:
    table = Table()
    table.received("over")
    table.send(events.Done, "over")
    table.received("m1")
    table.received("m2")
    table.send(events.Merged, "m2", into="m1")
    with pytest.raises(MergeError):
        table.send(events.Merged, "m1", into=into)
    assert table.runs.open[key("m1")].merged_into is None


def test_a_sent_after_a_terminal_inside_sending_is_not_late_once() -> None:
    table = Table()
    table.received()
    table.send(events.Sending)
    table.send(events.Done)
    assert table.at(500).send(events.Sent, final=True).result == "applied"
    assert table.send(events.Sent, final=True).result == "late"


GATES: list[tuple[dict[str, Any], Policy, tuple[bool, bool]]] = [
    ({}, Policy(), (True, True)),
    ({"mentioned": False}, Policy(), (False, False)),
    ({"mentioned": False}, Policy(status=StatusSettings(gate="none")), (False, True)),
    ({}, Policy(status=StatusSettings(enabled=False)), (True, False)),
    ({"direct": True}, Policy(), (False, False)),
    ({"direct": True}, Policy(ack=AckSettings(scope="direct")), (True, True)),
    ({"from_bot": True}, Policy(), (False, False)),
    ({"from_bot": True}, Policy(ack=AckSettings(from_bots=True)), (True, True)),
    ({"sent_at_ms": 1_700_000_000_000 - 300_001}, Policy(), (False, False)),
    ({"sent_at_ms": 1_700_000_000_000 - 300_000}, Policy(), (True, True)),
    ({"sent_at_ms": 1}, Policy(ack=AckSettings(max_age_ms=0)), (True, True)),
]


@pytest.mark.parametrize(("fields", "policy", "expected"), GATES)
def test_the_gate_and_the_switches_decide_what_a_received_message_may_show(
    fields: dict[str, Any], policy: Policy, expected: tuple[bool, bool]
) -> None:
    info = Table(policy).received(**fields).opened
    assert info is not None
    assert (info.ack_allowed, info.status_allowed) == expected


def test_a_run_opened_by_a_phase_has_status_marks_and_no_ack() -> None:
    info = Table().send(events.Queued).opened
    assert info is not None
    assert (info.ack_allowed, info.status_allowed) == (False, True)


def test_ended_runs_are_forgotten_after_a_day_and_never_more_than_the_limit_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = Table()
    table.received("old")
    table.send(events.Done, "old")
    table.at(24 * 3_600_000 + 1).received("new")
    table.send(events.Done, "new")
    assert list(table.runs.ended["a"]) == [key("new")]
    assert ENDED_MAX == 100_000
    monkeypatch.setattr("actors.presence.runs.ENDED_MAX", 3)
    for number in range(10):
        table.received(f"x{number}")
        table.send(events.Silent, f"x{number}")
    assert [entry.run for entry in table.runs.ended["a"]] == ["x7", "x8", "x9"]


def test_a_table_with_nothing_open_holds_nothing_of_its_sessions() -> None:
    table = Table(replace(Policy(), lease=LeaseSettings(ms=1)))
    for number in range(50):
        table.received(f"m{number}")
        table.send(events.Done, f"m{number}")
    assert table.runs._sessions == {}
    assert table.runs._by_message == {}
