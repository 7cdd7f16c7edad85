"""A simulation that also writes down, moment by moment, what users of the platform see."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from actors.config import Config, load
from actors.presence.terms import Outcome
from actors.scenario import Control, Scenario, Step, read
from actors.scripted_platform import CallRecord
from actors.simulate import Result, Simulation
from actors.witness import Witness
from tests.cases.script import Translation
from tests.cases.words import OPS, STATES, WordError

STOP_TREE = "@stop_tree"
"""A step of cases only: all actors are stopped, as when their supervisor is, and nothing is cleaned up before."""
TURNS_MAX = 500_000
"""Without rest at one moment: a case that spins has failed, and says so within seconds."""
MarkPlace = tuple[str, str, str]
TypingPlace = tuple[str, str, str | None]


class Sight(Witness):
    """Writes down the platforms' truth: what users saw, and when it changed."""

    def __init__(self) -> None:
        self.stage: Stage
        self._marks: dict[MarkPlace, list[tuple[int, tuple[str, ...]]]] = defaultdict(list)
        """By message: from when on which marks showed."""
        self._typing: dict[TypingPlace, list[tuple[int, int]]] = defaultdict(list)
        """By target: from when on the indicator was to last until when (0: it was off)."""

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool) -> None:
        command, world, now_ms = record.command, self.stage.world, self.stage.now_ms
        if command.message is not None:
            place = (record.account, command.conversation, command.message)
            self._marks[place].append((now_ms, tuple(world.marks.get(place, ()))))
        else:
            self._look_at_typing(record.account, command.conversation)

    def posted(self, account: str, conversation: str, thread: str | None) -> None:
        self._look_at_typing(account, conversation)

    def _look_at_typing(self, account: str, conversation: str) -> None:
        targets = {
            target for target in (*self.stage.world.typing, *self._typing) if target[:2] == (account, conversation)
        }
        for target in targets:
            self._typing[target].append((self.stage.now_ms, self.stage.world.typing.get(target, 0)))

    def marks_at(self, place: MarkPlace, t_ms: int) -> tuple[str, ...]:
        """The marks on a message at the end of that millisecond."""
        log = self._marks.get(place, [])
        index = bisect_right(log, t_ms, key=lambda entry: entry[0])
        return log[index - 1][1] if index else ()

    def marks_between(self, place: MarkPlace, from_ms: int, to_ms: int) -> Iterator[tuple[int, tuple[str, ...]]]:
        """What showed at ``from_ms``, and after each change until ``to_ms``; what lasted no time at all is left out."""
        yield from_ms, self.marks_at(place, from_ms)
        times = {t_ms for t_ms, _ in self._marks.get(place, []) if from_ms < t_ms <= to_ms}
        for t_ms in sorted(times):
            yield t_ms, self.marks_at(place, t_ms)

    def typing_spans(self, target: TypingPlace) -> list[tuple[int, int]]:
        """When the indicator was on: (from, until), in order, not touching."""
        spans: list[tuple[int, int]] = []
        log = self._typing.get(target, [])
        for (t_ms, until_ms), (next_ms, _) in pairwise([*log, (2**62, 0)]):
            end_ms = min(until_ms, next_ms)
            if end_ms <= t_ms:
                continue
            if spans and spans[-1][1] == t_ms:
                spans[-1] = (spans[-1][0], end_ms)
            else:
                spans.append((t_ms, end_ms))
        return spans


class Stage(Simulation):
    """One case on virtual time."""

    def __init__(self, scenario: Scenario) -> None:
        self.sight = Sight()
        self.sight.stage = self
        super().__init__(scenario, self.sight)
        self.turns_max = TURNS_MAX
        self.tree_left: list[tuple[int, int]] = []
        """After each stop of the tree: actors and timers that are still there."""

    def _control(self, step: Step, control: Control) -> None:
        if control.name != STOP_TREE:
            super()._control(step, control)
        elif self.app is not None:
            runtime = self.app.runtime
            runtime.shutdown()
            runtime.run_until_idle()
            self.tree_left.append((runtime.actor_count, runtime.armed_timers))
            self._down()


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that expectations are held against."""

    result: Result
    sight: Sight
    translation: Translation
    config: Config
    """As it was at the end."""
    warnings: tuple[str, ...]
    tree_left: Sequence[tuple[int, int]]

    @property
    def calls(self) -> list[CallRecord]:
        return self.result.world.calls

    @property
    def clients(self) -> set[str]:
        return {step.client for step in self.result.scenario.steps}

    @property
    def until_ms(self) -> int:
        return self.result.scenario.until_ms

    def emoji(self, name: str, account: str | None = None, chat: str = "") -> str:
        """``E.done`` as the emoji that stands for it on this account; anything else is meant as it is."""
        return emoji_of(self.config, name, account, chat)


def emoji_of(config: Config, name: str, account: str | None = None, chat: str = "") -> str:
    """The first choice for a state. Raises `WordError` for a state that does not exist."""
    if not name.startswith("E."):
        return name
    state = STATES.get(name[2:], name[2:])
    chain = config.policy(account or next(iter(config.accounts)), chat).status.emoji.get(state)
    if not chain:
        raise WordError(f"there is no state {name!r}")
    return chain[0]


def perform(translation: Translation, tree: dict[str, Any], platform: dict[str, Any], until_ms: int) -> Evidence:
    """Run a translated case. ``platform`` in a scenario's form, but for ``E.`` names and a case's own ops."""
    plain: list[Any] = []
    stops: list[Any] = []
    for row in translation.rows:
        is_stop = isinstance(row[1], dict) and STOP_TREE in row[1]
        (stops if is_stop else plain).append(row)
    config = load(tree, scenario=True)
    rules = [*translation.outages, *(rule for each in platform.get("rules", []) for rule in _rules(each, config))]
    plan = {**platform, "rules": rules}
    scenario = read({"config": tree, "events": plain, "until_ms": until_ms, "platform": plan})
    own = [Step(row[0], row[2], Control(STOP_TREE, {})) for row in stops]
    steps = tuple(sorted((*scenario.steps, *own), key=lambda step: step.t_ms))
    stage = Stage(replace(scenario, steps=steps))
    result = stage.run()
    warnings = dict.fromkeys((*scenario.config.warnings, *stage.config.warnings))
    return Evidence(result, stage.sight, translation, stage.config, tuple(warnings), stage.tree_left)


def _rules(rule: dict[str, Any], config: Config) -> Iterator[dict[str, Any]]:
    """A rule in a scenario's words: one for each op that a case's word stands for."""
    rule = dict(rule)
    if "emoji" in rule:
        rule["emoji"] = emoji_of(config, rule["emoji"], rule.get("account"), rule.get("conversation", ""))
    op = rule.get("op", "*")
    if op == "*" or op == "any":
        yield {**rule, "op": "*"}
        return
    if op not in OPS:
        raise WordError(f"there is no call {op!r}; there are {', '.join(OPS)}")
    for each in sorted(OPS[op]):
        yield {**rule, "op": each.value}
