"""A proxy before a platform that holds callers to limits: it counts by itself, answers 429 when a call is one too many,
and writes down every call that came although the last answer had said to wait."""

from __future__ import annotations

import http.client
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.platforms.recorder import Answer, Recorded, Recorder

Upstream = Callable[[Recorded], Answer]


@dataclass
class Allowance:
    """At most ``count`` calls in any ``per_s`` seconds for each ``key``; calls without one do not count."""

    name: str
    count: int
    per_s: float
    key: Callable[[Recorded], str | None]
    refusal: Callable[[float], Answer]
    """The answer to one too many, given the seconds to wait."""
    _passed: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))

    def wait_s(self, request: Recorded, now_s: float) -> float:
        """0: the call may pass, and is counted. Otherwise the seconds until it may."""
        key = self.key(request)
        if key is None:
            return 0.0
        passed = self._passed[key]
        while passed and passed[0] <= now_s - self.per_s:
            passed.popleft()
        if len(passed) >= self.count:
            return passed[0] + self.per_s - now_s
        passed.append(now_s)
        return 0.0


class LimitingProxy:
    """``waits_s`` reads the seconds out of an answer with status 429, the proxy's own and the platform's alike;
    ``scope`` says what they hold for."""

    def __init__(
        self,
        upstream: Upstream,
        allowances: Sequence[Allowance],
        waits_s: Callable[[Answer], float],
        scope: Callable[[Recorded], str | None],
    ) -> None:
        self._upstream = upstream
        self._allowances = allowances
        self._waits_s = waits_s
        self._scope = scope
        self._blocked: dict[str | None, float] = {}
        self.statuses: Counter[int] = Counter()
        self.refusals: list[Answer] = []
        """Every answer with status 429."""
        self.early: list[str] = []
        """Calls that came before their time."""
        self.server = Recorder(self._answer)

    def _answer(self, request: Recorded) -> Answer:
        now_s = time.monotonic()
        scope = self._scope(request)
        if now_s < self._blocked.get(scope, 0.0):
            self.early.append(f"{request.method} {request.path}")
        waits = ((each, each.wait_s(request, now_s)) for each in self._allowances)
        answer = next((each.refusal(wait_s) for each, wait_s in waits if wait_s), None) or self._upstream(request)
        self.statuses[answer[0]] += 1
        if answer[0] == 429:
            self.refusals.append(answer)
            self._blocked[scope] = now_s + self._waits_s(answer)
        return answer


def forwarder(url: str) -> Upstream:
    """Passes requests on to the server at ``url``, whose path goes before theirs."""
    parts = urlsplit(url)

    def forward(request: Recorded) -> Answer:
        connection = http.client.HTTPConnection(parts.netloc, timeout=10)
        try:
            kept = {name: value for name, value in request.headers.items() if name not in ("host", "connection")}
            connection.request(request.method, parts.path + request.path, request.body, kept)
            response = connection.getresponse()
            dropped = ("content-length", "transfer-encoding", "connection", "date", "server")
            headers = {name: value for name, value in response.getheaders() if name.lower() not in dropped}
            return response.status, headers, response.read()
        finally:
            connection.close()

    return forward
