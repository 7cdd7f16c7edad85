"""A fixed set of worlds, and the simulation's own tools. Fresh worlds: ``python -m tests.simulation --seconds 60``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from actors.scenario import read
from tests.simulation import __main__ as command
from tests.simulation import configs, planted, shrink, trial, worlds
from tests.simulation.bugs import AREAS, BUGS

SEEDS = range(1, 31)


@pytest.fixture(scope="module")
def faults() -> Counter[str]:
    return Counter()


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_stays_stuck_in_a_world_where_everything_fails(seed: int, faults: Counter[str]) -> None:
    report = trial.run(worlds.make(seed))
    faults.update(report.faults)
    assert not report.problems, f"python -m tests.simulation --seed {seed} --shrink"


def test_the_fixed_worlds_have_every_kind_of_fault(faults: Counter[str]) -> None:
    if sum(faults.values()) == 0:
        pytest.skip("only with the worlds before")
    assert not [kind for kind in command.KINDS if not faults[kind]]


def test_the_same_seed_makes_the_same_world_and_the_same_run() -> None:
    first, second = worlds.make(7), worlds.make(7)
    assert first == second
    assert trial.run(first) == trial.run(second)


def test_a_world_is_the_same_in_every_process_and_a_scenario_for_the_command_line(tmp_path: Path) -> None:
    """Sets of strings have another order in each."""
    path = tmp_path / "world.json"
    path.write_text(json.dumps(worlds.make(14).tree))
    command = [sys.executable, "-m", "actors", "simulate", str(path), "--json"]
    shown = [
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=True).stdout
        for seed in ("1", "2")
    ]
    assert shown[0] == shown[1]
    calls = json.loads(shown[0])["calls"]
    assert len(calls) == trial.run(worlds.make(14)).calls


def test_every_planted_bug_is_one_place_in_one_file() -> None:
    counts = {bug.name: (planted.ROOT / bug.file).read_text().count(bug.old) for bug in BUGS}
    assert [name for name, count in counts.items() if count != 1] == []


def test_every_area_has_planted_bugs_and_every_bug_has_its_turn() -> None:
    areas = Counter(bug.area for bug in BUGS)
    assert {area: areas[area] >= 5 for area in AREAS} == dict.fromkeys(AREAS, True)
    assert {bug.name for day in range(len(BUGS)) for bug in planted.rotation(day)} == {bug.name for bug in BUGS}


def test_a_failing_world_shrinks_to_what_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failure here is made up: somebody says that conversation v1 is done."""
    world = next(
        world for world in map(worlds.make, range(40)) if _guilty(world.tree) > 0 and len(world.tree["events"]) < 160
    )

    def run(world: worlds.World, *_: object) -> trial.Report:
        problems = ["1 ms: v1 is done"] if _guilty(world.tree) else []
        return trial.Report(world.seed, problems)

    monkeypatch.setattr(trial, "run", run)
    small = shrink.shrink(world, "1 ms: v1 is done")
    events = [row for row in small.tree["events"] if not isinstance(row[1], str) and not row[1]["type"].startswith("@")]
    assert len(events) == 1
    assert _guilty(small.tree) == 1
    read(small.tree)


def _guilty(tree: configs.Tree) -> int:
    return sum(
        isinstance(row[1], dict) and row[1]["type"] == "done" and row[1].get("conversation") == "v1"
        for row in tree["events"]
    )


def test_a_world_without_its_coda_is_a_scenario_for_the_command_line(tmp_path: Path) -> None:
    world = worlds.make(3)
    fewer = replace(world, tree={**world.tree, "events": world.tree["events"][:10]})
    assert len(read(fewer.tree).steps) == 10


def test_the_command_runs_one_seed_and_says_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "2", "--json"]) == 0
    out = capsys.readouterr().out
    assert '"worlds": 1' in out
    assert '"violations": {}' in out
