"""livesign: signs of life for chat bots and AI agents, inside the bot's own process.

`PresenceSupervisor` starts it, ``presence.run(...)`` is one piece of work, `current_run` the run that code runs in,
`Callbacks` lets livesign use the bot's own client. For a livesign that runs by itself see `protocol.client`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from actors.config import Config, ConfigError
    from actors.config import load as load_config
    from actors.embedding import ForkedError, PresenceSupervisor
    from actors.engine import AccountError
    from actors.sdk import sdk_outcome
    from protocol.client.execution import Callbacks, CallOutcome
    from protocol.client.outcome import RunOutcome
    from protocol.client.run_events import ChildSpan, ToolSpan
    from protocol.client.run_handle import RunHandle, current_run
    from protocol.errors import DecodeError
    from protocol.events import Call

__all__ = [
    "AccountError",
    "Call",
    "CallOutcome",
    "Callbacks",
    "ChildSpan",
    "Config",
    "ConfigError",
    "DecodeError",
    "ForkedError",
    "PresenceSupervisor",
    "RunHandle",
    "RunOutcome",
    "ToolSpan",
    "current_run",
    "load_config",
    "sdk_outcome",
]

_HOMES = {
    "actors.config": {"Config": "Config", "ConfigError": "ConfigError", "load_config": "load"},
    "actors.embedding": {"ForkedError": "ForkedError", "PresenceSupervisor": "PresenceSupervisor"},
    "actors.engine": {"AccountError": "AccountError"},
    "actors.sdk": {"sdk_outcome": "sdk_outcome"},
    "protocol.client.execution": {"Callbacks": "Callbacks", "CallOutcome": "CallOutcome"},
    "protocol.client.outcome": {"RunOutcome": "RunOutcome"},
    "protocol.client.run_events": {"ChildSpan": "ChildSpan", "ToolSpan": "ToolSpan"},
    "protocol.client.run_handle": {"RunHandle": "RunHandle", "current_run": "current_run"},
    "protocol.errors": {"DecodeError": "DecodeError"},
    "protocol.events": {"Call": "Call"},
}  # fmt: skip
"""Where each name comes from. They are loaded when they are used, so that nobody pays for what he does not need."""


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(module), names[name])
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
