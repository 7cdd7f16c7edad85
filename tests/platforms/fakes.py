"""Test doubles of the platforms' ports, and a caller that waits for the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gevent
from gevent.event import AsyncResult

from actors.platforms.port import HttpPlatform
from actors.platforms.spec import Request, Response
from actors.presence.terms import Command, Outcome


@dataclass
class FunctionTransport:
    """A transport that is a function of the request."""

    answer: Callable[[Request], Response]
    seen: list[Request] = field(default_factory=list)
    closed: bool = False

    def send(self, request: Request, deadline_ms: int) -> Response:
        """See `actors.platforms.transport.Transport`."""
        assert deadline_ms > 0
        self.seen.append(request)
        return self.answer(request)

    def close(self) -> None:
        """See `actors.platforms.transport.Transport`."""
        self.closed = True


def outcome_of(platform: HttpPlatform, command: Command, deadline_ms: int = 2_000) -> Outcome:
    """Make the call and wait for its outcome, which must come once, and not before ``call`` has returned."""
    result: Any = AsyncResult()
    outcomes: list[Outcome] = []

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        result.set(outcome)

    platform.call(command, deadline_ms, done)
    assert outcomes == []
    first = result.get(timeout=10)
    gevent.sleep(0)
    assert outcomes == [first]
    assert isinstance(first, Outcome)
    return first
