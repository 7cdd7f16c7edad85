"""What a running livesign counts and measures: the names of `stats` and of the metrics page, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from actors.server_context import COUNTED

GAUGES: Mapping[str, str] = MappingProxyType({
    "actors": "actors that live",
    "backlog": "messages that wait in the runtime",
    "connections": "connections of clients",
    "conversations": "conversations that are awake",
    "gc_longest_pause_us": "the longest pause of the garbage collector so far, in microseconds",
    "ledger_degraded": "1: the disk does not take the ledger; a crash now would leave what shows",
    "open_runs": "runs that have not ended",
    "sessions": "sessions of clients that are connected",
    "timers": "timers that are armed",
})  # fmt: skip
ACCOUNT_GAUGES: Mapping[str, str] = MappingProxyType({
    "calls_under_way": "calls that the platform has not answered yet",
    "lanes": "messages and typing targets that are looked after",
    "stopped": "1: the platform refuses the credentials, nothing is called",
})  # fmt: skip
COUNTERS: Mapping[str, str] = MappingProxyType({
    "abandoned": "actors that were left behind, for they did not end in time",
    "calls_handed": "calls given to executors of remote accounts",
    "calls_late": "results of executors that came too late, twice, or for no call",
    "dead_letters": "messages to actors that had ended",
    "dropped": "messages that a full mailbox has dropped",
    "duplicate_messages": "messages that were told of twice",
    "events": "events that the router has taken",
    "failures": "failures of actors",
    "held": "handlers that have held the runtime for too long",
    "killed": "actors that were killed",
    "late_events": "events for runs that had ended",
    "leases_expired": "runs that nobody kept alive",
    "parked": "actors stopped by a spent restart budget",
    "rejected": "events that the router has refused",
    "reloads": "configurations that were loaded while running",
    "reloads_refused": "configurations that were wrong, and changed nothing",
    "repaired": "differences between what should show and what does, mended after a fault or restart",
    "restarts": "restarts of actors",
    "runs_ended": "runs that have ended",
    "runs_opened": "runs that were opened",
    "unknown_events": "events for runs that nobody has opened",
    **{f"server_{name}": meaning for name, meaning in COUNTED.items()},
})  # fmt: skip
ACCOUNT_COUNTERS: Mapping[str, str] = MappingProxyType({
    "accounts_stopped": "times the platform has refused the credentials",
    "breaker_opened": "targets that were found to refuse us",
    "calls_made": "calls made to the platform",
    "calls_saved": "changes that needed no call: replaced in time, equal, or joined",
    "late_answers": "answers to calls that were given up",
    "outages_ended": "outages of the platform that are over",
    "rate_limited": "calls that the platform has refused as too many",
    "refusal_pauses": "pauses of an account after too many refusals",
    "retries": "calls that were made again",
})  # fmt: skip
OUTCOME = "outcome_"
"""Begins the names of what became of calls."""
