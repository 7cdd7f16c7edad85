"""``livesign send``: events from the command line or from lines of JSON to a livesign that runs already."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from actors.exits import FAILED, OK, USAGE
from protocol.client.blocking import Address, Client
from protocol.codec import DecodeError, normalise
from protocol.events import PHASE_EVENTS, Ack, Event, Progress, Received, Rejected

OPENING = (Received, Progress, *PHASE_EVENTS)
"""Events that may open a run. Only in these a lease counts, so only these get one."""
_LOOK_S = 0.05


class UnavailableError(Exception):
    """No livesign answers there; the text says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which livesign. ``timeout_ms`` is the longest wait for it, and then for each answer."""

    address: Address
    token: str | None = None
    tls: ssl.SSLContext | None = None
    timeout_ms: int = 5_000

    @property
    def name(self) -> str:
        """For people."""
        return self.address if isinstance(self.address, str) else ":".join(map(str, self.address))


def checked_event(source: Mapping[str, Any], lease_ms: int) -> Event:
    """The event that a map describes, with the lease added where it may open a run and names none.

    The client goes away right after, so without a lease of its own the run would end soon. Raises DecodeError.
    """
    event = normalise(source)
    if isinstance(event, OPENING) and event.lease_ms is None and lease_ms:
        return msgspec.structs.replace(event, lease_ms=lease_ms)
    return event


def event_of_line(line: str, lease_ms: int) -> Event:
    """The event in one line of JSON. Raises DecodeError."""
    try:
        source = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise DecodeError("malformed", f"this is no JSON: {error}") from None
    if not isinstance(source, dict):
        raise DecodeError("malformed", 'an event is an object: {"type": "thinking", ...}')
    return checked_event(source, lease_ms)


def send_events(
    events: Iterable[Event | DecodeError], target: Target, tell: Callable[[Ack | Rejected | DecodeError], None]
) -> int:
    """Send each event and ``tell`` its answer, in order; the exit code. A bad one does not hold up those after it.

    Raises UnavailableError where nobody answers, or no longer.
    """
    code = OK
    with Client(target.address, token=target.token, tls=target.tls, name="livesign-send") as client:
        _connect(client, target)
        for event in events:
            if isinstance(event, DecodeError):
                code = max(code, USAGE)
                tell(event)
                continue
            try:
                answer = client.request(event, target.timeout_ms / 1_000)
            except TimeoutError as error:
                raise UnavailableError(str(error)) from None
            if isinstance(answer, Rejected):
                code = max(code, FAILED)
            tell(answer)
    return code


def _connect(client: Client, target: Target) -> None:
    until = time.monotonic() + target.timeout_ms / 1_000
    while True:
        try:
            client.wait_connected(_LOOK_S)
            return
        except ConnectionError as error:
            if client.last_error is not None or time.monotonic() > until:
                raise UnavailableError(str(error)) from None
