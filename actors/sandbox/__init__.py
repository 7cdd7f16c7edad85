"""The sandbox: a small real chat service that ships with livesign, and what livesign runs against by default.

It keeps chats, messages, marks and typing indicators, resembles either kind of platform, and can be told to
be slow, to fail, to hang or to limit. By default it does none of that. ``python -m actors.sandbox`` runs it
by itself.
"""

from actors.sandbox.client import SandboxClient, SandboxError
from actors.sandbox.faults import FaultPlan, Rule, Window
from actors.sandbox.options import SandboxOptions
from actors.sandbox.service import SandboxService

__all__ = [
    "FaultPlan",
    "Rule",
    "SandboxClient",
    "SandboxError",
    "SandboxOptions",
    "SandboxService",
    "Window",
]
