"""How a good client treats a platform, kept by an independent hand: what operators would complain about otherwise.

- no more calls at once than the account may have, and typing never takes more than half of them
- a call that is made again because nobody knows how it ended has the key of the first; no other call has it
- what was refused is not asked for again for as long as that is remembered: an emoji in a conversation, a message that is
  gone, any mark (or typing) in a conversation that forbids it
- typing that fails is given up, and tried again only after the probe's time or when something happens; each start counts
  twice, because one whose end nobody knows is made once more
- a wish that does not change does not make calls without end
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from actors.config import Account
from actors.presence.terms import TYPING_OPS, Op, Outcome, OutcomeKind
from actors.scripted_platform import CallRecord

REMEMBERED_MS = 86_400_000
FORBIDDEN_MS = 600_000
CALLS_MAX = 25
"""So many calls that went well are more than any wish needs."""
HELD_MS = 60_000
"""So long a call may have to wait for an account's limits."""
PROBE_MS = 30_000
"""Where nothing is tried by itself after typing was given up: so long at least."""

Lane = tuple[Any, ...]


@dataclass(slots=True)
class Key:
    """What an idempotency key was used for."""

    call: tuple[Any, ...]
    settled: bool = False


class Manners:
    """All platforms of one world."""

    def __init__(
        self, accounts: Callable[[], Mapping[str, Account]], problem: Callable[[str], None], lag_ms: int
    ) -> None:
        """``lag_ms``: so long a call may be on its way before the platform sees it."""
        self._accounts = accounts
        self._problem = problem
        self._lag_ms = lag_ms
        self._under_way: Counter[tuple[str, bool]] = Counter()
        self._keys: dict[tuple[str, str], Key] = {}
        self._in_doubt: dict[Lane, tuple[Op, str | None, str]] = {}
        """The last call of a lane, where nobody knows how it ended."""
        self._refused: dict[tuple[str, ...], tuple[int, int]] = {}
        """Refused emojis and messages: since when, and until when that holds."""
        self._forbidden: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self.forbids: Counter[tuple[str, str, bool]] = Counter()
        """How often a conversation has forbidden marks (or typing) to the present process."""
        self._went_well: Counter[Lane] = Counter()
        self._happened_ms: Counter[tuple[str, str]] = Counter()
        self._failed: dict[Lane, tuple[int, int, str, int]] = {}
        """Typing targets: starts that failed in a row, when the last one did, its key, and when the first one was made."""

    # --- what happens around --------------------------------------------------------------------------------

    def booted(self, in_doubt: Iterable[tuple[Lane, str, str]]) -> None:
        """Another process: it remembers no refusal. ``in_doubt``: lane, emoji and key of each mark of which it knows that
        nobody knows how its call ended."""
        self._in_doubt.clear()
        for lane, emoji, key in in_doubt:
            self._in_doubt[lane] = (Op.SET, emoji, key)
            if (lane[0], key) in self._keys:  # else it has died before the call
                self._keys[lane[0], key].settled = False
        self._under_way.clear()
        self._refused.clear()
        self._forbidden.clear()
        self.forbids.clear()
        self._went_well.clear()
        self._failed.clear()

    def renewed(self) -> None:
        """Other credentials: what was forbidden may be allowed."""
        self._forbidden.clear()

    def happened(self, account: str, conversation: str, t_ms: int) -> None:
        """A client has told something about this conversation."""
        self._happened_ms[account, conversation] = t_ms
        for lane in [lane for lane in self._failed if lane[:2] == (account, conversation)]:
            del self._failed[lane]

    def posted(self, account: str, conversation: str) -> None:
        """The bot has posted there: it may ask again."""
        for typing in (True, False):
            self._forbidden.pop((account, conversation, typing), None)

    def wished(self, lane: Lane) -> None:
        """Something new is wanted of a lane."""
        self._went_well.pop(lane, None)

    # --- calls ----------------------------------------------------------------------------------------------

    def called(self, lane: Lane, record: CallRecord, t_ms: int) -> None:
        self._count(record)
        self._check_key(lane, record)
        self._check_refused(lane, record, t_ms)

    def answered(self, lane: Lane, record: CallRecord, outcome: Outcome, t_ms: int) -> None:
        command, account, kind = record.command, record.account, outcome.kind
        self._under_way[account, command.op in TYPING_OPS] -= 1
        open_end = kind in (OutcomeKind.UNKNOWN, OutcomeKind.TRANSIENT)
        if open_end and command.op not in TYPING_OPS:
            self._in_doubt[lane] = (command.op, command.emoji, command.idempotency_key)
        known = self._keys.get((account, command.idempotency_key))
        if known is not None:
            known.settled = outcome.happened
        if command.op is Op.TYPING_START:
            self._typing_answered(lane, record, outcome, t_ms)
        self._learn(record, outcome, t_ms)
        if outcome.happened and command.op not in TYPING_OPS:
            self._went_well[lane] += 1
            if self._went_well[lane] == CALLS_MAX:
                self._problem(f"{CALLS_MAX} calls for {lane} went well, and there is no end of them")

    # --- inside ---------------------------------------------------------------------------------------------

    def _count(self, record: CallRecord) -> None:
        account, typing = record.account, record.command.op in TYPING_OPS
        self._under_way[account, typing] += 1
        allowed = self._accounts()[account].calls.concurrency
        both = self._under_way[account, True] + self._under_way[account, False]
        if both > allowed or (typing and self._under_way[account, True] > max(1, allowed // 2)):
            self._problem(f"{both} calls of {account} at once, {allowed} are allowed, and half of them for typing")

    def _check_key(self, lane: Lane, record: CallRecord) -> None:
        command = record.command
        call = (lane, command.op, command.emoji)
        doubt = self._in_doubt.pop(lane, None)
        if doubt is not None and doubt[:2] == (command.op, command.emoji) and doubt[2] != command.idempotency_key:
            self._problem(f"{command.op} in {lane} is made again under another key")
        known = self._keys.setdefault((record.account, command.idempotency_key), Key(call))
        if known.call != call or known.settled:
            self._problem(f"{command.op} in {lane} has the key of another call: {known.call}")

    def _check_refused(self, lane: Lane, record: CallRecord, t_ms: int) -> None:
        account, command = record.account, record.command
        rules = self._accounts()[account].spec.rules
        asked: list[tuple[str, ...]] = []
        if command.message is not None:
            asked.append((account, command.conversation, "message", command.message))
        if command.op is Op.SET and not rules.removal_needs_handle:
            asked.append((account, command.conversation, "emoji", command.emoji or "", command.message or ""))
        for what in asked:
            since_ms, until_ms = self._refused.get(what, (0, 0))
            if since_ms + self._lag_ms < t_ms < until_ms:
                self._problem(f"{command.op} for {what}, which was refused {t_ms - since_ms} ms ago")
        if command.op in (Op.SET, Op.TYPING_START):
            since_ms, until_ms = self._forbidden.get((account, command.conversation, command.op in TYPING_OPS), (0, 0))
            if since_ms + self._lag_ms < t_ms < until_ms and not (command.op is Op.SET and rules.removal_needs_handle):
                self._problem(f"{command.op} in {command.conversation}, which was forbidden {t_ms - since_ms} ms ago")
        failures, failed_ms, key, first_ms = self._failed.get(lane, (0, 0, "", 0))
        typing = self._accounts()[account].policy.typing
        probe_ms = typing.probe_ms or PROBE_MS
        if command.op is not Op.TYPING_START or command.idempotency_key == key:
            return
        if self._accounts()[account].limits and first_ms < self._happened_ms[lane[0], lane[1]] + HELD_MS:
            return  # what an explicit start has joined may have to wait for long
        if failures >= 2 * typing.start_failures and failed_ms + self._lag_ms < t_ms < failed_ms + probe_ms:
            self._problem(f"typing in {lane} has failed {failures} times, and is tried {t_ms - failed_ms} ms later")

    def _typing_answered(self, lane: Lane, record: CallRecord, outcome: Outcome, t_ms: int) -> None:
        key = record.command.idempotency_key
        if outcome.happened:
            self._failed.pop(lane, None)
        elif outcome.kind in (OutcomeKind.GONE, OutcomeKind.BAD_REQUEST, OutcomeKind.INVALID_REACTION):
            if self._happened_ms[lane[0], lane[1]] < record.t_ms:  # else another start may wait behind this one
                self._failed[lane] = (1 << 20, t_ms, key, record.t_ms)
        elif outcome.kind is not OutcomeKind.RATE_LIMITED:
            failures, _, _, first_ms = self._failed.get(lane, (0, 0, "", record.t_ms))
            self._failed[lane] = (failures + 1, t_ms, key, first_ms)

    def _learn(self, record: CallRecord, outcome: Outcome, t_ms: int) -> None:
        """What must not be asked for again; what begins after this very moment knows it."""
        account, command, kind = record.account, record.command, outcome.kind
        until_ms = t_ms + REMEMBERED_MS
        if kind is OutcomeKind.GONE and command.message is not None:
            self._refused[account, command.conversation, "message", command.message] = (t_ms, until_ms)
        elif kind is OutcomeKind.INVALID_REACTION and command.op is Op.SET:
            where = (account, command.conversation, "emoji", command.emoji or "", command.message or "")
            self._refused[where] = (t_ms, until_ms)
        elif kind is OutcomeKind.FORBIDDEN and outcome.scope in (None, "conversation"):
            place = (account, command.conversation, command.op in TYPING_OPS)
            self.forbids[place] += 1
            _, known_ms = self._forbidden.get(place, (0, 0))
            if t_ms >= known_ms:
                self._forbidden[place] = (t_ms, t_ms + FORBIDDEN_MS)
