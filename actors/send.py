"""``livesign send``: events from the command line or from lines of JSON to a livesign that runs already."""

from __future__ import annotations

import logging
import os
import ssl
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec

from actors.config_server import socket_path
from actors.exits import FAILED, OK, USAGE
from actors.spelling import unknown_field, unknown_fields, unknown_type
from protocol.client.blocking import Address, Client
from protocol.codec import DecodeError, normalise
from protocol.convert import EVENT_KINDS
from protocol.events import PHASE_EVENTS, Ack, Event, Progress, Received, Rejected, Stats, StatsReply

OPENING = (Received, Progress, *PHASE_EVENTS)
"""Events that may open a run. Only in these a lease counts, so only these get one."""
HELP = "livesign send --help lists the events and shows examples; docs/events.md has all fields"
EXAMPLE = "example: livesign send thinking -c chat-7 -m 817"
NOT_SENT = frozenset({"hello", "subscribe", "call_result"})
_LOOK_S = 0.05


class UnavailableError(Exception):
    """No livesign answers there, or it does not let us in; the text says why."""

    @property
    def hint(self) -> str | None:
        """What may help."""
        return next((hint for sign, hint in _HINTS.items() if sign in str(self)), None)


_START = "start one with: livesign serve; or name it with --unix or --tcp"
_HINTS = {
    "No such file": _START,
    "Connection refused": _START,
    "Permission denied": "the socket belongs to another user: be that user, or use --tcp with a token",
    "another user": "be that user, or use --tcp with a token",
    "unknown token": "the token is none of server.tokens in the server's configuration (--token-env names the variable)",
    "no grant": "look at the grants of this token in server.tokens of the server's configuration",
    "hello needs a token": "put it into the environment variable that --token-env names",
    "Name or service": "look at the host in --tcp",
    "WRONG_VERSION_NUMBER": "there is no TLS there: leave --tls-ca out",
    "CERTIFICATE_VERIFY": "--tls-ca FILE names the certificate that the server shows, or the one of who has signed it",
    "reset by peer": "if the server has TLS, --tls-ca is needed",
    "speaks protocol": "this livesign and the server are of different versions: see livesign version on both sides",
    "no welcome": "something else than livesign listens there, or it hangs",
}
"""What to do, by a piece of the reason."""


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
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise UsageError(f"--tcp {tcp}: write HOST:PORT, with a port of 1 to 65535")
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
        return iter([_described_event({"type": kind, **given}, lease_ms)])
    if given:
        raise UsageError("options describe one event: name its type first", EXAMPLE)
    if sys.stdin.isatty():
        raise UsageError("name an event, or pipe in one JSON object a line", EXAMPLE)
    return _events_of_lines(lease_ms)


def _described_event(source: Mapping[str, Any], lease_ms: int) -> Event:
    if source["type"] not in EVENT_KINDS:
        raise UsageError(unknown_type(source["type"]), HELP)
    if source["type"] in NOT_SENT:
        raise UsageError(f"livesign send cannot say {source['type']}: a client of its own does that", HELP)
    for name in unknown_fields(source):
        raise UsageError(f"--set {name}: {unknown_field(source, name)}", HELP)
    try:
        return checked_event(source, lease_ms)
    except DecodeError as error:
        raise UsageError(error.detail, _option(error.field) if error.code == "missing_field" else HELP) from None


def _option(field: str | None) -> str:
    return f"add --{field}" if field in ("conversation", "message") else f"add --set {field}=VALUE"


def _events_of_lines(lease_ms: int) -> Iterator[Event | DecodeError]:
    for number, line in enumerate(sys.stdin, 1):
        if line.strip():
            try:
                yield event_of_line(line, lease_ms, partial(_warn, number))
            except DecodeError as error:
                error.detail = f"line {number}: {error.detail}"
                yield error


def _warn(number: int, text: str) -> None:
    print(f"livesign: line {number}: {text}", file=sys.stderr)


def checked_event(source: Mapping[str, Any], lease_ms: int) -> Event:
    """The event that a map describes, with the lease added where it may open a run and names none.

    The client goes away right after, so without a lease of its own the run would end soon. Raises DecodeError.
    """
    event = normalise(source)
    if isinstance(event, OPENING) and event.lease_ms is None and lease_ms:
        return msgspec.structs.replace(event, lease_ms=lease_ms)
    return event


def event_of_line(line: str, lease_ms: int, warn: Callable[[str], None]) -> Event:
    """The event in one line of JSON. ``warn`` is told of fields that no server knows. Raises DecodeError."""
    try:
        source = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise DecodeError("malformed", f"this is no JSON: {error}") from None
    if not isinstance(source, dict):
        raise DecodeError("malformed", 'an event is an object: {"type": "thinking", ...}')
    kind = source.get("type")
    if isinstance(kind, str) and kind not in EVENT_KINDS:
        raise DecodeError("unknown_type", unknown_type(kind), field="type")
    for name in unknown_fields(source):
        warn(f"{name} is ignored: {unknown_field(source, name)}")
    return checked_event(source, lease_ms)


# --- sending ---------------------------------------------------------------------------------------------------------


Answer: TypeAlias = Ack | Rejected | StatsReply


def send_events(events: Iterable[Event | DecodeError], target: Target, tell: Callable[[Answer], None]) -> int:
    """Send each event and ``tell`` its answer, in order; the exit code. A bad one does not hold up those after it.

    Raises UnavailableError where nobody answers, or no longer.
    """
    logging.getLogger("livesign.client").setLevel(logging.CRITICAL)  # all it would say is said by the answers
    code = OK
    with Client(target.address, token=target.token, tls=target.tls, name="livesign-send") as client:
        accounts = _connect(client, target)
        for event in events:
            if isinstance(event, DecodeError):
                code = max(code, USAGE)
                tell(event.reply())
                continue
            answer = _ask(client, event, target, accounts)
            if isinstance(answer, Rejected):
                code = max(code, FAILED)
            tell(answer)
    return code


def _ask(client: Client, event: Event, target: Target, accounts: Iterable[str]) -> Answer:
    try:
        if isinstance(event, Stats):
            return StatsReply(counters=client.stats(target.timeout_ms / 1_000))
        answer = client.request(event, target.timeout_ms / 1_000)
    except TimeoutError as error:
        raise UnavailableError(str(error)) from None
    if isinstance(answer, Rejected) and answer.field == "account":
        return msgspec.structs.replace(answer, detail=f"{answer.detail} (there are: {', '.join(accounts) or 'none'})")
    return answer


def _connect(client: Client, target: Target) -> list[str]:
    """Returns the accounts that may be used. Raises UnavailableError."""
    until = time.monotonic() + target.timeout_ms / 1_000
    while True:
        try:
            return client.wait_connected(_LOOK_S).accounts
        except ConnectionError as error:
            if client.last_error is not None:
                raise UnavailableError(client.last_error.removeprefix(f"{target.name}: ")) from None
            if time.monotonic() > until:
                raise UnavailableError(f"no welcome within {target.timeout_ms} ms") from error


def print_answer(answer: Answer, json: bool) -> None:
    """The result on standard output, the reason of a rejection on standard error; as JSON always on the former."""
    if json:
        print(msgspec.json.encode(answer).decode(), flush=True)
    elif isinstance(answer, Ack):
        print(answer.result, flush=True)
    elif isinstance(answer, StatsReply):
        for name, value in sorted(answer.counters.items()):
            print(name, value, flush=True)
    else:
        place = f" ({answer.field})" if answer.field else ""
        print(f"livesign: rejected: {answer.code}{place}: {answer.detail}", file=sys.stderr)
