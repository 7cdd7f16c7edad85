"""``livesign send``: events from the command line or from lines of JSON to a livesign that runs already."""

from __future__ import annotations

import logging
import os
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from actors.config_server import socket_path
from actors.exits import FAILED, OK, USAGE
from protocol.client.blocking import Address, Client
from protocol.codec import DecodeError, normalise
from protocol.events import PHASE_EVENTS, Ack, Event, Progress, Received, Rejected

OPENING = (Received, Progress, *PHASE_EVENTS)
"""Events that may open a run. Only in these a lease counts, so only these get one."""
EXAMPLE = "example: livesign send thinking -c chat-7 -m 817"
_LOOK_S = 0.05


class UnavailableError(Exception):
    """No livesign answers there; the text says why."""


class UsageError(Exception):
    """What was asked for makes no sense; ``hint`` says how it is written."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint


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


# --- what is asked for -----------------------------------------------------------------------------------------------


def target_of(unix: str | None, tcp: str | None, tls_ca: str | None, token_env: str, timeout_ms: int) -> Target:
    """The livesign that the options name; without any the one of this user. Raises UsageError."""
    if unix is not None and tcp is not None:
        raise UsageError("--unix and --tcp exclude each other")
    token = os.environ.get(token_env) or None
    if tcp is None:
        return Target(unix or socket_path(os.environ), token, None, timeout_ms)
    host, _, port = tcp.rpartition(":")
    if not host or not port.isdigit():
        raise UsageError(f"--tcp {tcp}: write HOST:PORT")
    if token is None:
        raise UsageError("a token is needed on TCP", f"put it into the environment variable {token_env}")
    return Target((host.strip("[]"), int(port)), token, _tls(tls_ca), timeout_ms)


def _tls(ca: str | None) -> ssl.SSLContext | None:
    if ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=None if ca == "system" else ca)
    except OSError as error:
        raise UsageError(f"--tls-ca {ca}: {error.strerror or error}") from None


def fields_given(settings: Iterable[str], **names: str | None) -> dict[str, Any]:
    """An event's fields: those with a name of their own, and the ``FIELD=VALUE`` ones. Raises UsageError.

    A value is JSON where it is such (true, 5, "5"), else the text as it stands.
    """
    given: dict[str, Any] = {name: value for name, value in names.items() if value is not None}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not name or not equals:
            raise UsageError(f"--set {setting}: write --set FIELD=VALUE")
        try:
            given[name] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            given[name] = text
    return given


def events_to_send(kind: str | None, given: Mapping[str, Any], lease_ms: int) -> Iterator[Event | DecodeError]:
    """The one event that is described, or those in the lines of standard input. Raises UsageError."""
    if kind is not None:
        try:
            return iter([checked_event({"type": kind, **given}, lease_ms)])
        except DecodeError as error:
            raise UsageError(str(error), "livesign send --help lists the events and shows examples") from None
    if given:
        raise UsageError("options describe one event: name its type first", EXAMPLE)
    if sys.stdin.isatty():
        raise UsageError("name an event, or pipe in one JSON object a line", EXAMPLE)
    return _events_of_lines(lease_ms)


def _events_of_lines(lease_ms: int) -> Iterator[Event | DecodeError]:
    for line in sys.stdin:
        if line.strip():
            try:
                yield event_of_line(line, lease_ms)
            except DecodeError as error:
                yield error


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


# --- sending ---------------------------------------------------------------------------------------------------------


def send_events(
    events: Iterable[Event | DecodeError], target: Target, tell: Callable[[Ack | Rejected | DecodeError], None]
) -> int:
    """Send each event and ``tell`` its answer, in order; the exit code. A bad one does not hold up those after it.

    Raises UnavailableError where nobody answers, or no longer.
    """
    logging.getLogger("livesign.client").setLevel(logging.CRITICAL)  # all it would say is said by the answers
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


def print_answer(answer: Ack | Rejected | DecodeError, json: bool) -> None:
    """The result on standard output, the reason of a rejection on standard error; as JSON always on the former."""
    reply = answer.reply() if isinstance(answer, DecodeError) else answer
    if json:
        print(msgspec.json.encode(reply).decode(), flush=True)
    elif isinstance(reply, Ack):
        print(reply.result, flush=True)
    else:
        place = f" ({reply.field})" if reply.field else ""
        print(f"livesign: rejected: {reply.code}{place}: {reply.detail}", file=sys.stderr)
