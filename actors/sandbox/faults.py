"""Being slow, failing, hanging or limiting on demand: a scenario's ``platform`` rules, as pure decisions.

Rules:

- A plan without rules does nothing; ``latency_ms`` is the delay of every call whose rule names none.
- Of the rules whose fields match a call, the first one answers it.
- ``nth`` picks calls by their number, from 0, among those that match the rule's other fields, whoever
  answered them.
- ``limit`` lets ``count`` calls pass in any ``per_ms`` and answers only those above it; a call that is let
  pass goes on to the next rule. A refused call does not count against the limit.
- ``from_ms`` (included) and ``until_ms`` (excluded) count from the moment the plan was put in force.
- ``response`` is sent as it is; it says nothing about livesign's own outcome names.
- ``applied``: the call takes effect although its answer is a failure or never comes.
"""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from actors.sandbox.calls import Call

Outcome: TypeAlias = Literal[
    "ok", "already_done", "gone", "forbidden", "invalid_reaction", "rate_limited", "transient", "auth",
    "bad_request", "hang",
]  # fmt: skip
Ms: TypeAlias = Annotated[int, Meta(ge=0)]


class RawAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """An HTTP answer word for word. A ``body`` that is no text is sent as JSON."""

    status: Annotated[int, Meta(ge=200, le=599)]
    headers: dict[str, Annotated[str, Meta(pattern=r"^[\t\x20-\x7e]*$")]] = {}
    body: Any = None


class Window(Struct, frozen=True, forbid_unknown_fields=True):
    """``count`` calls in any ``per_ms``, for each account, conversation or message."""

    per_ms: Annotated[int, Meta(gt=0)]
    count: Ms
    by: Literal["account", "conversation", "message"] = "account"


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """Which calls, when, and what becomes of them. A field left out matches everything."""

    op: Literal["set", "remove", "clear", "typing_start", "typing_stop", "*"] = "*"
    account: str | None = None
    conversation: str | None = None
    thread: str | None = None
    message: str | None = None
    emoji: str | None = None
    from_ms: Ms = 0
    until_ms: Ms | None = None
    nth: tuple[Ms, ...] | None = None
    latency_ms: Ms | None = None
    outcome: Outcome | None = None
    retry_after_ms: Ms | None = None
    scope: Literal["account", "conversation", "route"] | None = None
    applied: bool = False
    response: RawAnswer | None = None
    limit: Window | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.outcome not in (None, "rate_limited"):
            raise ValueError("a limit answers rate_limited: it cannot have another outcome")
        if self.response is not None and self.outcome is not None:
            raise ValueError("outcome and response exclude each other")


class FaultPlan(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole ``platform`` object."""

    latency_ms: Ms = 0
    rules: tuple[Rule, ...] = ()


class Verdict(NamedTuple):
    """What becomes of one call."""

    outcome: Outcome = "ok"
    """ok: what the chat's state says."""
    latency_ms: int = 0
    retry_after_ms: int | None = None
    scope: str | None = None
    applied: bool = False
    response: RawAnswer | None = None


PASS = Verdict()


class Faults:
    """A plan in force since ``start_ms``."""

    def __init__(self, plan: FaultPlan, start_ms: int) -> None:
        self.plan = plan
        self._start_ms = start_ms
        self._pass = Verdict(latency_ms=plan.latency_ms) if plan.latency_ms else PASS
        rules = [(rule.account, _RuleInForce(rule, plan.latency_ms)) for rule in plan.rules]
        self._general = [rule for account, rule in rules if account is None]
        self._by_account = {
            name: [rule for account, rule in rules if account in (None, name)] for name, _ in rules if name is not None
        }

    def judge(self, call: Call, now_ms: int) -> Verdict:
        """What becomes of ``call``, which came now. Counts it."""
        verdict: Verdict | None = None
        for rule in self._by_account.get(call.account, self._general):
            if rule.matches(call, now_ms - self._start_ms):
                number = rule.seen
                rule.seen += 1
                if verdict is None:
                    verdict = rule.answer(call, number, now_ms)
        return self._pass if verdict is None else verdict


class _RuleInForce:
    """A rule and what it has counted."""

    def __init__(self, rule: Rule, latency_ms: int) -> None:
        self.seen = 0
        self._rule = rule
        self._fields = [
            (index, value)
            for index, name in enumerate(Call._fields)
            if (value := getattr(rule, name)) is not None and (name, value) != ("op", "*")
        ]
        self._passed: dict[str, deque[int]] = {}
        outcome: Outcome = "rate_limited" if rule.limit is not None else rule.outcome or "ok"
        self._verdict = Verdict(
            outcome=outcome,
            latency_ms=latency_ms if rule.latency_ms is None else rule.latency_ms,
            retry_after_ms=rule.retry_after_ms,
            scope=rule.scope,
            applied=rule.applied,
            response=rule.response,
        )

    def matches(self, call: Call, t_ms: int) -> bool:
        """Whether everything but ``nth`` and ``limit`` fits."""
        rule = self._rule
        if t_ms < rule.from_ms or (rule.until_ms is not None and t_ms >= rule.until_ms):
            return False
        return all(call[index] == value for index, value in self._fields)

    def answer(self, call: Call, number: int, now_ms: int) -> Verdict | None:
        """The verdict on a call that matches; None: it is left to the next rule."""
        if self._rule.nth is not None and number not in self._rule.nth:
            return None
        if self._rule.limit is None:
            return self._verdict
        if self._rule.limit.by == "message" and call.message is None:
            return None
        wait_ms = self._wait_ms(self._rule.limit, call, now_ms)
        if wait_ms == 0:
            return None
        verdict = self._verdict
        if verdict.retry_after_ms is None:
            verdict = verdict._replace(retry_after_ms=wait_ms)
        if verdict.scope is None and self._rule.limit.by != "message":
            verdict = verdict._replace(scope=self._rule.limit.by)
        return verdict

    def _wait_ms(self, limit: Window, call: Call, now_ms: int) -> int:
        """How long until this call would pass; 0: it passes now, and is counted."""
        name = "\0".join(_limited(limit, call))
        passed = self._passed.get(name)
        if passed is None:
            if len(self._passed) > 1_000:
                self._forget(now_ms - limit.per_ms)
            passed = self._passed[name] = deque()
        while passed and passed[0] <= now_ms - limit.per_ms:
            passed.popleft()
        if len(passed) < limit.count:
            passed.append(now_ms)
            return 0
        return passed[0] + limit.per_ms - now_ms if passed else limit.per_ms

    def _forget(self, before_ms: int) -> None:
        """Drop the windows in which nothing counts any more."""
        self._passed = {k: times for k, times in self._passed.items() if times and times[-1] > before_ms}


def _limited(limit: Window, call: Call) -> tuple[str, ...]:
    if limit.by == "account":
        return (call.account,)
    if limit.by == "conversation":
        return (call.account, call.conversation)
    return (call.account, call.conversation, call.message or "")
