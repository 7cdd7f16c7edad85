"""What goes first, what shares the connections, and what is never called."""

from __future__ import annotations

from actors.presence.pacing import Limit
from actors.presence.terms import MarkReport, Rank
from tests.presence.lane_world import ADD_REMOVE, World, make_lanes

DAY_MS = 86_400_000


# --- order ---------------------------------------------------------------------------------------------------


def test_terminal_goes_before_ack_before_phase_before_typing() -> None:
    world = World(make_lanes())
    world.lanes.type_start("c", None, 1, 0)
    world.show("c", "phase", "🤔", rank=Rank.PHASE)
    world.show("c", "ack", "👀", rank=Rank.ACK)
    world.show("c", "end", "👍", rank=Rank.TERMINAL)
    world.pump()
    assert world.made() == ["c/end 👍", "c/ack 👀", "c/phase 🤔", "c/- typing_start"]


def test_conversations_take_turns_and_inside_one_the_oldest_goes_first() -> None:
    world = World(make_lanes())
    for number in range(4):
        world.show("busy", f"m{number}", "👍")
    world.show("quiet", "m", "👍")
    world.show("other", "m", "👍")
    world.pump()
    assert [name.split()[0] for name in world.made()] == [
        "busy/m0", "quiet/m", "other/m", "busy/m1", "busy/m2", "busy/m3",
    ]  # fmt: skip


def test_a_lane_keeps_its_place_when_its_wish_is_replaced() -> None:
    world = World(make_lanes())
    for number in range(3):
        world.show("c", f"m{number}", "👍")
    world.show("c", "m0", "😱")
    world.pump()
    assert world.made() == ["c/m0 😱", "c/m1 👍", "c/m2 👍"]


def test_turns_hold_over_the_groups_of_a_class_that_are_paced_apart() -> None:
    lanes = make_lanes({"account.set": Limit(1, 1), "account.remove": Limit(1, 1)}, rules=ADD_REMOVE)
    world = World(lanes)
    for number in range(6):
        world.show("busy", f"old{number}", "👀")
    world.run(1_000)
    world.calls.clear()
    for number in range(6):
        world.show("busy", f"old{number}")
        world.show("busy", f"new{number}", "👍")
    world.show("quiet", "m", "👍")
    world.run(1_003)
    assert "quiet/m 👍" in world.made()[:4]


def test_a_flood_of_one_conversation_does_not_hold_up_another() -> None:
    world = World(make_lanes({"account": Limit(1_000, 10)}))
    for number in range(500):
        world.show("flood", f"m{number}", "👍")
    world.run(5_000)
    world.show("quiet", "m", "👍")
    world.run(5_500)
    assert world.starts("quiet")
    assert world.starts("flood")[-1] > 5_000 or len(world.starts("flood")) < 500


def test_a_superseded_mark_is_never_called() -> None:
    world = World(make_lanes({"account": Limit(10_000, 1)}))
    world.show("d", "m", "👍")
    world.pump()
    for emoji in ("👀", "🤔", "🔥"):
        world.show("c", "m", emoji, rank=Rank.PHASE)
    world.show("c", "m", "👍")
    world.run(30_000)
    assert world.made() == ["d/m 👍", "c/m 👍"]
    assert world.lanes.counters["calls_saved"] == 3


def test_what_shows_already_makes_no_call_and_reports_at_once() -> None:
    world = World(make_lanes())
    world.show("c", "m", "👍")
    world.run(1_000)
    assert world.show("c", "m", "👍", rank=Rank.PHASE) == [MarkReport("c", "m", "👍", None, ("👍",))]
    assert len(world.calls) == 1
    assert world.lanes.counters["calls_saved"] == 1


def test_clearing_a_message_without_marks_makes_no_lane_and_no_call() -> None:
    world = World(make_lanes())
    assert world.show("c", "m") == [MarkReport("c", "m", None, None, ())]
    assert len(world.lanes) == 0


def test_a_lane_never_has_two_calls_under_way() -> None:
    world = World(make_lanes(), latency_ms=1_000)
    world.show("c", "m", "👀")
    world.pump()
    world.show("c", "m", "👍")
    assert world.pump() == []
    world.run(3_000)
    assert world.starts() == [0, 1_000]


# --- connections ---------------------------------------------------------------------------------------------


def test_typing_and_phases_use_at_most_half_of_the_connections() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=8_000)
    for number in range(100):
        world.lanes.type_start(f"c{number}", None, number, 0)
        world.show(f"c{number}", "m", "🤔", rank=Rank.PHASE)
    world.pump()
    assert len(world.under_way) == 4
    for number in range(100):
        world.show(f"c{number}", "end", "👍")
    world.pump()
    assert len(world.under_way) == 8


def test_one_connection_is_enough_for_everything() -> None:
    world = World(make_lanes(concurrency=1))
    world.lanes.type_start("c", None, 1, 0)
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.run(1_000)
    assert world.most_under_way == 1
    assert world.made() == ["c/m 🤔", "c/- typing_start"]


def test_hung_calls_of_one_conversation_leave_connections_to_the_others() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=10_000)
    for number in range(50):
        world.show("hung", f"m{number}", "👍")
    world.pump()
    assert len(world.starts("hung")) == 4
    world.show("quiet", "m", "👍")
    world.pump()
    assert world.starts("quiet") == [0]


def test_hung_phases_of_a_conversation_do_not_hold_up_its_end() -> None:
    world = World(make_lanes(concurrency=8), latency_ms=10_000)
    for number in range(20):
        world.show("c", f"m{number}", "🤔", rank=Rank.PHASE)
        world.lanes.type_start("c", str(number), number, 0)
    world.pump()
    world.show("c", "end", "👍")
    world.pump()
    assert "c/end 👍" in world.made()


def test_a_conversation_s_hung_phase_takes_no_connection_from_its_end_even_where_there_are_two() -> None:
    world = World(make_lanes(concurrency=2), latency_ms=10_000)
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.pump()
    world.show("c", "end", "👍")
    world.pump()
    assert world.made() == ["c/m 🤔", "c/end 👍"]
