"""The lives of runs, told by an independent hand from what clients sent and what livesign acknowledged.

It follows the words of the design: what opens a run, who holds it, what ends it, and when nobody is left to end it. It
answers what an event's acknowledgement must say, whether an end that nobody sent is right, and which runs are overdue.
Times are those of the runtime's clock, which stands still while the host sleeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from actors.config import Config
from actors.presence.policy import Policy
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Event

NEVER_MS = 1 << 60
OPENS = (
    events.Received, events.Queued, events.Waiting, events.Thinking, events.Tool, events.Compacting, events.Text,
    events.Progress,
)  # fmt: skip
PHASES = (
    events.Queued, events.Waiting, events.Thinking, events.Tool, events.Compacting, events.Text,
)  # fmt: skip
NAMES = {events.Done: "done", events.Error: "error", events.Cancelled: "cancelled", events.Silent: "silent"}


@dataclass(slots=True)
class Life:
    """One run, from the event that opened it."""

    key: RunKey
    policy: Policy
    message: str | None
    opened_ms: int
    lease_ms: int
    events_only: bool
    last_ms: int
    gated: bool
    """Whether marks may show."""
    thread: str | None = None
    about: tuple[bool | None, bool | None, str | None] = (None, None, None)
    """Direct, mentioned and kind, which choose the settings."""
    holders: set[str] = field(default_factory=set)
    alone_ms: int = 0
    """When the last connected holder was lost."""
    children: dict[str, int] = field(default_factory=dict)
    child_failed: bool = False
    done: bool = False
    final_ms: int | None = None
    waiting_ms: int | None = None
    sending: bool = False
    first_thread: str | None = None
    adopt_until_ms: int = 0
    adopted: bool = False
    """An earlier process has left it: by the wall clock it may be of any age."""
    into: RunKey | None = None
    ended_ms: int | None = None
    outcome: str | None = None
    typing_off: bool = False
    """Nothing may type for it: the user is asked, or it was told to be still."""
    progress_ms: int = 0
    sign_ms: int = 0
    """The last sign of life that counts for typing."""
    armed_ms: int = 0
    """When the first typing call after that has ended: the TTL counts from there at the earliest."""
    spans: dict[str, int] = field(default_factory=dict)

    def start_ended(self, now_ms: int, happened: bool) -> None:
        """A typing call has ended; one that failed begins anew."""
        if self.armed_ms < self.sign_ms or not happened:
            self.armed_ms = now_ms


class Lives:
    """All runs of one world."""

    def __init__(self, config: Callable[[], Config]) -> None:
        self._config = config
        self.all: dict[RunKey, Life] = {}
        self.open: dict[RunKey, Life] = {}
        self.connected: set[str] = set()
        self._here: dict[tuple[str, str], dict[RunKey, Life]] = {}
        self._just_ended: list[RunKey] = []
        self.posting: dict[tuple[str, str], int] = {}
        """(account, conversation): the post of a run that has ended goes out, until then at most; typing waits for it."""
        self.newest: dict[tuple[str, str, str], RunKey] = {}
        """(account, conversation, message): the run that owns its marks."""

    # --- events ---------------------------------------------------------------------------------------------

    def acknowledged(self, event: Event, client: str, now_ms: int) -> str:
        """The event was taken in. What its acknowledgement must say."""
        assert isinstance(event, events.RunEvent | events.Alive)
        if event.conversation is None or (event.run is None and event.message is None):
            if isinstance(event, events.Alive):
                for held in self.open.values():
                    if client in held.holders:
                        held.last_ms = now_ms
                        self._sign(held, event, now_ms)
            return "applied"
        key = RunKey(event.account or "", event.conversation, event.run or event.message or "")
        life = self.open.get(key)
        if life is None and isinstance(event, events.Received) and event.run is None:
            life = self.open.get(self.newest.get((*key[:2], key.run), key))
        if life is not None:
            return self._goes_on(life, event, client, now_ms)
        over = self.all.get(key)
        if over is not None:
            return self._over(over, event, now_ms)
        if not isinstance(event, OPENS):
            return "unknown"
        life = self._opens(key, event, now_ms)
        life.holders.add(client)
        self._take(life, event, now_ms)
        return "applied"

    def _opens(self, key: RunKey, event: events.RunEvent, now_ms: int) -> Life:
        received = event if isinstance(event, events.Received) else None
        about: tuple[bool | None, bool | None, str | None]
        about = (received.direct, received.mentioned, received.kind) if received else (None, None, None)
        policy = self._config().policy(key.account, key.conversation, *about)
        lease_ms = policy.lease.ms if event.lease_ms is None else event.lease_ms
        gated = received is None or policy.status.gate == "none" or self._gate(received, policy)
        life = Life(
            key, policy, event.message, now_ms, lease_ms, event.lease_ms is not None, now_ms, gated, event.thread
        )
        life.progress_ms = life.sign_ms = now_ms
        life.about = about
        life.first_thread = life.thread
        self.all[key] = self.open[key] = life
        self._here.setdefault((key.account, key.conversation), {})[key] = life
        if event.message is not None:
            self.newest[key.account, key.conversation, event.message] = key
        return life

    def _gate(self, received: events.Received, policy: Policy) -> bool:
        return policy.ack.scope == "all" or (not received.direct and received.mentioned)

    def _goes_on(self, life: Life, event: Event, client: str, now_ms: int) -> str:
        life.holders.add(client)
        life.last_ms = now_ms
        life.adopt_until_ms = 0
        if isinstance(event, events.Received):
            return "duplicate"
        if life.done and _ends(event) and not isinstance(event, events.Clear):
            return "late"
        self._take(life, event, now_ms)
        return "applied"

    def _over(self, life: Life, event: Event, now_ms: int) -> str:
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
        self._sign(life, event, now_ms)
        if isinstance(event, events.Done):
            life.done = True
        elif _ends(event):
            self.ends(life, "cancelled" if isinstance(event, events.Clear) else NAMES[type(event)], now_ms)
            return
        self._finish(life, now_ms)

    def _finish(self, life: Life, now_ms: int) -> None:
        if life.done and not life.children:
            self.ends(life, "error" if life.child_failed else "done", now_ms)

    def _sign(self, life: Life, event: Event, now_ms: int) -> None:
        """What the event means for typing."""
        if isinstance(event, events.Alive):
            if now_ms <= life.progress_ms + life.policy.typing.quiet_max_ms:
                life.sign_ms = now_ms
            return
        life.sign_ms = now_ms
        if not isinstance(event, events.Received | events.TypingStop | events.Restore):
            life.progress_ms = now_ms
        if isinstance(event, PHASES):
            life.typing_off = isinstance(event, events.Waiting) and event.on == "user"
        if isinstance(event, events.Tool) and event.call is not None:
            life.spans[event.call] = now_ms
        elif isinstance(event, events.ToolEnd):
            life.spans.pop(event.call, None)
        elif isinstance(event, events.TypingStart):
            life.typing_off = False

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
        """Another process: what is open waits for its clients. What it cannot know is forgotten."""
        self.connected.clear()
        for life in self.open.values():
            life.holders.clear()
            life.children.clear()
            life.spans.clear()
            life.done = life.child_failed = life.sending = life.typing_off = False
            life.final_ms = life.waiting_ms = life.into = None
            life.alone_ms = life.last_ms = now_ms
            life.adopted = True
            life.thread = life.first_thread  # a move dies with its process
            if life.message is not None:  # and so does what was known of newer runs on the message that have ended
                self.newest[life.key.account, life.key.conversation, life.message] = life.key
            life.policy = self._config().policy(life.key.account, life.key.conversation, *life.about)
            life.adopt_until_ms = now_ms + max(1, life.policy.lease.adopt_ms)

    # --- ends that nobody sends -----------------------------------------------------------------------------

    def due_ms(self, life: Life, reason: str) -> int:
        """When livesign may end this run for this reason, at the earliest."""
        match reason:
            case "lease_expired":
                return self._lease_ms(life)
            case "run_max":
                return 0 if life.adopted else life.opened_ms + (life.policy.lease.run_max_ms or NEVER_MS)
            case "wait_max":
                limit_ms = life.policy.status.wait_max_ms
                return NEVER_MS if not limit_ms or life.waiting_ms is None else life.waiting_ms + limit_ms
            case "final_sent":
                limit_ms = life.policy.status.final_sent_ms
                return NEVER_MS if not limit_ms or life.final_ms is None else life.final_ms + limit_ms
            case "recovered":
                return life.adopt_until_ms or NEVER_MS
            case "child_failed":
                return max(life.children.values(), default=0)
        return 0

    def overdue(self, now_ms: int) -> Iterator[tuple[Life, str]]:
        """Open runs that should have ended before ``now_ms``, and why."""
        for life in self.open.values():
            for reason in ("lease_expired", "run_max", "wait_max", "final_sent", "recovered"):
                if life.adopted and reason == "run_max":
                    continue
                if self.due_ms(life, reason) < now_ms and not (life.children and reason == "final_sent"):
                    yield life, reason
                    break
            else:
                if life.done and max(life.children.values(), default=0) < now_ms:
                    yield life, "done, and its children are given up"

    def _lease_ms(self, life: Life) -> int:
        if life.adopt_until_ms or life.into is not None or not life.lease_ms:
            return NEVER_MS
        wait_ms = life.policy.status.final_sent_ms
        not_before_ms = 0 if life.final_ms is None or not wait_ms else life.final_ms + wait_ms
        if life.events_only:
            return max(not_before_ms, life.last_ms + life.lease_ms)
        if life.holders & self.connected:
            return NEVER_MS
        return max(not_before_ms, max(life.last_ms, life.alone_ms) + life.lease_ms)


def _ends(event: Event) -> bool:
    if isinstance(event, events.Error):
        return event.scope == "run"
    return isinstance(event, (*events.TERMINAL_EVENTS, events.Clear))
