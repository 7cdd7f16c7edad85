"""One open run, and what is remembered of it when it has ended.

Deadlines of a run, all in ms of the runtime's clock; the earliest is `Run.deadline_ms`:

| deadline | armed | when it passes |
| --- | --- | --- |
| adoption | an earlier process has left the run | by ``recovery.marks``, ``recovered`` |
| lease | no holder is connected, or the run lives by events only | error, ``lease_expired`` |
| run_max | at opening | error, ``run_max`` |
| child | a child is open | that child is given up; a waiting done goes on |
| final_sent | the final post went out and no phase followed | done, ``final_sent`` |
| wait_max | the run waits for the user | cancelled, ``wait_max`` |

While the final post has been sent, or the run is merged into another, the lease cannot expire.
"""

from __future__ import annotations

from dataclasses import dataclass

from actors.presence.terms import RunInfo, RunKey, Verdict
from protocol import events

NEVER_MS = 2**62


@dataclass(slots=True)
class Run:
    """An open run. Mutable plain data; it lives above the actors."""

    info: RunInfo
    opened_ms: int
    lease_ms: int
    events_only: bool
    """The opening event named a lease: only events keep the run open, a connection does not."""
    last_event_ms: int
    phase: str = "queued"
    holders: tuple[str, ...] = ()
    """Sessions that have sent an event for it."""
    connected: int = 0
    """How many of the holders are connected."""
    held_until_ms: int = 0
    """When the last connected holder was lost."""
    children: dict[str, int] | None = None
    """Open children and when each is given up."""
    child_failed: bool = False
    done: events.Done | None = None
    """A done that waits for the children."""
    final_sent_ms: int | None = None
    waiting_since_ms: int | None = None
    """When it began to wait for the user."""
    sending: bool = False
    adopt_until_ms: int = 0
    """Left by an earlier process: until then somebody may take it over; 0: it has an owner."""
    merged_into: RunKey | None = None
    followers: list[RunKey] | None = None

    @property
    def key(self) -> RunKey:
        return self.info.key

    def lease_deadline_ms(self) -> int:
        if self.adopt_until_ms:
            return NEVER_MS
        if self.merged_into is not None or self.final_deadline_ms() != NEVER_MS or self.lease_ms == 0:
            return NEVER_MS
        if self.events_only:
            return self.last_event_ms + self.lease_ms
        if self.connected:
            return NEVER_MS
        return max(self.last_event_ms, self.held_until_ms) + self.lease_ms

    def final_deadline_ms(self) -> int:
        wait_ms = self.info.policy.status.final_sent_ms
        return NEVER_MS if self.final_sent_ms is None or wait_ms == 0 else self.final_sent_ms + wait_ms

    def wait_deadline_ms(self) -> int:
        wait_ms = self.info.policy.status.wait_max_ms
        return NEVER_MS if self.waiting_since_ms is None or wait_ms == 0 else self.waiting_since_ms + wait_ms

    def run_max_deadline_ms(self) -> int:
        limit_ms = self.info.policy.lease.run_max_ms
        return NEVER_MS if limit_ms == 0 else self.opened_ms + limit_ms

    def deadline_ms(self) -> int:
        """When the table must look at this run again; `NEVER_MS` if nothing is armed. Asked after every event."""
        at_ms = self.run_max_deadline_ms()
        if self.events_only or not self.connected:
            at_ms = min(at_ms, self.lease_deadline_ms())
        if self.adopt_until_ms:
            at_ms = min(at_ms, self.adopt_until_ms)
        if self.final_sent_ms is not None:
            at_ms = min(at_ms, self.final_deadline_ms())
        if self.waiting_since_ms is not None:
            at_ms = min(at_ms, self.wait_deadline_ms())
        if self.children:
            at_ms = min(at_ms, *self.children.values())
        return at_ms


@dataclass(slots=True)
class EndedRun:
    """What is kept of a run for 24 h, so that late events cannot revive it."""

    info: RunInfo
    outcome: str
    """done, error, cancelled or silent."""
    reason: str | None
    opened_ms: int
    ended_ms: int
    settling: bool
    """Its marks are not yet at rest: ``clear`` and ``restore`` still count."""
    sending_until_ms: int = 0
    """The terminal came inside a ``sending``: until then its ``sent`` is not late."""
    verdict: Verdict | None = None
    """What showed at the end, where somebody wants to know; None: not known (yet)."""
