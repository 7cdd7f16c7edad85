"""What an earlier process has left, where its ledger can be read only when the next process is at work already."""

from __future__ import annotations

from typing import Any

import pytest

from actors.application import Application
from actors.config import load
from actors.ledger import Contents, LearnedRow, MemoryLedger, Place, RunRow
from actors.ledger_sqlite import add_missing
from actors.messages import FromClient
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.policy import Policy
from actors.presence.terms import OK, Command, Op, Outcome, RunInfo, RunKey
from actors.runtime import Runtime
from protocol import events


class Platform:
    """Does what it is told, and knows what shows."""

    def __init__(self, shown: dict[str, list[str]], replaces: bool) -> None:
        self.shown = shown
        self.typing: set[str] = set()
        self._replaces = replaces

    def call(self, command: Command, deadline_ms: int, done: Any) -> None:
        marks = self.shown.setdefault(command.message or "", [])
        match command.op:
            case Op.SET:
                if self._replaces:
                    marks.clear()
                if command.emoji not in marks:
                    marks.append(command.emoji or "")
            case Op.REMOVE if command.emoji in marks:
                marks.remove(command.emoji or "")
            case Op.CLEAR:
                marks.clear()
            case Op.TYPING_START:
                self.typing.add(command.conversation)
            case Op.TYPING_STOP:
                self.typing.discard(command.conversation)
        done(Outcome(OK.kind, handle=f"h{command.emoji}"))

    def close(self) -> None:
        """Nothing is held."""


class Late:
    """A livesign at work on ``m1`` when what was left comes to light."""

    def __init__(self, replaces: bool, shown: dict[str, list[str]]) -> None:
        account = {"platform": "sandbox", "reactions": "replace" if replaces else "add_remove"}
        config = load({"accounts": {"a": account}, "ack": {"scope": "all"}}, scenario=True)
        self.platform = Platform(shown, replaces)
        self.ledger = MemoryLedger()
        self.runtime = Runtime.manual(name="late")
        self.application = Application(config, self.runtime, lambda _: self.platform, self.ledger)
        self.application.start()
        self.send(
            events.Received(conversation="c", message="m1", direct=True),
            events.Thinking(conversation="c", message="m1"),
        )

    def send(self, *told: Any) -> None:
        for event in told:
            self.application.submit(FromClient("s", event, None))
        self.runtime.advance(1_000)

    def find(self, found: Contents) -> None:
        news = add_missing(self.ledger._contents, found)
        assert self.ledger.on_found is not None
        self.ledger.on_found(news)
        self.runtime.advance(1_000)


def left(run: str) -> RunRow:
    return RunRow(RunInfo(RunKey("a", "c", run), run, None, Policy(), True, True), 30_000, False)


@pytest.mark.parametrize("replaces", [True, False])
def test_everything_of_the_dead_process_goes_and_nothing_of_the_living_one(replaces: bool) -> None:
    before = {"m1": ["⚡"], "m2": ["⚡"], "m3": ["👀"]}
    late = Late(replaces, before)
    assert late.platform.shown["m1"] == (["🤔"] if replaces else ["⚡", "🤔"])
    late.find(Contents(
        runs={row.info.key: row for row in (left("m1"), left("m2"))},
        marks={Place("a", "c", "m1"): {"⚡": Mark()}, Place("a", "c", "m2"): {"⚡": Mark()}, Place("a", "c", "m3"): {"👀": Mark()}},
        typing={Place("a", "c", None), Place("a", "d", None)},
    ))  # fmt: skip
    assert late.platform.shown["m1"] == ["🤔"]
    assert late.platform.shown["m2"] == ["⚡"]  # its client may come back
    assert late.platform.shown["m3"] == []
    assert late.platform.typing == {"c"}
    late.send(events.Thinking(conversation="c", message="m1"), *[events.Alive(account="a")] * 2)
    late.runtime.advance(16_000)
    assert late.platform.shown["m2"] in (["😱"], [])
    late.send(events.Done(conversation="c", message="m1"))
    assert late.platform.shown["m1"] == ["👍"]
    late.runtime.advance(60_000)
    assert late.platform.shown == {"": [], "m1": [], "m2": [], "m3": []}
    assert late.platform.typing == set()
    assert late.ledger.rows == 0


def test_a_run_of_the_dead_process_is_taken_over_by_its_client() -> None:
    late = Late(False, {"m2": ["⚡"]})
    row = left("m2")
    late.find(Contents(runs={row.info.key: row}, marks={Place("a", "c", "m2"): {"⚡": Mark()}}))
    late.send(events.Thinking(conversation="c", message="m2"))
    assert late.platform.shown["m2"] == ["🤔"]
    late.send(events.Done(conversation="c", message="m2"))
    assert late.platform.shown["m2"] == ["👍"]
    late.runtime.advance(60_000)
    assert late.platform.shown["m2"] == []


def test_what_is_found_does_not_undo_what_has_happened_since() -> None:
    key, other = RunKey("a", "c", "m1"), RunKey("a", "c", "m2")
    scope, lesson = ("a", "account", "", ""), LearnedRow(Learned(1, 2, 3, 4), 5)
    held = Contents(
        runs={other: left("m2")},
        marks={Place("a", "c", "m2"): {"🤔": Mark("new")}},
        ended={key: ("done", None, 9)},
        used={"s": {"e2": None}},
        learned={scope: lesson},
    )
    news = add_missing(held, Contents(
        runs={key: left("m1"), other: left("m2")},
        marks={Place("a", "c", "m2"): {"👀": Mark("h"), "🤔": Mark("old")}},
        ended={other: ("done", None, 1), RunKey("a", "c", "m0"): ("error", None, 2)},
        used={"s": {"e1": None, "e2": None}},
        learned={scope: LearnedRow(Learned(9, 9, 9, 9), 1)},
    ))  # fmt: skip
    assert news == Contents(
        marks={Place("a", "c", "m2"): {"👀": Mark("h")}},
        ended={RunKey("a", "c", "m0"): ("error", None, 2)},
        used={"s": {"e1": None, "e2": None}},
    )
    assert held.marks == {Place("a", "c", "m2"): {"👀": Mark("h"), "🤔": Mark("new")}}
    assert list(held.ended) == [RunKey("a", "c", "m0"), key]
    assert list(held.used["s"]) == ["e1", "e2"]
    assert held.learned == {scope: lesson}
