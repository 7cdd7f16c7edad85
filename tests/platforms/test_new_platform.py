"""A platform is added as the guide says, one file and one line, and works: configuration, requests, limits, a whole run.

That is done in a copy of the packages, and by the daemon itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import actors.platforms
from tests.end_to_end.processes import ROOT, Process, RawClient, eventually
from tests.platforms.recorder import Answer, Recorded, Recorder

pytestmark = pytest.mark.real

GUIDE = actors.platforms.__doc__ or ""
CONFIG = """
[accounts.a]
platform = "example"
base_url = "{url}"
token = "secret"
team = "r&d"

[ack]
scope = "all"

[status]
debounce_ms = 0
done_hold_ms = 10

[server]
unix = "{folder}/s.sock"

[ledger]
path = ":memory:"
"""


def from_the_guide(pattern: str) -> str:
    found = re.search(pattern, GUIDE, re.DOTALL)
    assert found is not None
    return textwrap.dedent(found.group(1))


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """livesign with the guide's platform in it."""
    folder = tmp_path_factory.mktemp("packages")
    for name in ("actors", "protocol"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "actors/platforms/example.py").write_text(from_the_guide(r"complete::\n\n(.*?)\nThe line"))
    registry = folder / "actors/platforms/registry.py"
    line = from_the_guide(r"in `registry`: ``(.*?)``")
    registry.write_text(registry.read_text("utf-8").replace("MappingProxyType({\n", "MappingProxyType({\n" + line, 1))
    return folder


def test_the_guide_is_short() -> None:
    code = from_the_guide(r"complete::\n\n(.*?)\nThe line").rstrip()
    assert len(code.splitlines()) <= 30


def test_the_new_platform_can_be_simulated(packages: Path, tmp_path: Path) -> None:
    run = {"conversation": "room", "message": "m"}
    scenario = {
        "config": {"accounts": {"a": {"platform": "example", "team": "x"}}, "ack": {"scope": "all"}},
        "events": [[0, {"type": "received", "direct": True, **run}], [20_000, {"type": "done", **run}]],
        "platform": {
            "rules": [{"op": "set", "nth": [1], "response": {"status": 404, "body": {"error": "message_gone"}}}]
        },
    }
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(scenario), "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "actors", "simulate", "--json", str(file)],
        cwd=packages, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert [(call["t_ms"], call["op"], call["outcome"]) for call in told["calls"]] == [
        (0, "set", "ok"), (0, "typing_start", "ok"), (8_000, "typing_start", "ok"), (16_000, "typing_start", "ok"),
        (20_000, "set", "gone"),
    ]  # fmt: skip
    assert told["violations"] == []


def test_the_new_platform_is_served(packages: Path, tmp_path: Path) -> None:
    def answer(request: Recorded) -> Answer:
        return 204, {}, b""

    with Recorder(answer) as service:
        config = tmp_path / "livesign.toml"
        config.write_text(CONFIG.format(url=service.url, folder=tmp_path), "utf-8")
        server = Process("-m", "actors", "serve", str(config), cwd=packages)
        try:
            server.line_with("ready")
            with RawClient(tmp_path / "s.sock") as client:
                for kind in ("received", "done"):
                    more = {"direct": True} if kind == "received" else {}
                    client.send(type=kind, conversation="room 1", message="m", **more)
                    eventually(lambda: len(service.seen) >= 2, "mark and typing")
                eventually(lambda: len(service.seen) == 5, "the end of the run")
        finally:
            server.close()
        seen = [(each.method, each.path, each.headers["authorization"]) for each in service.seen]
    mark = "/r%26d/room%201/m/reactions"
    assert set(seen[:2]) == {
        ("PUT", f"{mark}/%F0%9F%91%80", "Bearer secret"),
        ("POST", "/r%26d/room%201/typing", "Bearer secret"),
    }
    assert [each[:2] for each in seen[2:]] == [
        ("PUT", f"{mark}/%F0%9F%91%8D"),
        ("DELETE", f"{mark}/%F0%9F%91%80"),
        ("DELETE", f"{mark}/%F0%9F%91%8D"),
    ]
    assert "secret" not in server.text


def test_an_option_that_the_new_platform_needs_is_asked_for(packages: Path, tmp_path: Path) -> None:
    config = tmp_path / "livesign.toml"
    config.write_text('[accounts.a]\nplatform = "example"\ntoken = "t"\n', "utf-8")
    server = Process("-m", "actors", "serve", str(config), cwd=packages)
    try:
        server.line_with("accounts.a.team: example needs it")
    finally:
        server.close()
