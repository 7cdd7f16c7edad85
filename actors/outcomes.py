"""What came of runs: for `RunHandle.outcome` of an embedded livesign, and for subscribers."""

from __future__ import annotations

from gevent.event import Event as Signal

from actors.presence.run import EndedRun
from actors.presence.runs import RunTable
from actors.presence.terms import RunKey
from protocol.client.outcome import RunOutcome

__all__ = ["Outcomes", "outcome_of"]

_OPEN = RunOutcome("open", final=False)
_WITHOUT_MARKS = ("cancelled", "silent")


class Outcomes:
    """Reads the run table; `told` is to hear of every change of an ended run."""

    def __init__(self, runs: RunTable) -> None:
        self._runs = runs
        self._waiting: dict[RunKey, Signal] = {}

    def over(self, key: RunKey) -> bool:
        """Whether the run has ended, so that nothing told of it changes anything. Any thread."""
        return key not in self._runs.open and key in self._runs.ended.get(key.account, {})

    def known(self, key: RunKey) -> RunOutcome:
        """What is known now. Any thread."""
        ended = self._runs.ended.get(key.account, {}).get(key)
        return _OPEN if ended is None or key in self._runs.open else outcome_of(ended)

    def told(self, ended: EndedRun) -> None:
        """In the runtime's thread."""
        signal = self._waiting.get(ended.info.key)
        if signal is not None and outcome_of(ended).final:
            signal.set()

    def wait(self, key: RunKey, timeout_s: float) -> None:
        """Wait until it is certain, in a greenlet of the runtime's thread."""
        if self.known(key).final:
            return
        signal = self._waiting.get(key)
        if signal is None:
            signal = self._waiting[key] = Signal()
        signal.wait(timeout_s)
        if self._waiting.get(key) is signal:
            del self._waiting[key]


def outcome_of(ended: EndedRun) -> RunOutcome:
    """What is known of its end now."""
    info, verdict = ended.info, ended.verdict
    reason = None if ended.reason == "not_shown" else ended.reason  # the problem says it better
    if verdict is not None:
        return RunOutcome(ended.outcome, reason, verdict.mark, verdict.problem)
    problem = None
    if ended.reason == "gave_up":
        problem = "gave_up"
    elif info.message is None:
        problem = "no_message"
    elif not (info.ack_allowed or info.status_allowed):
        problem = "not_allowed"
    else:
        return RunOutcome(ended.outcome, reason, final=False)
    return RunOutcome(ended.outcome, reason, problem=None if ended.outcome in _WITHOUT_MARKS else problem)
