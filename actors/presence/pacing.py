"""Pacing: may this call start now, or when? A pure decision over nested budgets.

Budgets
    Named limits of account, conversation, group, route and message (`limits`), counted by GCRA. A call starts when
    every budget that covers it has a token.

Blocks
    A Retry-After blocks the scope it named and nothing else: account, conversation or route. Where the
    platform did not say, the conversation; when another conversation is limited within 10 s, the account.
    The end of a block only moves forward. A limit without a time blocks for 5 s, four
    times as long when it repeats. No block is longer than a week, whatever it says.

Learning
    Every limit also slows its scope (`lesson`): calls keep a least distance, so a backlog leaves one by one and not in
    a burst. Each further limit lengthens it, quiet spells halve it, and going back to where a limit came is tried
    ever more seldom. Answers to calls that were under way when a limit became known add no second lesson. A limit
    that was taken for the account's, because two conversations met one, teaches the conversation, too.

Memory
    A budget that is full again, a block that is over and a lesson that is forgotten are the same as no
    entry; a few entries are looked at with every call and dropped when they are in that state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from actors.presence.expiring import Expiring
from actors.presence.lesson import NOTHING, Learned, Lesson
from actors.presence.limits import Budget, Limit, Route, routes
from actors.presence.terms import Command, Op, Rank

__all__ = ["ACCOUNT", "Limit", "Pacing", "ScopeKey"]

MAX_WAIT_MS: Final = 604_800_000
JOIN_MS: Final = 10_000
"""Two conversations limited within this time mean the account."""
KEPT_PAUSE_MS: Final = 1_000
"""A shorter pause is over before another process could heed it."""


class ScopeKey(NamedTuple):
    """What a block covers. ``ops`` empty: all calls; ``conversation`` empty: the whole account."""

    scope: str
    ops: str = ""
    conversation: str = ""


ACCOUNT: Final = ScopeKey("account")


class Pacing:
    """Budgets, blocks and lessons of one account.

    ``limits``: by name as in `limits`; ``reserve``: the share of every budget that is left to the bot's own
    posts. Raises ValueError for a name or a share that makes no sense.
    """

    def __init__(self, limits: Mapping[str, Limit], reserve: float = 0.0) -> None:
        self.change(limits, reserve)
        self._forget()

    def change(self, limits: Mapping[str, Limit], reserve: float = 0.0) -> None:
        """Other limits from now on; what has been spent, blocked and learned stays."""
        self._routes = routes(limits, reserve)
        distinct = list(dict.fromkeys(self._routes.values()))
        self.groups: Mapping[Op, int] = {op: distinct.index(route) for op, route in self._routes.items()}
        """Ops with the same number are paced alike: what holds one back on account or conversation holds
        all."""

    def moved(self) -> dict[ScopeKey, Learned]:
        """Another server: nothing is spent, blocked or learned there. What was learned, as nothing, to be written down."""
        learned = dict.fromkeys(self._lessons, NOTHING)
        self._forget()
        return learned

    def _forget(self) -> None:
        self._tats: Expiring[tuple[str, str, str], int] = Expiring(lambda tat_us, now_ms: tat_us <= now_ms * 1_000)
        self._lessons: Expiring[ScopeKey, Lesson] = Expiring(lambda lesson, now_ms: lesson.over(now_ms))
        self._unsaid: tuple[str, int] | None = None
        self._news: set[ScopeKey] = set()

    # --- the decision ---------------------------------------------------------------------------------------

    def check(self, command: Command, rank: Rank, now_ms: int) -> int:
        """0: the call may start now. Otherwise the time (ms) to ask again; it is never earlier than the
        true one."""
        return max(
            self.account_wait(command.op, rank, now_ms),
            self.conversation_wait(command.op, command.conversation, rank, now_ms),
            self.message_wait(command, rank, now_ms),
        )

    def account_wait(self, op: Op, rank: Rank, now_ms: int) -> int:
        """The part of `check` that is the same for all conversations."""
        route = self._routes[op]
        start_us = self._budgets_us(route.account, "", "", rank)
        if self._lessons:
            start_us = max(start_us, self._lessons_us(_account_keys(route), now_ms))
        return _wait_ms(start_us, now_ms)

    def conversation_wait(self, op: Op, conversation: str, rank: Rank, now_ms: int) -> int:
        """The part of `check` that is the same for all messages of a conversation."""
        route = self._routes[op]
        start_us = self._budgets_us(route.budgets_of(conversation), conversation, "", rank)
        if self._lessons:
            start_us = max(start_us, self._lessons_us(_conversation_keys(route, conversation), now_ms))
        return _wait_ms(start_us, now_ms)

    def message_wait(self, command: Command, rank: Rank, now_ms: int) -> int:
        """The part of `check` that is the message's own."""
        budgets = self._routes[command.op].message
        if not budgets or command.message is None:
            return 0
        return _wait_ms(self._budgets_us(budgets, command.conversation, command.message, rank), now_ms)

    def spend(self, command: Command, now_ms: int) -> None:
        """The call starts now: take its tokens."""
        route = self._routes[command.op]
        now_us = now_ms * 1_000
        self._take(route.account, "", "", now_us)
        self._take(route.budgets_of(command.conversation), command.conversation, "", now_us)
        if command.message is not None:
            self._take(route.message, command.conversation, command.message, now_us)
        if self._lessons:
            for key in (*_account_keys(route), *_conversation_keys(route, command.conversation)):
                if (lesson := self._lessons.get(key)) is not None:
                    lesson.started(now_ms)

    # --- what answers teach ---------------------------------------------------------------------------------

    def block(
        self,
        command: Command,
        scope: str | None,
        retry_after_ms: int | None,
        now_ms: int,
        begun_ms: int | None = None,
    ) -> ScopeKey:
        """The answer to ``command`` was a limit. Blocks what it covers and says what that is.

        ``scope``: account, conversation or route as the platform said; anything else: it did not say.
        ``begun_ms``: when the call began (None: now), so that one flood is one lesson.
        """
        key = self._blocked_key(command, scope, now_ms)
        wait_ms = None if retry_after_ms is None else min(retry_after_ms, MAX_WAIT_MS)
        begun_ms = now_ms if begun_ms is None else begun_ms
        guessed = key == ACCOUNT and scope != "account"
        self._limited(command, key, wait_ms, now_ms, begun_ms, guessed)
        if guessed:
            self._limited(command, ScopeKey("conversation", "", command.conversation), wait_ms, now_ms, begun_ms)
        return key

    def pause(self, command: Command, scope: str | None, wait_ms: int, now_ms: int) -> None:
        """``command`` has succeeded and used up the budget of ``scope``: nothing starts there for ``wait_ms``."""
        key = self._blocked_key(command, scope, now_ms)
        lesson = self._lessons.get(key) or Lesson(self._usual_ms(command.op, key))
        lesson.pause(now_ms + min(wait_ms, MAX_WAIT_MS))
        self._lessons.put(key, lesson, now_ms)
        if wait_ms >= KEPT_PAUSE_MS:
            self._news.add(key)

    def slow(self, now_ms: int) -> None:
        """The account comes back after an outage: let its backlog leave one by one for a while."""
        lesson = self._lessons.get(ACCOUNT) or Lesson(self._usual_ms(Op.SET, ACCOUNT))
        lesson.slow(now_ms)
        self._lessons.put(ACCOUNT, lesson, now_ms)
        self._news.add(ACCOUNT)

    def take_learned(self, now_ms: int) -> dict[ScopeKey, Learned]:
        """What answers have taught since this was asked last, to be kept over a restart."""
        if not self._news:
            return {}
        news, self._news = self._news, set()
        lessons = ((key, self._lessons.get(key)) for key in news)
        return {key: lesson.learned(now_ms) for key, lesson in lessons if lesson is not None}

    def learn(self, key: ScopeKey, learned: Learned, age_ms: int, now_ms: int) -> None:
        """Take over what an earlier process has learned and written down ``age_ms`` ago."""
        op = next((op for op, route in self._routes.items() if route.ops == key.ops), Op.SET)
        lesson = Lesson(self._usual_ms(op, key))
        lesson.inherit(learned, age_ms, now_ms)
        if not lesson.over(now_ms):
            self._lessons.put(key, lesson, now_ms)

    def used_before(self, conversation: str, age_ms: int, now_ms: int) -> None:
        """An earlier process was at work here until ``age_ms`` ago, and may have used up every budget then."""
        for route in set(self._routes.values()):
            for where, budgets in (("", route.account), (conversation, route.budgets_of(conversation))):
                for budget in budgets:
                    key = (budget.name, where, "")
                    tat_us = (now_ms - age_ms) * 1_000 + budget.slack_us + budget.interval_us
                    if tat_us > max(self._tats.get(key) or 0, now_ms * 1_000):
                        self._tats.put(key, tat_us, now_ms)

    def spacings(self, now_ms: int) -> dict[ScopeKey, int]:
        """Least distances (ms) in force; O(n) in limited scopes."""
        live = ((key, lesson.spacing_ms(now_ms)) for key, lesson in self._lessons.meaningful(now_ms))
        return {key: spacing_ms for key, spacing_ms in live if spacing_ms}

    def blocks(self, now_ms: int) -> dict[ScopeKey, int]:
        """Scopes blocked now and until when (ms); O(n) in blocked scopes."""
        live = self._lessons.meaningful(now_ms)
        return {key: lesson.until_ms for key, lesson in live if lesson.until_ms > now_ms}

    def __len__(self) -> int:
        """Entries kept (budgets in use, blocks and lessons)."""
        return len(self._tats) + len(self._lessons)

    def sweep(self, now_ms: int) -> None:
        """Drop every entry that means nothing any more; O(n), for quiet times."""
        self._tats.sweep(now_ms)
        self._lessons.sweep(now_ms)

    # --- inside ---------------------------------------------------------------------------------------------

    def _budgets_us(self, budgets: tuple[Budget, ...], conversation: str, message: str, rank: Rank) -> int:
        start_us = 0
        for budget in budgets:
            tat_us = self._tats.get((budget.name, conversation, message))
            if tat_us is not None:
                start_us = max(start_us, budget.start_us(tat_us, rank >= Rank.PHASE))
        return start_us

    def _lessons_us(self, keys: Iterable[ScopeKey], now_ms: int) -> int:
        lessons = [lesson for key in keys if (lesson := self._lessons.get(key)) is not None]
        return max((lesson.next_ms(now_ms) for lesson in lessons), default=0) * 1_000

    def _take(self, budgets: tuple[Budget, ...], conversation: str, message: str, now_us: int) -> None:
        for budget in budgets:
            key = (budget.name, conversation, message)
            tat_us = max(self._tats.get(key) or 0, now_us) + budget.interval_us
            self._tats.put(key, tat_us, now_us // 1_000)

    def _blocked_key(self, command: Command, scope: str | None, now_ms: int) -> ScopeKey:
        if scope == "account":
            return ACCOUNT
        if scope == "route":
            route = self._routes[command.op]
            return ScopeKey("route", route.ops, "" if route.by_account else command.conversation)
        if scope != "conversation":
            last, self._unsaid = self._unsaid, (command.conversation, now_ms)
            if last is not None and last[0] != command.conversation and now_ms - last[1] <= JOIN_MS:
                return ACCOUNT
        return ScopeKey("conversation", "", command.conversation)

    def _limited(
        self, command: Command, key: ScopeKey, wait_ms: int | None, now_ms: int, begun_ms: int, guessed: bool = False
    ) -> None:
        lesson = self._lessons.get(key) or Lesson(self._usual_ms(command.op, key))
        lesson.limited(wait_ms, now_ms, begun_ms, guessed)
        self._lessons.put(key, lesson, now_ms)
        self._news.add(key)

    def _usual_ms(self, op: Op, key: ScopeKey) -> int:
        """The interval of the tightest budget of a scope; 0: it has none."""
        route = self._routes[op]
        budgets = route.budgets_of(key.conversation) if key.conversation else route.account
        return -(-max((budget.interval_us for budget in budgets), default=0) // 1_000)


def _wait_ms(start_us: int, now_ms: int) -> int:
    return 0 if start_us <= now_ms * 1_000 else -(-start_us // 1_000)


def _account_keys(route: Route) -> tuple[ScopeKey, ...]:
    return (ACCOUNT, ScopeKey("route", route.ops)) if route.by_account else (ACCOUNT,)


def _conversation_keys(route: Route, conversation: str) -> tuple[ScopeKey, ...]:
    whole = ScopeKey("conversation", "", conversation)
    return (whole,) if route.by_account else (whole, ScopeKey("route", route.ops, conversation))
