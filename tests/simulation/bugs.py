"""The planted bugs, by area: each a change of one line or two, of the kind a maintainer might make."""

from __future__ import annotations

from tests.simulation.bugs_of_calls import CALLS
from tests.simulation.bugs_of_runs import RUNS

AREAS = ("timers", "supervision", "reaction", "typing", "lanes", "pacing", "ledger", "sessions")
BUGS = tuple(sorted((*RUNS, *CALLS), key=lambda bug: AREAS.index(bug.area)))
