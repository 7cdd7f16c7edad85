"""Every error of the runtime, the tree first.

    ActorError
    ├── MisuseError               the calling code is wrong; nothing has changed
    │   ├── BlockingCallError     a multiplexed actor tried to wait
    │   ├── DeadlockError         manual driver: the awaited answer can never come at the present time
    │   ├── LivelockError         manual driver: the actors keep each other busy without end
    │   ├── DuplicateKeyError     the key (or a child's id) is taken
    │   └── WrongDriverError      this driver cannot do what was asked
    ├── MailboxFullError          the bounded lane is full and the message was refused
    ├── RestartBudgetError        a supervisor has restarted too often and gives up
    └── RuntimeClosedError        the runtime is stopping or stopped (also a pykka.ActorDeadError)

``pykka.ActorDeadError`` and ``pykka.Timeout`` are used as pykka documents them.
"""

from __future__ import annotations

import pykka

__all__ = [
    "ActorError",
    "BlockingCallError",
    "DeadlockError",
    "DuplicateKeyError",
    "LivelockError",
    "MailboxFullError",
    "MisuseError",
    "RestartBudgetError",
    "RuntimeClosedError",
    "WrongDriverError",
]


class ActorError(Exception):
    """Base of all errors raised by the runtime itself."""


class MisuseError(ActorError):
    """The caller used the runtime in a way that cannot work."""


class BlockingCallError(MisuseError):
    """A multiplexed actor tried to wait. Use ``pipe``, a timer, or a ``GreenletActor``."""


class DeadlockError(MisuseError):
    """Under the manual driver: nothing is left to run and the future is still empty."""


class LivelockError(MisuseError):
    """Under the manual driver: far too many turns without a moment of rest."""


class DuplicateKeyError(MisuseError):
    """The directory key, or the id among a supervisor's children, is in use."""


class WrongDriverError(MisuseError):
    """The runtime's driver does not offer this."""


class MailboxFullError(ActorError):
    """The actor's user lane is full; the message was not taken (and is counted)."""


class RestartBudgetError(ActorError):
    """A supervisor's restart budget is spent: it fails towards its own parent."""


class RuntimeClosedError(ActorError, pykka.ActorDeadError):
    """The runtime takes no new actors: it is stopping or has stopped."""
