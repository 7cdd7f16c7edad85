"""Lanes against a faulty platform that counts for itself, with seeds: a failing seed reproduces."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import pytest

from actors.presence.lanes import Begin, Lanes
from actors.presence.pacing import Limit
from actors.presence.terms import (
    TYPING_OPS,
    Command,
    LaneRules,
    MarkReport,
    Op,
    Outcome,
    OutcomeKind,
    Rank,
    Report,
    RetryRules,
    TypingReport,
)  # fmt: skip
from tests.presence.lane_world import make_lanes

EMOJIS = ("👀", "🤔", "🔥", "👍", "😱", "🦄")
IMPOSSIBLE = "🦄"
RULES = {
    "replace": LaneRules(),
    "add_remove": LaneRules(reactions="add_remove", typing_stop=True, typing_lifetime_ms=0),
    "handles": LaneRules(reactions="add_remove", removal_needs_handle=True, typing_stop=True),
}
FINAL = (OutcomeKind.GONE, OutcomeKind.FORBIDDEN, OutcomeKind.BAD_REQUEST)
"""After such an answer a mark may stay."""
LIMITS: list[dict[str, Limit]] = [
    {},
    {"account": Limit(1_000, 25), "conversation": Limit(1_000, 3, burst=3)},
    {"account.set": Limit(60_000, 45), "account.remove": Limit(60_000, 18)},
    {"account.marks": Limit(5_000, 8, burst=8), "message": Limit(2_000, 1)},
    {"account": Limit(1_000, 40), "route.marks": Limit(300, 1)},
    {"account": Limit(997, 7, burst=7), "conversation": Limit(3_000, 5), "route": Limit(1_300, 2)},
]


class Recount:
    """Independent of the code under test: a log of starts per limit and scope, counted in sliding windows."""

    def __init__(self, limits: dict[str, Limit]) -> None:
        self._limits = limits
        self._logs: dict[tuple[str, ...], deque[int]] = defaultdict(deque)

    def start(self, command: Command, now_ms: int) -> None:
        typing = command.op in TYPING_OPS
        family = "typing" if typing else "marks"
        for name, limit in self._limits.items():
            scope, _, ops = name.partition(".")
            if ops not in ("", family, command.op.value):
                continue
            key = {
                "account": (name,),
                "conversation": (name, command.conversation),
                "route": (name, command.conversation, family),
                "message": (name, command.conversation, command.message or ""),
            }[scope]
            if scope == "message" and command.message is None:
                continue
            log = self._logs[key]
            log.append(now_ms)
            while log[0] <= now_ms - limit.per_ms:
                log.popleft()
            assert len(log) <= limit.count, f"{name}: {len(log)} starts in {limit.per_ms} ms at {now_ms}"


@dataclass
class Flight:
    begin: Begin
    begun_ms: int
    ends_ms: int
    outcome: Outcome


@dataclass
class Simulation:
    """Random wishes and answers; checks after every step."""

    seed: int
    limits: dict[str, Limit]
    rules: LaneRules
    concurrency: int
    faulty: bool = True
    now_ms: int = 0
    flights: dict[int, Flight] = field(default_factory=dict)
    marks: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    blocks: dict[tuple[str, ...], int] = field(default_factory=dict)
    tokens: Counter[int] = field(default_factory=Counter)
    asked: set[int] = field(default_factory=set)
    typed_out: set[tuple[str, str | None]] = field(default_factory=set)
    lost: set[tuple[str, str]] = field(default_factory=set)
    calls: int = 0

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.recount = Recount(self.limits)
        self.lanes: Lanes = make_lanes(
            self.limits, rules=self.rules, concurrency=self.concurrency,
            retry=RetryRules(first_delay_ms=100, max_delay_ms=5_000),
        )  # fmt: skip

    # --- the world --------------------------------------------------------------------------------------------

    def wish(self) -> None:
        """One random change of what is wanted."""
        dice = self.dice
        conversation = f"c{min(dice.randrange(12), dice.randrange(12))}"
        thread = dice.choice([None, "t"])
        kind = dice.random()
        if kind < 0.55:
            message = f"m{dice.randrange(6)}"
            chain = tuple(dice.sample(EMOJIS, dice.choice([0, 1, 1, 2])))
            rank = Rank.TERMINAL if not chain else dice.choice([Rank.TERMINAL, Rank.ACK, Rank.PHASE])
            self.tell(self.lanes.show(conversation, message, chain, rank, self.now_ms))
        elif kind < 0.85:
            token = len(self.asked) + 1
            self.asked.add(token)
            self.typed_out.discard((conversation, thread))
            self.tell(self.lanes.type_start(conversation, thread, token, self.now_ms))
        elif kind < 0.87:
            self.tell(self.lanes.reachable(self.now_ms))
        elif kind < 0.91:
            self.tell(self.lanes.type_withdraw(conversation, thread, self.now_ms))
        else:
            self.typed_out.add((conversation, thread))
            self.tell(self.lanes.type_stop(conversation, thread, self.now_ms))

    def tell(self, reports: list[Report]) -> None:
        for report in reports:
            if isinstance(report, TypingReport) and report.token is not None:
                self.tokens[report.token] += 1
                assert report.token in self.asked
                assert self.tokens[report.token] == 1, f"token {report.token} is answered twice"
            elif isinstance(report, MarkReport) and report.refused in FINAL:
                self.lost.add((report.conversation, report.message))

    def judge(self, command: Command) -> Outcome:
        dice = self.dice
        kind = dice.random()
        if command.emoji == IMPOSSIBLE:
            return Outcome(OutcomeKind.INVALID_REACTION)
        if not self.faulty or kind < 0.8:
            return Outcome(OutcomeKind.OK, handle=f"${self.calls}")
        if kind < 0.88:
            scope = dice.choice([None, "account", "conversation", "route"])
            return Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=dice.randrange(1, 4_000), scope=scope)
        rest = ["transient", "unknown", "already_done", "gone", "forbidden", "bad_request"]
        return Outcome(OutcomeKind(dice.choice(rest)))

    # --- calls ------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        while (begin := self.lanes.next(self.now_ms)) is not None:
            self.calls += 1
            command = begin.command
            self.check_start(begin)
            self.recount.start(command, self.now_ms)
            latency_ms = self.dice.choice([1, 20, 50, 200, 3_000])
            flight = Flight(begin, self.now_ms, self.now_ms + latency_ms, self.judge(command))
            assert begin.call_id not in self.flights
            self.flights[begin.call_id] = flight
            if flight.outcome.happened or (flight.outcome.kind is OutcomeKind.UNKNOWN and self.dice.random() < 0.5):
                self.apply(command)
        wake_ms = self.lanes.wake_at_ms()
        assert wake_ms is None or wake_ms > self.now_ms, "asks to be woken for nothing"

    def apply(self, command: Command) -> None:
        if command.message is None:
            return
        marks = self.marks[command.conversation, command.message]
        if command.op is Op.CLEAR or (command.op is Op.SET and self.rules.reactions == "replace"):
            marks.clear()
        if command.emoji is not None:
            (marks.add if command.op is Op.SET else marks.discard)(command.emoji)

    def check_start(self, begin: Begin) -> None:
        command, rank = begin.command, begin.rank
        lane = self.lane(command)
        assert all(self.lane(flight.begin.command) != lane for flight in self.flights.values())
        assert len(self.flights) < self.concurrency
        if rank >= Rank.PHASE:
            low = sum(flight.begin.rank >= Rank.PHASE for flight in self.flights.values())
            assert low < max(1, self.concurrency // 2)
        if command.op is Op.TYPING_START:
            assert (command.conversation, command.thread) not in self.typed_out, "typing begins after its stop"
        for key in self.covering(command):
            assert self.blocks.get(key, 0) <= self.now_ms, f"called into the block of {key}"

    @staticmethod
    def lane(command: Command) -> tuple[str, str | None, str | None]:
        return command.conversation, command.message, None if command.message else command.thread

    def covering(self, command: Command) -> list[tuple[str, ...]]:
        family = "typing" if command.message is None else "marks"
        return [("account",), ("conversation", command.conversation), ("route", command.conversation, family)]

    def land(self) -> None:
        for call_id, flight in list(self.flights.items()):
            if flight.ends_ms <= self.now_ms:
                del self.flights[call_id]
                self.note_block(flight)
                self.note_refusal(flight)
                self.tell(self.lanes.end(call_id, flight.outcome, self.now_ms))

    def note_refusal(self, flight: Flight) -> None:
        command = flight.begin.command
        if command.message is not None and flight.outcome.kind in FINAL:
            self.lost.add((command.conversation, command.message))

    def note_block(self, flight: Flight) -> None:
        """What the platform has said: never less than this is blocked."""
        outcome, command = flight.outcome, flight.begin.command
        if outcome.kind is OutcomeKind.RATE_LIMITED and outcome.retry_after_ms is not None:
            account, conversation, route = self.covering(command)
            key = {"account": account, "route": route}.get(outcome.scope or "", conversation)
            if outcome.scope is None:
                return  # conversation or account: checked by the tests of pacing
            if key == route and any(name.startswith("account.") for name in self.limits):
                return
            self.blocks[key] = max(self.blocks.get(key, 0), self.now_ms + outcome.retry_after_ms)

    # --- time -------------------------------------------------------------------------------------------------

    def step_to(self, at_ms: int) -> None:
        """Let everything happen that happens by then."""
        self.pump()
        while True:
            wake_ms = self.lanes.wake_at_ms()
            times = [flight.ends_ms for flight in self.flights.values()]
            times += [] if wake_ms is None else [wake_ms]
            if not times or min(times) > at_ms:
                break
            self.now_ms = max(self.now_ms, min(times))
            self.land()
            self.pump()
        self.now_ms = at_ms

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.wish()
            if self.dice.random() < 0.01:
                self.restart()
            self.step_to(self.now_ms + self.dice.choice([0, 0, 5, 50, 300, 1_000]))

    def restart(self) -> None:
        self.tell(self.lanes.restart(self.now_ms))
        for call_id, flight in self.flights.items():
            assert self.lanes.end(call_id, flight.outcome, self.now_ms) == []
        self.flights.clear()

    def settle(self) -> None:
        """Faults end; everything is cleared; what can be done is done."""
        self.faulty = False
        for conversation in range(12):
            for message in range(6):
                self.tell(self.lanes.show(f"c{conversation}", f"m{message}", (), Rank.TERMINAL, self.now_ms))
            for thread in (None, "t"):
                self.typed_out.add((f"c{conversation}", thread))
                self.tell(self.lanes.type_stop(f"c{conversation}", thread, self.now_ms))
        self.step_to(self.now_ms + 7_200_000)


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("number", range(len(LIMITS)))
@pytest.mark.parametrize("seed", range(2))
def test_a_faulty_world_never_sees_a_limit_overrun_and_ends_clean(rules: str, number: int, seed: int) -> None:
    concurrency = (1, 8, 4, 2)[(number + 2 * seed) % 4]
    world = Simulation(1_000 * number + seed, LIMITS[number], RULES[rules], concurrency)
    world.run(1_500)
    assert world.calls > 60
    world.settle()
    assert world.lanes.idle
    assert len(world.lanes) == 0
    assert set(world.tokens) == world.asked, "a start was never answered"
    for key, marks in world.marks.items():
        assert not marks or key in world.lost, f"{marks} left on {key}"


def test_a_world_without_faults_shows_exactly_what_was_wanted_last() -> None:
    world = Simulation(7, LIMITS[1], RULES["add_remove"], 4, faulty=False)
    wanted: dict[tuple[str, str], set[str]] = {}
    for number in range(2_000):
        conversation, message = f"c{world.dice.randrange(9)}", f"m{world.dice.randrange(5)}"
        emoji = world.dice.choice(EMOJIS[:-1])
        rank = Rank.TERMINAL if number > 1_900 else Rank.PHASE
        world.tell(world.lanes.show(conversation, message, (emoji,), rank, world.now_ms))
        wanted[conversation, message] = {emoji}
        world.step_to(world.now_ms + world.dice.randrange(200))
    world.step_to(world.now_ms + 600_000)
    assert world.marks == wanted
    assert world.lanes.counters["calls_saved"] > 100
    assert world.calls + world.lanes.counters["calls_saved"] >= 2_000
