"""A refused destination costs one call, is probed later, and heals."""

from __future__ import annotations

from itertools import pairwise

from actors.presence.lanes import Begin
from actors.presence.marks import Mark
from actors.presence.terms import OK, MarkReport, Op, Outcome, OutcomeKind, Rank, TypingReport
from tests.presence.lane_world import ADD_REMOVE, World, forbidding, make_lanes, refusal

DAY_MS = 86_400_000


def test_a_forbidden_conversation_costs_one_call_and_refuses_the_rest_at_once() -> None:
    world = World(make_lanes(concurrency=2), forbidding("kicked"))
    for number in range(10):
        world.show("kicked", f"m{number}", "👍")
    world.show("fine", "m", "👍")
    world.run(1_000)
    assert len(world.starts("kicked")) == 1
    assert len(world.starts("fine")) == 1
    refused = [r for r in world.reports if isinstance(r, MarkReport) and r.refused is OutcomeKind.FORBIDDEN]
    assert len(refused) == 10
    assert len(world.lanes) == 1
    assert world.show("kicked", "later", "👍")[0] == MarkReport("kicked", "later", "👍", OutcomeKind.FORBIDDEN, ("👍",))
    assert world.lanes.counters["breaker_opened"] == 1


def test_a_circuit_of_marks_leaves_typing_alone_and_the_other_way_round() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden") if (begin.command.emoji is not None) == marks_forbidden else OK

    for marks_forbidden in (True, False):
        world = World(make_lanes(), answer)
        world.show("c", "m", "👍")
        world.lanes.type_start("c", None, 1, 0)
        world.run(1_000)
        world.show("c", "n", "👍")
        reports = world.lanes.type_start("c", None, 2, 1_000)
        world.run(2_000)
        assert len(world.calls) == 3
        if not marks_forbidden:
            assert isinstance(reports[0], TypingReport)
            assert (reports[0].token, reports[0].outcome.kind, reports[0].called) == (2, "forbidden", False)


def test_a_probe_goes_out_after_ten_minutes_then_twenty_and_heals_the_circuit() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=1_500_000))
    for at_ms in range(0, 3_000_000, 10_000):
        world.run(at_ms)
        world.show("c", f"m{at_ms}", "👍")
    world.run(3_000_000)
    starts = world.starts("c")
    assert starts[:3] == [0, 610_000, 1_820_000]
    assert starts[3:5] == [1_830_000, 1_840_000]
    assert world.lanes.counters["breaker_opened"] == 2


def test_while_a_probe_is_out_the_others_wait_for_its_answer() -> None:
    for healed in (True, False):
        world = World(make_lanes(), forbidding("c", until_ms=100_000 if healed else 1 << 60), latency_ms=500)
        world.show("c", "m", "👍")
        world.run(700_000)
        for number in range(5):
            world.show("c", f"n{number}", "👍")
        world.run(700_400)
        assert len(world.starts("c")) == 2
        assert world.lanes.wake_at_ms() is None
        world.run(702_000)
        assert len(world.starts("c")) == (6 if healed else 2)
        assert world.lanes.idle


def test_the_time_a_circuit_is_open_doubles_up_to_a_day() -> None:
    world = World(make_lanes(), forbidding("c"))
    for at_ms in range(0, 10 * DAY_MS, 600_000):
        world.run(at_ms)
        world.show("c", f"m{at_ms}", "👍")
    starts = world.starts("c")
    gaps = [second - first for first, second in pairwise(starts)]
    assert gaps == sorted(gaps)
    assert DAY_MS <= gaps[-1] <= DAY_MS + 1_200_000


def test_a_probe_without_an_answer_is_followed_by_another_one() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden" if at_ms < 600_000 else "transient" if at_ms < 700_500 else "ok")

    world = World(make_lanes(), answer)
    world.show("c", "m", "👍")
    world.run(700_000)
    world.show("c", "n", "👍")
    world.show("c", "o", "👍")
    world.run(710_000)
    assert world.lanes.shown_marks().keys() == {("c", "n"), ("c", "o")}


def test_marks_that_show_are_still_taken_away_where_new_ones_are_forbidden() -> None:
    def answer(begin: Begin, at_ms: int) -> Outcome:
        return refusal("forbidden") if begin.command.emoji in ("🤔", "👍") else OK

    world = World(make_lanes(rules=ADD_REMOVE), answer)
    world.show("c", "m", "👀")
    world.show("c", "n", "👀")
    world.run(100)
    world.show("c", "m", "🤔", rank=Rank.PHASE)
    world.run(200)
    assert world.reports[-1] == MarkReport("c", "m", "🤔", OutcomeKind.FORBIDDEN, ("🤔",))
    assert world.show("c", "n", "👍")[0] == MarkReport("c", "n", "👍", OutcomeKind.FORBIDDEN, ("👍",))
    world.show("c", "m")
    world.show("c", "n")
    world.run(300)
    assert [begin.command.op for _, begin in world.calls[-2:]] == [Op.REMOVE, Op.REMOVE]
    assert world.lanes.shown_marks() == {}
    assert len(world.lanes) == 0


def test_a_refusal_for_the_whole_account_refuses_everywhere() -> None:
    world = World(make_lanes(concurrency=1), lambda begin, at_ms: refusal("forbidden", scope="account"))
    for number in range(10):
        world.show(f"c{number}", "m", "👍")
    world.run(1_000)
    assert len(world.calls) == 1
    assert len(world.reports) == 10
    world.run(700_000)
    world.show("x", "m", "👍")
    world.show("y", "m", "👍")
    world.run(701_000)
    assert len(world.calls) == 2
    assert world.lanes.idle


def test_a_refusal_for_one_message_opens_no_circuit() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("forbidden", scope="message"))
    world.show("c", "m", "👍")
    world.run(100)
    world.show("c", "n", "👍")
    world.run(200)
    assert len(world.calls) == 2


def test_a_message_that_takes_no_mark_is_asked_once() -> None:
    world = World(make_lanes(rules=ADD_REMOVE), lambda begin, at_ms: refusal("forbidden", scope="message"))
    for at_ms, emoji in ((100, "👀"), (200, "🤔"), (300, "👍")):
        world.show("c", "m", emoji)
        world.run(at_ms)
    assert [begin.command.emoji for _, begin in world.calls] == ["👀"]
    world.show("c", "n", "👀")
    world.run(400)
    assert len(world.calls) == 2


def test_a_full_message_gives_up_our_mark_for_the_next_one() -> None:
    on: set[str] = {"x"}

    def answer(begin: Begin, at_ms: int) -> Outcome:
        emoji = begin.command.emoji or ""
        if begin.command.op is Op.REMOVE:
            on.discard(emoji)
        elif len(on) >= 2:
            return refusal("forbidden", scope="message")
        else:
            on.add(emoji)
        return OK

    world = World(make_lanes(rules=ADD_REMOVE), answer)
    for at_ms, emoji in ((100, "👀"), (400, "🤔"), (700, "👍")):
        world.show("c", "m", emoji)
        world.run(at_ms)
    assert on == {"x", "👍"}
    assert [f"{begin.command.op} {begin.command.emoji}" for _, begin in world.calls] == [
        "set 👀", "set 🤔", "remove 👀", "set 🤔", "remove 🤔", "set 👍",
    ]  # fmt: skip
    assert world.lanes.shown_marks() == {("c", "m"): {"👍": None}}


def test_a_post_of_the_bot_lets_a_forbidden_conversation_be_tried_again() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=60_000))
    world.show("c", "m", "👍")
    world.run(60_300)
    world.lanes.posted("c", 60_300)
    world.show("c", "n", "👍")
    world.run(61_000)
    assert world.lanes.shown_marks() == {("c", "n"): {"👍": None}}


def test_a_gone_conversation_stops_typing_there() -> None:
    world = World(make_lanes(), lambda begin, at_ms: refusal("gone"))
    for token in range(10):
        world.lanes.type_start("c", None, token, world.now_ms)
        world.run(world.now_ms + 3_000)
    assert len(world.calls) == 1


def test_many_refusals_at_once_open_a_circuit_once() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=1_000))
    for number in range(8):
        world.show("c", f"m{number}", "👍")
    world.run(600_100)
    assert len(world.calls) == 8
    world.show("c", "n", "👍")
    world.run(601_000)
    assert len(world.calls) == 9
    assert world.lanes.counters["breaker_opened"] == 1


def test_a_removal_is_no_probe() -> None:
    world = World(make_lanes(rules=ADD_REMOVE), forbidding("c", until_ms=300_000))
    world.lanes.adopt("c", "old", "👀", Mark(), 0)
    world.show("c", "m", "👍")
    world.run(700_000)
    world.show("c", "old")
    world.pump()
    world.show("c", "n", "👍")
    assert [begin.command.message for begin in world.pump()] == ["n"]


def test_a_probe_that_is_told_to_wait_leaves_the_circuit_half_open() -> None:
    answers = [OK, refusal("rate_limited", retry_after_ms=1_000), refusal("forbidden")]
    world = World(make_lanes(), lambda begin, at_ms: answers.pop() if answers else OK)
    world.show("c", "m", "👍")
    world.run(700_000)
    world.latency_ms = 2_000
    world.show("c", "n", "👍")
    world.show("c", "o", "👍")
    world.run(704_500)
    assert len(world.calls) == 3
    assert len(world.under_way) == 1
    world.run(710_000)
    assert world.lanes.shown_marks().keys() == {("c", "n"), ("c", "o")}


def test_a_probe_that_finds_the_whole_account_refused_does_not_block_its_conversation_for_ever() -> None:
    refusals = [refusal("forbidden", scope="account"), refusal("forbidden")]
    world = World(make_lanes(), lambda begin, at_ms: refusals.pop() if refusals else OK)
    world.show("c", "m", "👍")
    for at_ms in range(700_000, 4_000_000, 100_000):
        world.run(at_ms)
        world.show("c", f"m{at_ms}", "👍")
    world.run(4_100_000)
    assert world.lanes.idle
    assert len(world.lanes.shown_marks()) > 10


def test_new_credentials_forget_what_the_old_ones_were_refused() -> None:
    world = World(make_lanes(), forbidding("c", until_ms=1_000))
    world.show("c", "m", "👍")
    world.run(2_000)
    world.lanes.revive(2_000)
    world.show("c", "n", "👍")
    world.run(3_000)
    assert world.lanes.shown_marks() == {("c", "n"): {"👍": None}}


def test_a_conversation_that_is_gone_costs_one_call() -> None:
    world = World(make_lanes(concurrency=1), lambda begin, at_ms: refusal("gone", scope="conversation"))
    for number in range(10):
        world.show("c", f"m{number}", "👍")
    world.run(1_000)
    assert len(world.calls) == 1
    assert len(world.reports) == 10
    assert len(world.lanes) == 0


def test_a_removal_waits_for_no_probe() -> None:
    world = World(make_lanes(rules=ADD_REMOVE), forbidding("c"), latency_ms=5_000)
    world.lanes.adopt("c", "old", "👀", Mark(), 0)
    world.show("c", "m", "👍")
    world.run(700_000)
    world.show("c", "n", "👍")
    world.pump()
    world.show("c", "old")
    assert [begin.command.op for begin in world.pump()] == [Op.REMOVE]
