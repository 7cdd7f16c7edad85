"""When to type: one machine per target (a conversation or a thread), for any number of runs and bare scopes.

`TypingWish` decides whether one run wants typing, `TypingCalls` makes the calls that keep it on. The machine
holds them together: the target types while any run wants it; one that joins makes no call, one that ends
removes only itself.

| state    | means                                                                        |
| -------- | ---------------------------------------------------------------------------- |
| off      | nobody wants typing, nothing was started                                     |
| open     | somebody wants typing                                                        |
| owed     | nobody does; the stop waits for the last post of a run that has ended        |
| stopping | the stop was told and is not confirmed yet                                   |

| what happens                          | off  | open                     | owed           | stopping |
| ------------------------------------- | ---- | ------------------------ | -------------- | -------- |
| a run wants typing                    | open | joins                    | open           | open     |
| the last wish goes, nothing started   | -    | off                      | -              | -        |
| the last wish goes after a start      | -    | stop: stopping           | -              | -        |
| .. while an ended run's post goes out | -    | withdraw the start: owed | -              | -        |
| ``sent``, or the longest hold is over | -    | -                        | stop: stopping | -        |
| the stop has ended, well or badly     | -    | -                        | -              | off      |

- A stop is told once, and only if a start was asked for since the last one. The lane knows what became of
  the starts: it lets the call follow one in flight, and makes none if nothing can be on.
- A trip tells no stop: it is owed until the last wish goes.
- A run that ends while its own post goes out (``sending``) ends typing at once; only the stop waits.
- The TTL of every run that wants typing is armed when the phase call has ended, well or badly; of one that
  joins later, at once. What is due in the same millisecond as a TTL comes after it.
- A refused call (gone, forbidden, bad_request) ends typing for all runs that are open here, until an
  explicit start of one of them or a new run.
- Interval, guard and probe are those of the oldest run that wants typing.
- A bare scope ends with its TTL, which counts from its last start: nobody else gives it a sign of life. A
  start of one that is on calls only after a trip.
- Events, answers and timers of what is over change nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from actors.presence.effects import Effects
from actors.presence.policy import Policy
from actors.presence.terms import Effect, Outcome, RunInfo, RunKey, StopTyping, WithdrawTyping
from actors.presence.typing_calls import PROBE, TICK, Answer, TypingCalls
from actors.presence.typing_wish import EXPIRED, REFUSED, TypingWish
from protocol import events
from protocol.events import Event

__all__ = ["PROBE", "TICK", "WISHES", "TypingMachine"]

WISHES = "wishes"
"""The timer of the earliest deadline of any wish; `TICK` and `PROBE` are the other two."""

_OPENING = (events.Received, *events.PHASE_EVENTS, events.Progress, events.TypingStart, events.TypingStop)
"""The first events of a run here; an explicit start or stop may be the first after another process."""
_ENDING = (*events.TERMINAL_EVENTS, events.Clear)
_ENDED_MAX = 100
"""So many ended runs are remembered here; the run table remembers them for long."""


class TypingMachine:
    """Decides when one target types. Pure: time comes in as ``now_ms``, calls go out as effects."""

    __slots__ = (
        "_calls", "_closing", "_effects", "_ended", "_owed", "_policy", "_stopping", "_wishes", "wanted",
    )  # fmt: skip

    def __init__(self, policy: Policy | None = None) -> None:
        """``policy``: the settings of bare scopes; None: the defaults."""
        self.wanted = False
        """Whether typing should show, whatever the platform makes of it."""
        self._policy = policy or Policy()
        self._effects = Effects()
        self._calls = TypingCalls(self._effects)
        self._wishes: dict[RunKey | str, TypingWish] = {}
        self._closing: dict[RunKey | str, TypingWish] = {}
        """Runs that ended while their own post was going out."""
        self._ended: dict[RunKey, None] | None = None
        self._owed = False
        self._stopping = False

    @property
    def deadlines(self) -> dict[Hashable, int]:
        """The armed timers: key to time."""
        return self._effects.deadlines

    @property
    def active(self) -> bool:
        """Whether an indicator of ours may be on."""
        return self._calls.started

    @property
    def scopes(self) -> list[str]:
        """The bare scopes that are on here."""
        return [key for key in self._wishes if isinstance(key, str)]

    @property
    def runs(self) -> list[RunKey]:
        """The runs that are open here, oldest first."""
        return [key for key in self._wishes if isinstance(key, RunKey)]

    @property
    def idle(self) -> bool:
        """Whether the machine can be dropped: no run, no scope, nothing owed."""
        return not (self._wishes or self._closing or self.active)

    @property
    def forum(self) -> bool:
        """Whether a run here comes from a chat with topics (Telegram)."""
        return any(wish.forum for wish in self._wishes.values())

    @property
    def inbound(self) -> str | None:
        """The message of the newest run here that has one."""
        return next((wish.inbound for wish in reversed(self._wishes.values()) if wish.inbound is not None), None)

    # --- what comes in --------------------------------------------------------------------------------------

    def handle(self, info: RunInfo | None, event: Event, now_ms: int) -> Sequence[Effect]:
        """An event of a run, or, without ``info``, a typing_start or typing_stop of a bare scope."""
        self._begin(now_ms)
        if info is not None:
            self._run_event(info, event, now_ms)
        elif isinstance(event, events.TypingStart) and event.scope is not None:
            self._scope_started(event.scope, now_ms)
        elif isinstance(event, events.TypingStop) and event.scope is not None:
            self._remove(event.scope, now_ms)
        return self._effects.take()

    def on_timeout(self, key: Hashable, now_ms: int) -> Sequence[Effect]:
        """A timer has fired. One that was moved or cancelled meanwhile does nothing."""
        self._begin(now_ms)
        due_ms = self._effects.fired(key, now_ms)
        if due_ms is not None and key == TICK:
            self._calls.tick(self._lead(), due_ms, now_ms)
        elif due_ms is not None and key == PROBE:
            self._calls.probe()
        return self._effects.take()

    def on_started(self, token: int, outcome: Outcome, now_ms: int, *, called: bool = True) -> Sequence[Effect]:
        """The call ``token`` has ended; ``called`` is false if it never began."""
        self._begin(now_ms)
        if token == self._calls.call:
            answer = self._calls.answered(self._lead(), outcome, called, now_ms)
            if answer is Answer.REFUSED:
                self._refuse(now_ms)
            elif answer is Answer.PHASED:
                self._settle(now_ms)
        return self._effects.take()

    def on_stopped(self, outcome: Outcome, now_ms: int) -> Sequence[Effect]:
        """The stop is confirmed, given up or was not needed: nothing more can be done about it."""
        self._begin(now_ms)
        if self._stopping:
            self._stopping = False
            self._calls.started = False
        return self._effects.take()

    def leave(self, key: RunKey, now_ms: int) -> tuple[TypingWish | None, Sequence[Effect]]:
        """The run goes to another target: what it takes along (None: it is not here), what changes here."""
        self._begin(now_ms)
        wish = self._wishes.get(key)
        self._remove(key, now_ms)
        return wish, self._effects.take()

    def join(self, wish: TypingWish, now_ms: int) -> Sequence[Effect]:
        """The run comes from another target, with what `leave` gave there."""
        self._begin(now_ms)
        self._wishes[wish.key] = wish
        self._settle(now_ms)
        return self._effects.take()

    def restart(self, now_ms: int) -> Sequence[Effect]:
        """The actor has crashed: arm all timers again, and tell again what may have been lost on the way."""
        self._effects.retell_timers()
        if self._stopping:
            self._effects.add(StopTyping())
        elif self._owed:
            self._effects.add(WithdrawTyping())
        else:
            self._calls.restart()
        return self._effects.take()

    # --- runs and scopes ------------------------------------------------------------------------------------

    def _begin(self, now_ms: int) -> None:
        """What is due by now comes first: a TTL goes before a tick or an event."""
        due_ms = self.deadlines.get(WISHES)
        if due_ms is None or due_ms > now_ms:
            return
        for key, wish in list(self._wishes.items()):
            wish.pass_due(now_ms)
            if isinstance(key, str) and wish.off & EXPIRED:
                del self._wishes[key]
        for key, wish in list(self._closing.items()):
            wish.pass_due(now_ms)
            if wish.hold_until_ms is None:
                del self._closing[key]
        self._settle(now_ms)

    def _run_event(self, info: RunInfo, event: Event, now_ms: int) -> None:
        key = info.key
        wish = self._wishes.get(key)
        if wish is None:
            if key in self._closing and isinstance(event, events.Sent):
                self._posted(self._closing.pop(key), event)
                self._settle(now_ms)
                return
            if not isinstance(event, _OPENING) or key in (self._ended or ()):
                return
            wish = TypingWish(key, info.policy, now_ms, forum=info.forum, inbound=info.message)
            self._wishes[key] = wish
        elif isinstance(event, _ENDING) and not (isinstance(event, events.Error) and event.scope == "lane"):
            self._end(key, wish, now_ms)
            return
        before = (wish.off, wish.hold_until_ms)
        wish.note(event, now_ms)
        if isinstance(event, events.TypingStart):
            self._explicit(now_ms)
        elif isinstance(event, events.Sent):
            self._posted(wish, event)
            self._settle(now_ms)
        elif (wish.off, wish.hold_until_ms) != before:
            self._settle(now_ms)
        elif (due_ms := wish.due_ms()) is not None and due_ms < self.deadlines.get(WISHES, due_ms + 1):
            self._effects.schedule(WISHES, due_ms)

    def _end(self, key: RunKey, wish: TypingWish, now_ms: int) -> None:
        ended = self._ended = self._ended or {}
        ended[key] = None
        if len(ended) > _ENDED_MAX:
            del ended[next(iter(ended))]
        if wish.hold_until_ms is not None:
            wish.delay_until_ms = wish.ttl_at_ms = None
            self._closing[key] = wish
        self._remove(key, now_ms)

    def _remove(self, key: RunKey | str, now_ms: int) -> None:
        if self._wishes.pop(key, None) is not None:
            self._settle(now_ms)

    def _scope_started(self, scope: str, now_ms: int) -> None:
        known = scope in self._wishes
        if not known:
            self._wishes[scope] = TypingWish(scope, self._policy, now_ms)
        self._wishes[scope].arm(now_ms)
        if self._calls.tripped:
            self._explicit(now_ms)
        elif not known:
            self._settle(now_ms)

    def _explicit(self, now_ms: int) -> None:
        if self.wanted:
            self._calls.explicit()
        self._settle(now_ms)

    def _posted(self, wish: TypingWish, sent: events.Sent) -> None:
        if sent.ok and wish.post_clears and self.wanted:
            self._calls.posted()

    def _refuse(self, now_ms: int) -> None:
        for key, wish in list(self._wishes.items()):
            wish.off |= REFUSED
            wish.ttl_at_ms = None
            if isinstance(key, str):
                del self._wishes[key]
        self._settle(now_ms)

    # --- the target -----------------------------------------------------------------------------------------

    def _settle(self, now_ms: int) -> None:
        """The wishes have changed: open or close, hold or release, stop, arm what has to be armed."""
        wanting = [wish for wish in self._wishes.values() if not wish.off]
        if wanting and not self.wanted:
            self.wanted = True
            self._owed = self._stopping = False
            self._calls.open()
        elif self.wanted and not wanting:
            self._close()
        if self._owed and not self._closing:
            self._owed, self._stopping = False, True
            self._effects.add(StopTyping())
        if wanting:
            self._calls.proceed(all(wish.hold_until_ms is not None for wish in wanting))
            if not self._calls.phasing:
                for wish in wanting:
                    if wish.ttl_at_ms is None:
                        wish.arm(now_ms)
        self._rearm()

    def _close(self) -> None:
        self.wanted = False
        was_calling = self._calls.close()
        self._owed = self._calls.started
        if was_calling and self._closing:
            self._effects.add(WithdrawTyping())

    def _lead(self) -> TypingWish:
        """The oldest wish that wants typing; there is one while the target is open."""
        return next(wish for wish in self._wishes.values() if not wish.off)

    def _rearm(self) -> None:
        """The wishes' timer fires at their earliest deadline, or earlier and looks again."""
        wishes = (*self._wishes.values(), *self._closing.values())
        due_ms = min((due for wish in wishes if (due := wish.due_ms()) is not None), default=None)
        if due_ms is None:
            self._effects.cancel(WISHES)
        else:
            self._effects.schedule(WISHES, due_ms)
