"""Every bench scenario at smoke size, so that none of them rots; and how goals are judged."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench import harness
from bench.__main__ import main
from bench.harness import Figure, at_least, at_most

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = harness.scenarios()


def test_the_four_scenarios_are_found_by_their_files() -> None:
    assert set(SCENARIOS) >= {"ingest", "lifecycle", "memory", "runtime"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_says_what_it_measures_and_why(name: str) -> None:
    text = SCENARIOS[name].__doc__ or ""
    assert harness.about(SCENARIOS[name]).endswith(".")
    assert "Why: " in text


@pytest.mark.real
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_runs_and_has_done_work(name: str) -> None:
    figures = SCENARIOS[name].run(smoke=True)
    assert figures
    assert len({figure.name for figure in figures}) == len(figures)
    assert all(figure.checksum for figure in figures)
    assert all(figure.unit for figure in figures)


def test_a_goal_is_met_nearly_met_or_missed() -> None:
    def judged(figure: Figure) -> tuple[bool | None, bool]:
        return figure.met, figure.tolerable

    assert judged(Figure("x", 100, "1/s", at_least(100))) == (True, True)
    assert judged(Figure("x", 90, "1/s", at_least(100))) == (False, True)
    assert judged(Figure("x", 80, "1/s", at_least(100))) == (False, False)
    assert judged(Figure("x", 110, "bytes", at_most(100))) == (False, True)
    assert judged(Figure("x", 120, "bytes", at_most(100))) == (False, False)
    assert judged(Figure("x", 0, "timers", at_most(0))) == (True, True)
    assert judged(Figure("x", 1, "timers", at_most(0))) == (False, False)
    assert judged(Figure("x", 1, "1/s")) == (None, True)


def test_two_sides_take_turns_and_the_median_ratio_counts() -> None:
    log: list[str] = []
    ours, theirs = iter([10.0, 99.0, 30.0]), iter([5.0, 1.0, 10.0])

    def side(name: str, values: Iterator[float]) -> float:
        log.append(name)
        return next(values)

    result = harness.duel(lambda: side("ours", ours), lambda: side("theirs", theirs), 3)
    assert log == ["ours", "theirs"] * 3
    assert result == (30.0, 5.0, 3.0)


def _one(value: float) -> dict[str, ModuleType]:
    """A stand-in for all scenarios: one figure with this value, and a goal of at least 1."""
    module = ModuleType("one", "One figure.")
    setattr(module, "run", lambda smoke: [Figure("x", value, "ratio", at_least(1), "a peer", 7)])  # noqa: B010
    return {"one": module}


def test_a_missed_goal_is_an_exit_code_only_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.__main__.scenarios", lambda: _one(0.5))
    assert main([]) == 0
    assert "missed" in capsys.readouterr().out
    assert main(["--check"]) == 1
    monkeypatch.setattr("bench.__main__.scenarios", lambda: _one(0.9))
    assert main(["one", "--check"]) == 0


def test_json_holds_value_goal_peer_and_checksum(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.__main__.scenarios", lambda: _one(2.0))
    assert main(["--json", "--smoke"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["smoke"] is True
    assert tree["scenarios"]["one"]["figures"]["x"] == {
        "value": 2.0,
        "unit": "ratio",
        "goal": {"direction": ">=", "value": 1},
        "met": True,
        "peer": "a peer",
        "checksum": 7,
    }


def test_an_unknown_scenario_is_named_and_exits_with_2() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "nonsense"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "nonsense" in done.stderr
