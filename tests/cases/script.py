"""From a case's script to the steps of a scenario, by the tables of `words`.

What the script leaves to be understood is added here: the chat of a turn that was opened before, whether a turn waits
behind another one, which tool a ``tool_end`` ends, and which turns are open when a step is about all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.config import ConfigError, load
from tests.cases import words
from tests.cases.crowds import written_out
from tests.cases.settings import Settings
from tests.cases.words import BEHIND_ANOTHER, EVENTS, OUTBOUND, Word, WordError

Row = list[Any]
"""``[t_ms, event or control step, client]``."""
WALL_START_MS = 1_700_000_000_000
"""Unix time at the beginning of a simulation."""
CLIENT = "c1"
_RELATIVE = re.compile(r"now(?:-(\d+)s)?")


@dataclass(slots=True)
class Turn:
    """One turn of the script."""

    name: str
    account: str
    chat: str
    thread: str | None = None
    has_message: bool = True
    open: bool = True

    @property
    def target(self) -> dict[str, Any]:
        """The fields that name its run."""
        own = {"message": self.name} if self.has_message else {"run": self.name}
        return {"account": self.account, "conversation": self.chat, **own}


@dataclass(slots=True)
class Translation:
    """The scenario's rows, and what expectations need to know of the script."""

    rows: list[Row] = field(default_factory=list)
    turns: dict[str, dict[str, Turn]] = field(default_factory=dict)
    """By name and account."""
    last_ms: int = 0
    outages: list[dict[str, Any]] = field(default_factory=list)
    """Platform rules that the script makes."""

    def turn(self, name: str, account: str | None = None) -> Turn:
        """The turn of this name. Raises `WordError`."""
        found = self.find(name, account)
        if found is None:
            raise WordError(f"the script has no turn {name!r}")
        return found

    def find(self, name: str, account: str | None = None) -> Turn | None:
        """The same, or None. Of several accounts that of the newest is meant."""
        named = self.turns.get(name, {})
        return named.get(account) if account is not None else next(reversed(named.values()), None)

    def open_turns(self) -> list[Turn]:
        """All that are open now, oldest first."""
        return [turn for named in self.turns.values() for turn in named.values() if turn.open]


def translate(script: Sequence[Sequence[Any]], settings: Settings) -> Translation:
    """All of a script. Raises `WordError` with the place."""
    return _Translator(script, settings).run()


def event_id(index: int, part: int = 0) -> str:
    """The id of the event that a step of the script became, by which its answer is found."""
    return f"step-{index}" if part == 0 else f"step-{index}-{part}"


class _Translator:
    def __init__(self, script: Sequence[Sequence[Any]], settings: Settings) -> None:
        self._script = script
        self._settings = settings
        self._out = Translation()
        self._chat = "chat"
        self._down_ms: int | None = None
        self._ended_tools = {
            (step[2].get("m", step[2].get("turn")), step[2].get("name"))
            for step in script
            if len(step) > 2 and step[1] == "tool_end"
        }

    def run(self) -> Translation:
        lines: list[tuple[int, int | None, str, dict[str, Any]]] = []
        for index, step in enumerate(self._script):
            t_ms, word, args = _shape(step, index)
            crowd = [*written_out(t_ms, word, args)]
            lines += [(at_ms, index if crowd[1:] == [] else None, name, more) for at_ms, name, more in crowd]
        lines.sort(key=lambda line: line[0])
        for at_ms, number, word, args in lines:
            try:
                self._out.rows += self._rows(at_ms, number, word, args)
            except (KeyError, TypeError) as error:
                raise WordError(f"{at_ms} {word}: {type(error).__name__} {error}") from error
        self._out.last_ms = max((row[0] for row in self._out.rows), default=0)
        if self._down_ms is not None:
            self._out.outages.append({"from_ms": self._down_ms, "outcome": "transient"})
        return self._out

    def _rows(self, t_ms: int, index: int | None, word: str, args: dict[str, Any]) -> Iterator[Row]:
        client = args.get("client", CLIENT)
        if word == "reload":
            new = self._settings.with_words(args)
            if _can_load(new):
                self._settings = new
            yield [t_ms, {"@reload": {"config": new.tree()}}, client]
        elif word in words.CONTROLS and not (word == "boot" and t_ms == 0):
            name, meant = words.CONTROLS[word]
            yield [t_ms + words.DELAYED.get(word, 0), {name: meant(args)}, client]
        elif word == "boot":
            yield from self._earlier_life(t_ms, args)
        elif word in words.QUESTIONS:
            yield [t_ms, {"type": words.QUESTIONS[word], "id": event_id(index or 0)}, client]
        elif word in ("platform_down", "platform_up"):
            self._platform(t_ms, word, args)
        elif word in words.ELSEWHERE:
            raise WordError(
                f"{word} needs real sockets, processes or clocks: name the test that proves it in proved_by"
            )
        elif word.endswith("_all"):
            for turn in self._out.open_turns():
                yield from self._about(t_ms, None, word.removesuffix("_all"), {"m": turn.name, "account": turn.account})
        elif word not in words.NOTHING and not (word == "host_cancel" and "m" not in args):
            yield from self._about(t_ms, index, word, args)

    def _about(self, t_ms: int, index: int | None, word: str, args: dict[str, Any]) -> Iterator[Row]:
        """The events that this step is for its turn."""
        meanings = OUTBOUND if word == "outbound" else (EVENTS.get(word),)
        if word == "outbound" and "m" not in args and "turn" not in args:
            return
        for part, meaning in enumerate(meanings):
            event = self._event(t_ms, word, meaning, args)
            if index is not None:
                event = {"id": event_id(index, part), **event}
            yield [t_ms, event, args.get("client", CLIENT)]

    def _event(self, t_ms: int, word: str, meaning: Word | None, args: dict[str, Any]) -> dict[str, Any]:
        if meaning is not None and word in _BARE:
            return self._bare(meaning, args)
        turn = self._turn(meaning, args)
        if meaning is None:
            return {"type": word, **turn.target, **{key: args[key] for key in args if key not in _NAMES}}
        if word == "queued" and self._is_behind(turn):
            meaning = BEHIND_ANOTHER
        fields = dict(meaning.fixed)
        for name, value in self._readable(t_ms, word, args).items():
            take = meaning.takes.get(name)
            if take is not None:
                fields[take.field] = take.convert(value)
        if meaning.opens and turn.thread is not None:
            fields["thread"] = turn.thread
        if meaning.ends and fields.get("scope") != "lane":
            turn.open = False
        return {"type": meaning.wire, **turn.target, **fields}

    def _readable(self, t_ms: int, word: str, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments, with what has to be worked out from several of them."""
        if word == "message":
            args = {key: value for key, value in args.items() if key != "kind" or value in words.KINDS}
            if "ts" in args:
                args["sent_at_ms"] = _sent_at(args["ts"], args.get("ts_unit", "ms"), t_ms)
        elif word in ("tool", "tool_end") and "call" not in args:
            name = args.get("name")
            if (args.get("m", args.get("turn")), name) in self._ended_tools:
                args = {**args, "call": name or "tool"}
        return args

    def _turn(self, meaning: Word | None, args: dict[str, Any]) -> Turn:
        name = args.get("m", args.get("turn", "nobody"))
        if not isinstance(name, str | int):
            raise WordError(f"a turn is named by text or a number, not by {name!r}")
        name = str(name)
        account = args.get("account", args.get("platform"))
        if account not in self._settings.accounts and "account" not in args:
            account = None
        known = self._out.find(name, account)
        chat = args.get("chat")
        if known is not None and chat in (None, known.chat):
            return known
        if meaning is not None and meaning.opens:
            self._chat = str(chat if chat is not None else self._chat)
        thread = args.get("thread")
        turn = Turn(
            name,
            account or self._settings.accounts[0],
            str(chat if chat is not None else self._chat),
            None if thread is None else str(thread),
            has_message="m" in args,
            open=meaning is not None and meaning.opens,
        )
        if turn.open:
            self._out.turns.setdefault(turn.name, {})[turn.account] = turn
        return turn

    def _is_behind(self, turn: Turn) -> bool:
        place = (turn.account, turn.chat, turn.thread)
        return any((o.account, o.chat, o.thread) == place for o in self._out.open_turns() if o is not turn)

    def _bare(self, meaning: Word, args: dict[str, Any]) -> dict[str, Any]:
        fields = {take.field: take.convert(args[name]) for name, take in meaning.takes.items() if name in args}
        thread = {"thread": str(args["thread"])} if "thread" in args else {}
        account = args.get("account", self._settings.accounts[0])
        return {"type": meaning.wire, "account": account, "conversation": str(args["chat"]), **thread, **fields}

    def _platform(self, t_ms: int, word: str, args: dict[str, Any]) -> None:
        if word == "platform_down":
            self._down_ms = t_ms
        until_ms = args.get("until") if word == "platform_down" else t_ms
        if until_ms is not None and self._down_ms is not None:
            self._out.outages.append({"from_ms": self._down_ms, "until_ms": until_ms, "outcome": "transient"})
            self._down_ms = None

    def _earlier_life(self, t_ms: int, args: dict[str, Any]) -> Iterator[Row]:
        """A first start: with ``journal_entries``, after a process that was killed with so many turns open."""
        for number in range(args.get("journal_entries", 0)):
            entry = {"chat": f"c{number + 1}", "m": f"c{number + 1}-1"}
            yield from self._about(t_ms, None, "message", entry)
            yield from self._about(t_ms, None, "begin", entry)
        if args.get("journal_entries"):
            yield [t_ms, {"@kill_restart": {"down_ms": 0}}, CLIENT]


_BARE = ("scope_start", "scope_stop")
_NAMES = ("m", "turn", "chat", "account", "client", "platform")


def _shape(step: Sequence[Any], index: int) -> tuple[int, str, dict[str, Any]]:
    args = step[2] if len(step) > 2 else {}
    if not 2 <= len(step) <= 3 or not isinstance(step[0], int) or not isinstance(step[1], str) or step[0] < 0:
        raise WordError(f"script[{index}] must be [t_ms, word, arguments]")
    if not isinstance(args, dict):
        raise WordError(f"script[{index}]: the arguments are an object")
    return step[0], step[1], args


def _can_load(settings: Settings) -> bool:
    """Whether a reload will be taken: what is refused does not count for the next one."""
    try:
        load(settings.tree(), scenario=True)
    except ConfigError:
        return False
    return True


def _sent_at(value: Any, unit: str, t_ms: int) -> int:
    """``now``, ``now-10s`` or a number, in the unit that the platform uses."""
    if isinstance(value, str):
        match = _RELATIVE.fullmatch(value)
        if match is None:
            raise WordError(f"ts is a number, now or now-Ns, not {value!r}")
        wall_ms = WALL_START_MS + t_ms - int(match[1] or 0) * 1_000
        return wall_ms // 1_000 if unit == "s" else wall_ms
    return int(value)
