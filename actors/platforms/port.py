"""The port through which an account's calls leave, and its implementation over HTTP."""

from __future__ import annotations

import logging
import re
import traceback
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import monotonic_ns
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import gevent
from gevent.lock import BoundedSemaphore

from actors.platforms.spec import Credentials, HttpAdapter, Request, Response
from actors.platforms.transport import GeventTransport, NoAnswer, NotSent, Transport
from actors.presence.terms import Command, Op, Outcome, OutcomeKind

log = logging.getLogger(__name__)

Done = Callable[[Outcome], None]

MAX_FOLLOW_UPS: Final = 6
MAX_DETAIL: Final = 200
MAX_LEARNED: Final = 1_000
MIN_SECRET: Final = 12
"""A part of a token that is shorter is no secret by itself (Telegram: the bot's number)."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class PlatformPort(Protocol):
    """Where the commands of one account go."""

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        """Make the call. Never blocks and never raises. ``done`` is called exactly once, in the runtime's
        thread, after this method has returned, at the latest when ``deadline_ms`` from now are over."""

    def close(self) -> None:
        """End all calls now (their outcome is unknown) and accept no more. Does not block."""


class HttpPlatform:
    """A `PlatformPort` over HTTP: each call is a greenlet of the runtime's hub.

    A call may take more than one request: the account's introduction before the first and when it has expired,
    and those the adapter asks for by `HttpAdapter.follow_up`. All of them share the call's deadline. Where typing was sent on to
    another target, later typing goes there at once. The number of connections is bounded by the transport;
    who makes more calls than that waits in line within the deadline.

    ``detail`` of every outcome is one line, short, and free of the account's secrets.
    """

    def __init__(
        self,
        adapter: HttpAdapter,
        credentials: Credentials,
        transport: Transport | None = None,
        *,
        concurrency: int | None = None,
    ) -> None:
        """Without a ``transport`` one is made, of ``concurrency`` connections (None: the platform's row).
        Raises ValueError and OSError as `GeventTransport` does."""
        spec = adapter.spec
        self._adapter = adapter
        self._configured = self._credentials = credentials
        self._introducing = BoundedSemaphore()
        self._transport = transport or GeventTransport.of(credentials, spec.base_url, concurrency or spec.concurrency)
        self._given = transport
        self._elsewhere: dict[str, Transport] = {}
        """Transports to other servers than the account's."""
        self._redacted = _redaction(credentials)
        self._calls: set[gevent.Greenlet[..., Outcome]] = set()
        self._targets: dict[tuple[str, str | None], tuple[str, str | None]] = {}
        self._closed = False

    @property
    def calls(self) -> int:
        """Calls under way."""
        return len(self._calls)

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        """See `PlatformPort`."""
        greenlet = gevent.Greenlet(self._run, command, monotonic_ns() + deadline_ms * 1_000_000)
        self._calls.add(greenlet)
        # The link fires once however the greenlet ends, also when it is killed before its first step.
        greenlet.rawlink(partial(self._ended, done))
        greenlet.start()

    def close(self) -> None:
        """See `PlatformPort`."""
        self._closed = True
        for greenlet in tuple(self._calls):
            greenlet.kill(block=False)
        for transport in (self._transport, *self._elsewhere.values()):
            transport.close()

    def _ended(self, done: Done, greenlet: gevent.Greenlet[..., Outcome]) -> None:
        self._calls.discard(greenlet)
        value = greenlet.value
        outcome = value if isinstance(value, Outcome) else Outcome(OutcomeKind.UNKNOWN, detail="closed")
        try:
            done(self._cleaned(outcome))
        except Exception as error:
            log.error("a call's outcome could not be delivered: %s", _place(error))

    def _run(self, command: Command, until_ns: int) -> Outcome:
        if self._closed:
            return Outcome(OutcomeKind.TRANSIENT, detail="closed")
        try:
            return self._make(command, until_ns)
        except NotSent as error:
            return Outcome(OutcomeKind.TRANSIENT, detail=str(error))
        except NoAnswer as error:
            return Outcome(OutcomeKind.UNKNOWN, detail=str(error))
        except Exception as error:
            place = _place(error)
            log.error("%s: a %s call failed inside livesign: %s", self._adapter.spec.name, command.op, place)
            return Outcome(OutcomeKind.BAD_REQUEST, detail=place)

    def _make(self, command: Command, until_ns: int) -> Outcome:
        credentials = self._introduction(until_ns)
        if isinstance(credentials, Outcome):
            return credentials
        first = (command.conversation, command.thread)
        if command.op is Op.TYPING_START or command.op is Op.TYPING_STOP:
            conversation, thread = self._targets.get(first, first)
            command = replace(command, conversation=conversation, thread=thread)
        renewed = False
        for _ in range(1 + MAX_FOLLOW_UPS):
            request = self._adapter.request(command, credentials)
            if isinstance(request, Outcome):
                return request
            response = self._send(request, until_ns)
            if not renewed and credentials is not self._configured and self._adapter.expired(response):
                renewed = True
                credentials = self._introduction(until_ns, instead_of=credentials)
                if isinstance(credentials, Outcome):
                    return credentials
                continue
            following = self._adapter.follow_up(command, credentials, response)
            if following is None:
                outcome = self._adapter.outcome(command, response)
                if outcome.happened:
                    self._learn(first, command)
                return outcome
            command = following
        return Outcome(OutcomeKind.BAD_REQUEST, detail=f"no end after {MAX_FOLLOW_UPS} follow-up requests")

    def _send(self, request: Request, until_ns: int) -> Response:
        transport = self._transport
        if request.server is not None and self._given is None:
            if request.server not in self._elsewhere:
                there = replace(self._configured, base_url=request.server)
                self._elsewhere[request.server] = GeventTransport.of(there, None, 1)
            transport = self._elsewhere[request.server]
        return transport.send(request, _left_ms(until_ns))

    def _introduction(self, until_ns: int, instead_of: Credentials | None = None) -> Credentials | Outcome:
        """The credentials, completed by asking the platform once where the adapter wants that, and anew where they
        are still those that have expired."""
        if instead_of is self._credentials:
            self._credentials = self._configured
        if self._adapter.introduce(self._credentials) is None:
            return self._credentials
        if not self._introducing.acquire(timeout=_left_ms(until_ns) / 1_000):
            raise NotSent("deadline")
        try:
            request = self._adapter.introduce(self._credentials)  # another call may have done it meanwhile
            if request is not None:
                response = self._send(request, until_ns)
                answer = self._adapter.introduced(self._credentials, response)
                if isinstance(answer, Outcome):
                    return answer
                self._credentials = answer
                self._redacted = _redaction(answer)
            return self._credentials
        except NoAnswer as error:
            raise NotSent(f"introduction: {error}") from None  # the call itself has not been made
        finally:
            self._introducing.release()

    def _learn(self, first: tuple[str, str | None], command: Command) -> None:
        """Remember where typing for ``first`` really goes."""
        target = (command.conversation, command.thread)
        if target == first or command.op is not Op.TYPING_START:
            return
        if len(self._targets) >= MAX_LEARNED:
            del self._targets[next(iter(self._targets))]
        self._targets[first] = target

    def _cleaned(self, outcome: Outcome) -> Outcome:
        if not outcome.detail:
            return outcome
        return replace(outcome, detail=_CONTROL.sub(" ", self._redacted(outcome.detail))[:MAX_DETAIL])


def _left_ms(until_ns: int) -> int:
    """Time left. Raises `NotSent` when there is none."""
    left_ms = (until_ns - monotonic_ns()) // 1_000_000
    if left_ms <= 0:
        raise NotSent("deadline")
    return left_ms


def _redaction(credentials: Credentials) -> Callable[[str], str]:
    """A function that takes the secrets out of a text, in each form they may have in an answer. (A function,
    because the attributes of an object are easily printed.)"""
    token = credentials.token
    parts = [part for part in token.split(":") if len(part) >= MIN_SECRET]
    pairs = [f"{name}:{token}" for name in credentials.options.values()] if token else []
    secrets = {token, credentials.access, *parts}
    if credentials.proxy is not None:
        user, colon, password = urlsplit(credentials.proxy).netloc.rpartition("@")[0].partition(":")
        secrets |= {password, unquote(password)}
        pairs.append(unquote(user + colon + password))
    secrets |= {b64encode(pair.encode()).decode("ascii") for pair in pairs}  # as in headers of basic authentication
    forms = {form for secret in secrets for form in (secret, quote(secret), quote(secret, safe=""))} - {""}
    if not forms:
        return str
    pattern = re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
    return lambda text: pattern.sub("***", text)


def _place(error: Exception) -> str:
    """What failed and where. Not the error's text: it may hold a path, and a path may hold a token."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.name}"
