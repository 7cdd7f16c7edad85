"""What came of a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOT_FOLLOWED", "RunOutcome"]

NOT_FOLLOWED = "not_followed"
"""`RunOutcome.problem` of a client that does not follow what shows."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run ended, and whether people could see it.

    ``outcome``: done, error, cancelled or silent; ``open`` while it is not known to have ended. ``reason``: the text it
    ended with, or livesign's own (``lease_expired``, ``run_max``, ``shutdown``, …).

    ``mark``: the emoji that the platform confirmed at the end; None: no mark of ours showed then. ``problem``: why the
    mark that belongs to the outcome did not show; None: nothing is missing (cancelled and silent runs have none).

    | problem | |
    | --- | --- |
    | no_message | the run has no message that could carry a mark |
    | not_allowed | the ack gate, or the settings, allow no marks there |
    | not_presented | this outcome has no mark by the settings (presentation, start delay) |
    | superseded | a newer run took the message's marks over |
    | gone, forbidden, invalid_reaction, bad_request, transient, unknown | what the platform's refusal meant |
    | gave_up | livesign itself could not go on with this conversation |
    | ended_before | a run of this name had ended already (the last day's are known): what was told of it changed nothing |
    | not_followed | a client over the socket that did not ask for states |

    ``final``: False: more may come; this is what was known when the time to wait was over.
    """

    outcome: str
    reason: str | None = None
    mark: str | None = None
    problem: str | None = None
    final: bool = True
