"""Who wants to know what shows now: subscriptions of clients, and the `State` replies they get.

A subscriber gets the state of every open run it may see when it subscribes, and after that one `State` for each
change of phase, marks or typing of a run. Subscribing again is how a client catches up after a `Gap`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from actors.messages import ReplyTo, Subscription
from actors.outcomes import outcome_of
from actors.presence.run import EndedRun, Run
from actors.presence.terms import RunInfo, RunKey
from protocol.events import State


class Look(Protocol):
    """What is on the platforms now."""

    def shown(self, account: str, conversation: str, message: str) -> list[str]: ...

    def typing(self, account: str, conversation: str, thread: str | None) -> bool: ...


@dataclass(slots=True)
class Subscribers:
    """Plain data above the router."""

    look: Look
    subscriptions: list[Subscription] = field(default_factory=list)
    _last: dict[RunKey, State] = field(default_factory=dict)
    """What was told last of each run, so that nothing is told twice."""

    @property
    def any(self) -> bool:
        """Whether anybody listens; if not, nothing is computed."""
        return bool(self.subscriptions)

    def add(self, subscription: Subscription) -> None:
        """From now on ``subscription.reply`` is told; who asks again for the same is not told twice."""
        reply, wanted = subscription.reply, (subscription.event.account, subscription.event.conversation)
        self.subscriptions = [
            each
            for each in self.subscriptions
            if each.reply != reply or (each.event.account, each.event.conversation) != wanted
        ]
        self.subscriptions.append(subscription)

    def drop(self, reply: ReplyTo) -> None:
        """The connection behind ``reply`` is gone."""
        self.subscriptions = [each for each in self.subscriptions if each.reply != reply]
        if not self.subscriptions:
            self._last.clear()

    def tell(self, run: Run | EndedRun, only: Subscription | None = None) -> None:
        """Send the present state of a run to those who may see it; to all but ``only``, just when it is news."""
        state = self._state(run)
        key = run.info.key
        if only is None and self._last.get(key) == state:
            return
        if isinstance(run, EndedRun) and not state.shown and not state.typing:
            self._last.pop(key, None)
        else:
            self._last[key] = state
        for subscription in self.subscriptions if only is None else (only,):
            if _covers(subscription, run.info):
                subscription.reply(state)

    def _state(self, run: Run | EndedRun) -> State:
        info = run.info
        account, conversation, name = info.key
        ended = run if isinstance(run, EndedRun) else None
        end = outcome_of(ended) if ended else None
        thread = info.thread if info.policy.typing.in_threads else None
        return State(
            account=account,
            conversation=conversation,
            message=info.message,
            run=name,
            phase=ended.outcome if ended else run.phase,  # type: ignore[union-attr]
            shown=[] if info.message is None else self.look.shown(account, conversation, info.message),
            typing=self.look.typing(account, conversation, thread),
            reason=ended.reason if ended else None,
            final=end is not None and end.final,
            mark=end.mark if end else None,
            problem=end.problem if end else None,
        )


def _covers(subscription: Subscription, info: RunInfo) -> bool:
    wanted, allowed = subscription.event, subscription.accounts
    return (
        wanted.account in (None, info.key.account)
        and wanted.conversation in (None, info.key.conversation)
        and (allowed is None or info.key.account in allowed)
    )
