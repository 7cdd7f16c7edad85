"""The public API as type checkers and ``help()`` show it."""

from __future__ import annotations

import importlib.util
import json
import pydoc
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import actors
from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from tests.end_to_end.processes import ROOT

SAMPLE = ROOT / "tests" / "typing_sample.py"


def needs(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is in the extra lint")


@pytest.mark.real
def test_strict_mypy_has_nothing_to_say_about_a_users_file() -> None:
    needs("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", str(SAMPLE)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.real
def test_strict_pyright_has_nothing_to_say_about_a_users_file(tmp_path: Path) -> None:
    needs("pyright")
    shutil.copy(SAMPLE, tmp_path / "bot.py")
    settings = {"include": ["bot.py"], "typeCheckingMode": "strict", "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    if "generalDiagnostics" not in done.stdout:
        pytest.skip("pyright cannot be installed here: it comes by npm")
    found = json.loads(done.stdout)
    told = [f"{each['range']['start']['line'] + 1}: {each['message']}" for each in found["generalDiagnostics"]]
    assert found["summary"]["filesAnalyzed"] == 1
    assert told == []


def public_things() -> list[tuple[str, object]]:
    things = [(name, getattr(actors, name)) for name in actors.__all__]
    return [*things, ("Client", Client), ("AsyncClient", AsyncClient)]


@pytest.mark.parametrize(("name", "thing"), public_things(), ids=[name for name, _ in public_things()])
def test_help_says_what_everything_public_is_for(name: str, thing: object) -> None:
    page = re.sub(".\b", "", pydoc.render_doc(thing))
    assert name.removeprefix("load_") in page or name == "load_config"
    bare = [member for member in vars(thing) if not member.startswith("_")] if isinstance(thing, type) else []
    for member in bare:
        value = vars(thing)[member]
        if callable(value) or isinstance(value, property | classmethod):
            assert getattr(value, "__doc__", None), f"{name}.{member} has no docstring"
    assert getattr(thing, "__doc__", None)


def test_the_package_offers_what_it_says_and_nothing_else() -> None:
    assert set(actors.__all__) <= set(dir(actors))
    for name in actors.__all__:
        assert getattr(actors, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = actors.Nonsense
