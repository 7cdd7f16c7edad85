"""The lives of runs, told by an independent hand from what clients sent and what livesign acknowledged.

It follows the words of the design: what opens a run, who holds it, what ends it, and when nobody is left to end it. It
answers what an event's acknowledgement must say, whether an end that nobody sent is right, and which runs are overdue.
Times are those of the runtime's clock, which stands still while the host sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from actors.config import Config
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Event
from tests.simulation.life import PHASES, Life, gate

OPENS = (
    events.Received, events.Queued, events.Waiting, events.Thinking, events.Tool, events.Compacting, events.Text,
    events.Progress,
)  # fmt: skip
NAMES = {events.Done: "done", events.Error: "error", events.Cancelled: "cancelled", events.Silent: "silent"}
REFUSED = "rejected"


class Lives:
    """All runs of one world."""

    def __init__(self, config: Callable[[], Config], wall_ms: Callable[[], int]) -> None:
        self._config = config
        self._wall_ms = wall_ms
        self.all: dict[RunKey, Life] = {}
        self.open: dict[RunKey, Life] = {}
        self.dormant: dict[RunKey, Life] = {}
        """Left by an earlier process, of accounts that the present one does not know."""
        self.connected: set[str] = set()
        self._here: dict[tuple[str, str], dict[RunKey, Life]] = {}
        self._just_ended: list[RunKey] = []
        self.posting: dict[tuple[str, str], int] = {}
        """(account, conversation): the post of a run that has ended goes out, until then at most; typing waits for it."""
        self.newest: dict[tuple[str, str, str], RunKey] = {}
        """(account, conversation, message): the newest run on it."""
        self.owners: dict[tuple[str, str, str], RunKey] = {}
        """The newest run on it that may have marks."""

    # --- events ---------------------------------------------------------------------------------------------

    def acknowledged(self, event: Event, client: str, now_ms: int) -> str:
        """The event was taken in. What its answer must be: a result, or `REFUSED`."""
        assert isinstance(event, events.RunEvent | events.Alive)
        if event.conversation is None or (event.run is None and event.message is None):
            self._all_alive(event, client, now_ms)
            return "applied"
        key = self.key_of(event)
        life = self.open.get(key)
        if life is None and isinstance(event, events.Received) and event.run is None:
            life = self.open.get(self.newest.get((*key[:2], key.run), key))
        if life is not None:
            return self._goes_on(life, event, client, now_ms)
        if key in self.all:
            return self._over(event)
        if not isinstance(event, OPENS):
            return "unknown"
        life = self._opens(key, event, now_ms)
        life.holders.add(client)
        self._take(life, event, now_ms)
        return "applied"

    @staticmethod
    def key_of(event: events.RunEvent | events.Alive) -> RunKey:
        """The run that the event names."""
        return RunKey(event.account or "", event.conversation or "", event.run or event.message or "")

    def _all_alive(self, event: Event, client: str, now_ms: int) -> None:
        for held in self.open.values():
            if client in held.holders:
                held.last_ms = now_ms
                held.see(event, now_ms)

    def _opens(self, key: RunKey, event: events.RunEvent, now_ms: int) -> Life:
        received = event if isinstance(event, events.Received) else None
        about: tuple[bool | None, bool | None, str | None]
        about = (received.direct, received.mentioned, received.kind) if received else (None, None, None)
        policy = self._config().policy(key.account, key.conversation, *about)
        wall_ms = self._wall_ms()
        life = Life(
            key, policy, event.message, now_ms, wall_ms, policy.lease.ms if event.lease_ms is None else event.lease_ms,
            event.lease_ms is not None, now_ms, *gate(received, policy, wall_ms), event.thread,
        )  # fmt: skip
        life.progress_ms = life.sign_ms = now_ms
        life.about = about
        life.first_thread = life.thread
        self.all[key] = self.open[key] = life
        self._here.setdefault((key.account, key.conversation), {})[key] = life
        self._own(life)
        return life

    def _own(self, life: Life) -> None:
        if life.message is not None:
            place = (life.key.account, life.key.conversation, life.message)
            self.newest[place] = life.key
            if life.marked or place not in self.owners:
                self.owners[place] = life.key

    def _goes_on(self, life: Life, event: Event, client: str, now_ms: int) -> str:
        if isinstance(event, events.Merged) and not self._may_follow(life, event.into):
            return REFUSED
        life.holders.add(client)
        life.last_ms = now_ms
        life.adopt_until_ms = 0
        if now_ms >= self.due_ms(life, "final_sent"):  # it waits for its children only
            life.done = True
        if isinstance(event, events.Received):
            return "duplicate"
        if life.done and _ends(event) and not isinstance(event, events.Clear):
            return "late"
        self._take(life, event, now_ms)
        return "applied"

    def _may_follow(self, life: Life, into: str) -> bool:
        """Whether the run ``into`` is open and does not follow this one."""
        target: RunKey | None = RunKey(life.key.account, life.key.conversation, into)
        if target not in self.open:
            return False
        while target is not None and target in self.open:
            if target == life.key:
                return False
            target = self.open[target].into
        return True

    def _over(self, event: Event) -> str:
        if isinstance(event, events.Received):
            return "duplicate"
        if isinstance(event, events.Clear | events.Restore | events.Sent):
            return "late or applied"
        return "late"

    def _take(self, life: Life, event: Event, now_ms: int) -> None:
        match event:
            case _ if isinstance(event, PHASES):
                life.final_ms = None
                asks = isinstance(event, events.Waiting) and event.on == "user"
                life.waiting_ms = now_ms if asks else None
            case events.Child(child=child, max_ms=max_ms):
                limit_ms = life.policy.lease.child_max_ms
                life.children[child] = now_ms + (limit_ms if max_ms is None else min(limit_ms, max_ms))
            case events.ChildEnd(child=child, ok=ok):
                given_up_ms = life.children.pop(child, None)
                life.child_failed |= given_up_ms is not None and now_ms < given_up_ms and not ok
            case events.Merged(into=into):
                life.into = RunKey(life.key.account, life.key.conversation, into)
            case events.Sending():
                life.sending = True
            case events.Sent(final=final, ok=ok):
                life.sending = False
                if final and ok:
                    life.final_ms = now_ms
            case events.Moved(thread=thread):
                life.thread = thread
        life.see(event, now_ms)
        if isinstance(event, events.Done):
            life.done = True
        elif _ends(event):
            self.ends(life, "cancelled" if isinstance(event, events.Clear) else NAMES[type(event)], now_ms)
            return
        self._finish(life, now_ms)

    def _finish(self, life: Life, now_ms: int) -> None:
        if life.done and not life.children:
            self.ends(life, "error" if life.child_failed else "done", now_ms)

    # --- ends -----------------------------------------------------------------------------------------------

    def ends(self, life: Life, outcome: str, now_ms: int) -> None:
        """The run is over, and with it those merged into it."""
        if self.open.pop(life.key, None) is None:
            return
        life.ended_ms, life.outcome = now_ms, outcome
        self._just_ended.append(life.key)
        if life.sending:
            self.posting[life.key[0], life.key[1]] = now_ms + life.policy.typing.sending_max_ms
        here = self._here[life.key[:2]]
        del here[life.key]
        for other in list(self.open.values()):
            if other.into == life.key:
                self.ends(other, outcome, now_ms)

    def in_conversation(self, account: str, conversation: str) -> list[Life]:
        """Open runs of one conversation."""
        return list(self._here.get((account, conversation), {}).values())

    def just_ended(self) -> list[RunKey]:
        """Runs that ended since the last question."""
        ended, self._just_ended = self._just_ended, []
        return ended

    def reopen(self, life: Life) -> None:
        """Its end was lost with the process."""
        life.ended_ms = life.outcome = None
        self.open[life.key] = life
        self._here.setdefault(life.key[:2], {})[life.key] = life

    def forget(self, life: Life) -> None:
        """Nobody knows any more that there was such a run."""
        del self.all[life.key]
        self.dormant.pop(life.key, None)
        if self.open.pop(life.key, None) is not None:
            del self._here[life.key[:2]][life.key]
        place = (life.key.account, life.key.conversation, life.message or "")
        if life.key in (self.newest.get(place), self.owners.get(place)):  # the message is that of the runs before again
            self.newest.pop(place, None)
            self.owners.pop(place, None)
            for other in self.all.values():
                if (other.key.account, other.key.conversation, other.message) == place:
                    self._own(other)

    # --- clients and processes ------------------------------------------------------------------------------

    def connects(self, client: str) -> None:
        self.connected.add(client)

    def leaves(self, client: str, now_ms: int) -> None:
        if client in self.connected:
            for life in self.open.values():
                if client in life.holders:
                    life.alone_ms = now_ms
            self.connected.discard(client)

    def booted(self, now_ms: int) -> None:
        """Another process: what is open waits for its clients."""
        self.connected.clear()
        for life in list(self.open.values()):
            if life.key.account in self._config().accounts:
                self._survives(life, now_ms)
            else:
                self.dormant[life.key] = self.open.pop(life.key)
                del self._here[life.key[:2]][life.key]
        self.configured(now_ms)

    def configured(self, now_ms: int) -> None:
        """Accounts may be there again: their runs go on."""
        for life in [life for life in self.dormant.values() if life.key.account in self._config().accounts]:
            del self.dormant[life.key]
            self.reopen(life)
            self._survives(life, now_ms)

    def _survives(self, life: Life, now_ms: int) -> None:
        policy = self._config().policy(life.key.account, life.key.conversation, *life.about)
        life.survive(policy, now_ms, self._wall_ms())
        self._own(life)  # what was known of newer runs on the message that have ended is forgotten

    # --- ends that nobody sends -----------------------------------------------------------------------------

    def due_ms(self, life: Life, reason: str) -> int:
        """When livesign may end this run for this reason, at the earliest."""
        return life.due_ms(reason, self.connected)

    def overdue(self, now_ms: int) -> Iterator[tuple[Life, str]]:
        """Open runs that should have ended before ``now_ms``, and why."""
        for life in self.open.values():
            for reason in ("lease_expired", "run_max", "wait_max", "final_sent", "recovered"):
                if self.due_ms(life, reason) < now_ms and not (life.children and reason == "final_sent"):
                    yield life, reason
                    break
            else:
                if life.done and max(life.children.values(), default=0) < now_ms:
                    yield life, "done, and its children are given up"


def _ends(event: Event) -> bool:
    if isinstance(event, events.Error):
        return event.scope == "run"
    return isinstance(event, (*events.TERMINAL_EVENTS, events.Clear))
