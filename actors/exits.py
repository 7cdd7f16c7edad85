"""Exit codes of the command line."""

from __future__ import annotations

OK = 0
FAILED = 1
"""It was done and did not go well: an event rejected, marks left, a rule of the simulation broken."""
USAGE = 2
"""The command, the configuration or the scenario is wrong; nothing was done."""
UNAVAILABLE = 3
"""What is needed is not there: no server answers, an address is in use."""
INTERRUPTED = 130
"""Ended by Ctrl-C."""
