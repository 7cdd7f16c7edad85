"""Who may import whom (the architecture as a test), and what an import may not do."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = ("actors", "protocol")

ALLOWED: dict[str, tuple[str, ...]] = {
    "protocol": ("protocol",),
    "actors.presence": ("actors.presence", "protocol.events"),
    "actors.runtime": ("actors.runtime",),
    "actors.platforms": ("actors.platforms", "actors.presence", "actors.runtime"),
}
THIRD_PARTY: dict[str, tuple[str, ...]] = {
    "protocol": ("msgpack", "msgspec"),
    "actors.presence": (),
    "actors.runtime": ("pykka", "gevent", "greenlet"),
}
NOT_IN_PRESENCE = {
    "socket", "ssl", "select", "selectors", "threading", "multiprocessing", "asyncio", "time", "datetime", "random",
}  # fmt: skip


def modules() -> Iterator[tuple[str, Path]]:
    for top in OURS:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(path: Path, module: str) -> set[str]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                found.add(".".join([*base, *filter(None, [node.module])]))
            elif node.module:
                folder = ROOT.joinpath(*node.module.split("."))
                inner = [a.name for a in node.names if folder.joinpath(a.name + ".py").exists()]
                found |= {f"{node.module}.{name}" for name in inner}
                if len(inner) < len(node.names):
                    found.add(node.module)
    return found


def within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


ALL = list(modules())


@pytest.mark.parametrize(("module", "path"), ALL, ids=[name for name, _ in ALL])
def test_a_module_imports_only_what_its_layer_may(module: str, path: Path) -> None:
    names = imports(path, module)
    for layer, allowed in ALLOWED.items():
        if within(module, (layer,)):
            wrong = {name for name in names if within(name, OURS) and not within(name, allowed)}
            assert not wrong, f"{module} must not import {sorted(wrong)}"
            third = {
                name
                for name in names
                if name.partition(".")[0] not in sys.stdlib_module_names and not within(name, OURS)
            }
            if layer in THIRD_PARTY:
                bad = {name for name in third if not within(name, THIRD_PARTY[layer])}
                assert not bad, f"{module} must not import {sorted(bad)}"
    if within(module, ("actors.presence",)):
        assert not names & NOT_IN_PRESENCE, f"{module} is pure: no sockets, threads or clocks"
    if module != "actors.__main__":
        assert not within("actors.cli", tuple(names)), f"{module}: nothing imports the command line"


@pytest.mark.parametrize("package", ["actors", "protocol", "protocol.client", "actors.runtime"])
def test_an_import_patches_nothing_and_starts_nothing(package: str) -> None:
    code = (
        f"import {package}, socket, threading, sys\n"
        "assert threading.active_count() == 1, threading.enumerate()\n"
        "assert socket.socket.__module__ == 'socket'\n"
        "import time; assert time.sleep.__module__ == 'time' or type(time.sleep).__name__ == 'builtin_function_or_method'\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, check=True, timeout=60)


def test_the_top_level_of_the_repository_is_fixed() -> None:
    allowed = {
        "actors", "protocol", "tests", "bench", "pyproject.toml", "setup.cfg", "README.md", "examples", "docs", "LICENSE",
        "CHANGELOG.md", "CONTRIBUTING.md",
    }  # fmt: skip
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    tops = {line.split("/", 1)[0] for line in listing.splitlines()}
    assert {top for top in tops if not top.startswith(".")} <= allowed
