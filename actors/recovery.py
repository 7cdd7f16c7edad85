"""What a new process does with the ledger of the one before.

Open runs wait for their clients: any event of a run takes it over within ``lease.adopt_ms``; the others end as
``recovery.marks`` says. Where a run has ended, what its own settings leave is shown at once, and the rest is taken off, as
are marks and typing without a run. Everything goes through the lanes, so within the limits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from actors.config import Config
from actors.ledger import Contents, Place, RunRow
from actors.parts import Parts
from actors.presence.pacing import ScopeKey
from actors.presence.terms import Rank
from actors.router_state import Adopted


def recover(
    contents: Contents, config: Config, parts: Parts, accounts: Collection[str], now_ms: int, wall_ms: int
) -> None:
    """Fill lanes and run table from what the ledger has of these accounts, before any actor of theirs runs."""
    router = parts.router
    for (name, *scope), lesson in contents.learned.items():
        if name in accounts and not lesson.is_over(wall_ms):
            lanes = parts.accounts[name].lanes
            lanes.learn(ScopeKey(*scope), lesson.learned, lesson.age_ms(wall_ms), now_ms)
    for name, (refused, counted_ms) in contents.refused.items():
        if name in accounts:
            parts.accounts[name].lanes.inherit_refused(refused, max(0, wall_ms - counted_ms), now_ms)
    for key, (outcome, reason, _) in contents.ended.items():
        if key.account in accounts:
            policy = config.policy(key.account, key.conversation)
            router.runs.adopt_ended(key, outcome, reason, policy, now_ms)
    for (name, conversation), age_ms in _ages_ms(contents, wall_ms).items():
        if name in accounts:
            parts.accounts[name].lanes.used_before(conversation, age_ms, now_ms)
    owners: dict[Place, RunRow] = {}
    for key, row in contents.runs.items():
        if key.account not in accounts:
            continue
        policy = config.policy(key.account, key.conversation, row.direct, row.mentioned, row.kind)
        row.info = replace(row.info, policy=policy)
        age_ms = max(0, wall_ms - row.opened_wall_ms) if row.opened_wall_ms else 0
        router.runs.adopt(row.info, row.lease_ms, row.events_only, age_ms, now_ms)
        if row.info.message is not None and (row.info.ack_allowed or row.info.status_allowed):
            owners[Place(key.account, key.conversation, row.info.message)] = row
    shown = {
        place: _adopt_marks(place, contents, place in owners, parts, now_ms)
        for place in {**contents.marks, **contents.rests}
        if place.account in accounts
    }
    for key, row in contents.runs.items():
        if key.account in accounts:
            place = Place(key.account, key.conversation, row.info.message)
            emoji = shown.get(place) if owners.get(place) is row else None
            router.adopted.append(Adopted(row.info, emoji))
    targets = {_typing_target(row) for row in contents.runs.values()}
    for place in sorted(contents.typing, key=_in_order):
        account = parts.accounts.get(place.account) if place.account in accounts else None
        if account is not None:
            account.lanes.adopt_typing(place.conversation, place.target, now_ms)
            if not account.lanes.keeps_typing(place.conversation, place.target):  # it ends by itself
                account.ledger.typing_over(place.conversation, place.target)
                continue
            if place not in targets:
                account.lanes.type_stop(place.conversation, place.target, now_ms)
                router.counters["repaired"] += 1


def _ages_ms(contents: Contents, wall_ms: int) -> dict[tuple[str, str], int]:
    """By account and conversation: how long ago (ms) the last call was made there, at least."""
    ages = {key[:2]: max(0, wall_ms - ended_ms) for key, (_, _, ended_ms) in contents.ended.items()}
    return ages | {key[:2]: 0 for key in (*contents.runs, *contents.marks, *contents.typing)}


def recover_late(
    found: Contents, config: Config, parts: Parts, accounts: Collection[str], now_ms: int, wall_ms: int
) -> None:
    """The same while all is at work: ``found`` has only what the present process does not know of."""
    for place in list(found.marks):
        account = parts.accounts.get(place.account)
        if account is not None and place.target is not None:
            lanes = account.lanes
            if lanes.keeps_marks(place.conversation, place.target):
                for emoji, mark in found.marks.pop(place).items():
                    lanes.find(place.conversation, place.target, emoji, mark, now_ms)
    for place in list(found.rests):
        account = parts.accounts.get(place.account)
        if account is None or place.target is None or not account.lanes.keeps_marks(place.conversation, place.target):
            continue
        account.ledger.rests(place.conversation, place.target, found.rests.pop(place).run)  # another run has it now
    recover(found, config, parts, accounts, now_ms, wall_ms)


def _in_order(place: Place) -> tuple[str, ...]:
    return place.account, place.conversation, place.target or ""


def _typing_target(row: RunRow) -> Place:
    """Where the run will type if somebody takes it over: a move to another thread died with its process."""
    info = row.info
    return Place(info.key.account, info.key.conversation, info.thread if info.policy.typing.in_threads else None)


def _adopt_marks(place: Place, contents: Contents, owned: bool, parts: Parts, now_ms: int) -> str | None:
    """Tell the lanes of the marks on a message; the one set last. Without an open run the message is brought to rest."""
    account, (_, conversation, message) = parts.accounts.get(place.account), place
    if account is None or message is None:
        return None
    marks, rest = contents.marks.get(place, {}), contents.rests.get(place)
    for emoji, mark in marks.items():
        account.lanes.adopt(conversation, message, emoji, mark, now_ms)
    if not owned:
        chain, run = ((), "") if rest is None else (rest.chain, rest.run)
        account.show(conversation, message, chain, Rank.TERMINAL, now_ms)
        account.release(conversation, message, run, now_ms)
        account.settle_marks(conversation, message, called=False)
        parts.router.counters["repaired"] += len(marks) or 1
    return next(reversed(marks), None)
