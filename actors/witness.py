"""Who watches a simulation: told of everything that users, clients and the platform's operators could notice.

The base does nothing; a test overrides what it wants to see. A witness changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.presence.run import EndedRun
    from actors.presence.terms import Outcome
    from actors.scenario import Step
    from actors.scripted_platform import CallRecord
    from protocol.events import Reply


class Witness:
    """All its methods are called at the moment of what they tell, with the clocks standing still."""

    def booted(self) -> None:
        """A process has started."""

    def died(self) -> None:
        """The process is gone. Calls that were under way have been told of as ended before."""

    def before(self, step: Step) -> None:
        """A step of the scenario is about to be done."""

    def stepped(self, step: Step) -> None:
        """A step of the scenario was done, and everything that follows from it at that moment."""

    def replied(self, client: str, reply: Reply) -> None:
        """A client was answered."""

    def run_ended(self, ended: EndedRun) -> None:
        """A run has ended, or the result of one that had ended has changed."""

    def handling(self, key: Any, message: Any) -> None:
        """The actor with this directory key is about to handle ``message``."""

    def crashed(self, key: Any, message: Any) -> None:
        """The actor with this key fails on ``message``, as planned."""

    def called(self, record: CallRecord) -> None:
        """A call has reached the platform."""

    def answered(self, record: CallRecord, outcome: Outcome, applied: bool) -> None:
        """The call is over; ``applied``: it took effect."""

    def posted(self, account: str, conversation: str, thread: str | None) -> None:
        """The bot's own post went out, where a post ends typing."""
