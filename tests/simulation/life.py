"""One run from the event that opened it to its end, as `tests.simulation.lives` follows it. Plain data and simple rules."""

from __future__ import annotations

from dataclasses import dataclass, field

from actors.presence.policy import AckSettings, Policy
from actors.presence.terms import RunKey
from protocol import events
from protocol.events import Event
from tests.simulation.phase import Phase

NEVER_MS = 1 << 60
PHASES = (
    events.Queued, events.Waiting, events.Thinking, events.Tool, events.Compacting, events.Text,
)  # fmt: skip
WORK = (events.Thinking, events.Tool, events.Compacting, events.Text)
PROGRESS = (
    *PHASES, events.Progress, events.ToolEnd, events.CompactingEnd, events.Child, events.ChildEnd, events.Moved,
    events.Sending, events.Sent, events.Error,
)  # fmt: skip
"""What the stall clocks count from. An error that does not end the run is one of its lane."""


@dataclass(slots=True)
class Life:
    """One run."""

    key: RunKey
    policy: Policy
    message: str | None
    opened_ms: int
    opened_wall_ms: int
    lease_ms: int
    events_only: bool
    last_ms: int
    ack: bool
    """Whether the ack may show."""
    status: bool
    """Whether status marks may show."""
    thread: str | None = None
    kept: frozenset[str] = frozenset()
    """Final marks of earlier runs on the message, which their settings let stay."""
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
    survived: bool = False
    """The process that it was opened in is dead."""
    into: RunKey | None = None
    ended_ms: int | None = None
    outcome: str | None = None
    waits: bool = False
    """For a slot or for the user: nothing stalls."""
    phase: Phase = field(init=False)
    typing_off: bool = False
    """Nothing may type for it: the user is asked."""
    typing_over: bool = False
    """It was told to be still, or its answer is out; until an explicit start."""
    typing_from_ms: int | None = None
    """Typing may begin then; None: not yet known."""
    fresh: bool = True
    """Nothing that may begin typing has come yet."""
    progress_ms: int = 0
    sign_ms: int = 0
    """The last sign of life that counts for typing."""
    armed_ms: int = 0
    """When the first typing call after that has ended: the TTL counts from there at the earliest."""
    start_failed: bool = False
    """Another call may follow the last one at once, and wait for long."""
    spans: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phase = Phase(self.policy.status, self.opened_ms)

    def start_ended(self, now_ms: int, happened: bool) -> None:
        """A typing call has ended; one that failed begins anew."""
        if self.armed_ms < self.sign_ms or self.start_failed or not happened:
            self.armed_ms = now_ms
        self.start_failed = not happened

    def must_type(self, now_ms: int, slack_ms: int) -> bool:
        """Whether typing must be on for it now, where nothing goes wrong."""
        begun = self.typing_from_ms is not None and now_ms >= self.typing_from_ms + slack_ms
        lasts = now_ms < self.progress_ms + self.policy.typing.ttl_ms
        quiet = now_ms >= self.last_ms + slack_ms
        still = self.typing_off or self.typing_over or self.sending or self.survived
        return begun and lasts and quiet and not still

    @property
    def marked(self) -> bool:
        """Whether any mark may show."""
        return self.message is not None and (self.ack or self.status)

    def presented(self, state: str) -> bool:
        """Whether this state's mark is shown by the settings."""
        shown = self.policy.status.presentation
        return self.status and self.message is not None and (shown is None or state in shown)

    @property
    def shows_its_end(self) -> bool:
        """Whether its end has a mark of its own."""
        if self.outcome not in ("done", "error") or self.ended_ms is None:
            return False
        return self.presented(self.outcome) and self.ended_ms >= self.opened_ms + self.policy.status.start_delay_ms

    def see(self, event: Event, now_ms: int) -> None:
        """What the event means for typing and stalls."""
        if isinstance(event, events.Alive):
            if now_ms <= self.progress_ms + self.policy.typing.quiet_max_ms:
                self.sign_ms = now_ms
            return
        self.sign_ms = now_ms
        if isinstance(event, PROGRESS):
            self.progress_ms = now_ms
        self.phase.see(event, now_ms)
        if isinstance(event, PHASES):
            self.waits = isinstance(event, events.Waiting)
            self.typing_off = isinstance(event, events.Waiting) and event.on == "user"
        if isinstance(event, events.Tool) and event.call is not None:
            self.spans[event.call] = now_ms
        elif isinstance(event, events.ToolEnd):
            self.spans.pop(event.call, None)
        self._see_typing(event, now_ms)

    def _see_typing(self, event: Event, now_ms: int) -> None:
        if isinstance(event, events.TypingStart):
            self.typing_off = self.typing_over = False
            self.typing_from_ms = now_ms
        elif isinstance(event, events.TypingStop) or (isinstance(event, events.Sent) and event.final and event.ok):
            self.typing_over = True
        elif self.typing_from_ms is None and self._begins(event):
            self.typing_from_ms = now_ms + self.policy.typing.start_delay_ms
        if isinstance(event, (events.Received, events.Progress, events.TypingStop, *PHASES)):
            self.fresh = False

    def _begins(self, event: Event) -> bool:
        mode = self.policy.typing.mode
        if mode == "message":
            return isinstance(event, events.Text) and event.visible
        if mode == "thinking":
            return isinstance(event, WORK) or (self.fresh and isinstance(event, events.Progress))
        return mode == "instant"

    def survive(self, policy: Policy, now_ms: int, wall_ms: int) -> None:
        """Its process is dead. What the next one cannot know is forgotten; it waits for its clients."""
        self.phase = Phase(policy.status, now_ms)
        self.phase.known = False
        self.survived = self.fresh = True
        self.holders.clear()
        self.children.clear()
        self.spans.clear()
        self.done = self.child_failed = self.sending = self.waits = False
        self.typing_off = self.typing_over = False
        self.final_ms = self.waiting_ms = self.into = self.typing_from_ms = None
        self.alone_ms = self.last_ms = now_ms
        self.opened_ms = now_ms - max(0, wall_ms - self.opened_wall_ms)
        self.thread = self.first_thread  # a move dies with its process
        self.policy = policy
        self.adopt_until_ms = now_ms + max(1, policy.lease.adopt_ms)

    def due_ms(self, reason: str, connected: set[str]) -> int:
        """When livesign may end it for this reason, at the earliest."""
        status = self.policy.status
        match reason:
            case "lease_expired":
                return self._lease_ms(connected)
            case "run_max":
                return self.opened_ms + (self.policy.lease.run_max_ms or NEVER_MS)
            case "wait_max":
                return (
                    NEVER_MS
                    if not status.wait_max_ms or self.waiting_ms is None
                    else self.waiting_ms + status.wait_max_ms
                )
            case "final_sent":
                return (
                    NEVER_MS
                    if not status.final_sent_ms or self.final_ms is None
                    else self.final_ms + status.final_sent_ms
                )
            case "recovered":
                return self.adopt_until_ms or NEVER_MS
            case "child_failed":
                return max(self.children.values(), default=0)
        return 0

    def _lease_ms(self, connected: set[str]) -> int:
        if self.adopt_until_ms or self.into is not None or not self.lease_ms:
            return NEVER_MS
        wait_ms = self.policy.status.final_sent_ms
        not_before_ms = 0 if self.final_ms is None or not wait_ms else self.final_ms + wait_ms
        if self.events_only:
            return max(not_before_ms, self.last_ms + self.lease_ms)
        if self.holders & connected:
            return NEVER_MS
        return max(not_before_ms, max(self.last_ms, self.alone_ms) + self.lease_ms)


def gate(received: events.Received | None, policy: Policy, wall_ms: int) -> tuple[bool, bool]:
    """Whether ack and status marks may show, by the words of the design."""
    if received is None:
        return False, policy.status.enabled
    if received.from_bot and not policy.ack.from_bots:
        return False, False
    sent_ms = received.sent_at_ms
    if sent_ms is not None and policy.ack.max_age_ms:
        sent_ms = sent_ms * 1_000 if sent_ms < 100_000_000_000 else sent_ms
        if wall_ms - sent_ms > policy.ack.max_age_ms:
            return False, False
    ack = _acked(received, policy.ack)
    return ack, policy.status.enabled and (ack or policy.status.gate == "none")


def _acked(received: events.Received, settings: AckSettings) -> bool:
    mentioned = received.mentioned or bool(received.bypass_mention)
    if settings.scope in ("off", "none"):
        return False
    if settings.variant == "whatsapp":
        if received.direct:
            return settings.whatsapp_direct
        return {"always": True, "never": False, "mentions": mentioned}[settings.whatsapp_group]
    if settings.scope == "all":
        return True
    if settings.scope == "direct" or received.direct:
        return settings.scope == "direct" and received.direct
    if settings.scope == "group-all":
        return True
    return received.mentionable is not False and received.can_detect_mention and mentioned
