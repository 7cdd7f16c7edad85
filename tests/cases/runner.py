"""Runs a case and says what differs from what it expects."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import to_builtins

from actors.config import ConfigError
from actors.scenario import ScenarioError
from tests.cases import expect_bare, expect_calls, expect_ends, expect_sight
from tests.cases.bare import BareEvidence, is_bare, perform_bare
from tests.cases.case import Case
from tests.cases.expect import read_expectations
from tests.cases.script import translate
from tests.cases.settings import Settings, accounts_of
from tests.cases.stage import Evidence, perform
from tests.cases.words import WordError

ROOT = Path(__file__).resolve().parents[2]
AFTERWARDS_MS = 120_000
"""A case goes on for so long after its last step: long enough for everything to come to rest."""

SimExpectation = (
    expect_calls.Calls | expect_calls.NoCalls | expect_calls.Order | expect_sight.Marks | expect_sight.Typing
    | expect_ends.Run | expect_ends.Runs | expect_ends.Answer | expect_ends.Replies | expect_ends.Counter
    | expect_ends.Sum | expect_ends.Exit | expect_ends.Rest | expect_ends.Warned
)  # fmt: skip
BareExpectation = (
    expect_bare.Answered | expect_bare.Pending | expect_bare.Handled | expect_bare.Starts | expect_bare.Ticks
    | expect_bare.Returned | expect_bare.Registered | expect_bare.OfRuntime | expect_bare.Depth | expect_bare.Logged
)  # fmt: skip

EXPECTATIONS: Mapping[str, type[SimExpectation]] = {
    "calls": expect_calls.Calls,
    "no_calls": expect_calls.NoCalls,
    "order": expect_calls.Order,
    "marks": expect_sight.Marks,
    "typing": expect_sight.Typing,
    "run": expect_ends.Run,
    "runs": expect_ends.Runs,
    "answer": expect_ends.Answer,
    "replies": expect_ends.Replies,
    "counter": expect_ends.Counter,
    "sum": expect_ends.Sum,
    "exit": expect_ends.Exit,
    "rest": expect_ends.Rest,
    "warning": expect_ends.Warned,
}
BARE_EXPECTATIONS: Mapping[str, type[BareExpectation]] = {
    "answered": expect_bare.Answered,
    "pending": expect_bare.Pending,
    "handled": expect_bare.Handled,
    "starts": expect_bare.Starts,
    "ticks": expect_bare.Ticks,
    "returned": expect_bare.Returned,
    "registered": expect_bare.Registered,
    "runtime": expect_bare.OfRuntime,
    "depth": expect_bare.Depth,
    "logged": expect_bare.Logged,
}
CRASHES = {"crash_actor", "kill_actor"}


def differences(case: Case) -> Iterator[str]:
    """What differs, in words; nothing: the case passes."""
    yield from (f"there is no test {node}" for node in case.proved_by if not is_test(node))
    if case.proved_by and not case.script:
        return
    for name, each in case.each():
        try:
            found = list(_bare(each) if is_bare(each.script) else _simulated(each))
        except (WordError, ScenarioError, ConfigError) as error:
            found = [f"{type(error).__name__}: {error}"]
        yield from (f"{name}: {text}" if name else text for text in found)


def played(case: Case) -> Evidence | BareEvidence:
    """Run the script of a case (of a variant: see `Case.each`). Raises `WordError`."""
    last_ms = max((step[0] for step in case.script if step and isinstance(step[0], int)), default=0)
    if is_bare(case.script):
        return perform_bare(case.script, last_ms + AFTERWARDS_MS if case.until_ms is None else case.until_ms)
    named = [step[2]["account"] for step in case.script if len(step) > 2 and "account" in step[2]]
    settings = Settings(accounts_of(case.platform.like, dict.fromkeys(named)), case.platform.options)
    graces = [step[2] for step in case.script if len(step) > 2 and step[1] in ("sigterm", "drain")]
    for args in graces:
        settings = settings.with_words({"grace": args.get("grace", args.get("max", 10_000))})
    settings = settings.with_words(case.settings)
    translation = translate(case.script, settings)
    platform = {key: value for key, value in to_builtins(case.platform).items() if key in ("latency_ms", "rules")}
    until_ms = max(translation.last_ms, last_ms) + AFTERWARDS_MS if case.until_ms is None else case.until_ms
    return perform(translation, settings.tree(), platform, until_ms)


def _simulated(case: Case) -> Iterator[str]:
    expectations = read_expectations(case.expect, EXPECTATIONS)
    if not expectations:
        yield "nothing is expected"
    evidence = played(case)
    assert isinstance(evidence, Evidence)
    for expectation in expectations:
        yield from expectation.check(evidence)
    yield from evidence.result.violations
    if not CRASHES & {step[1] for step in case.script} and evidence.result.counters.get("restarts"):
        yield "an actor has failed"


def _bare(case: Case) -> Iterator[str]:
    expectations = read_expectations(case.expect, BARE_EXPECTATIONS)
    if not expectations:
        yield "nothing is expected"
    evidence = played(case)
    assert isinstance(evidence, BareEvidence)
    for expectation in expectations:
        yield from expectation.check(evidence)


def is_test(node: str) -> bool:
    """Whether a pytest node id names a test function that exists in the repository."""
    path, _, name = node.partition("::")
    file = ROOT / path
    if not name or not file.is_file():
        return False
    scope: ast.AST = ast.parse(file.read_text("utf-8"))
    for part in name.partition("[")[0].split("::"):
        found = [
            each
            for each in ast.iter_child_nodes(scope)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each.name == part
        ]
        if not found:
            return False
        scope = found[0]
    return isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
