"""What the documentation says is so: generated pages are current, and README's examples do what it shows."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from msgspec import Struct

from actors import RunOutcome
from actors.config import load
from actors.simulate import run
from protocol import events

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def block(language: str, holding: str) -> str:
    found = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
    return str(next(text for name, text in found if name == language and holding in text))


@pytest.mark.parametrize("name", ["events.md", "configuration.md", "platforms.md"])
def test_a_generated_page_is_what_the_types_say(name: str) -> None:
    page = generator().PAGES[name]()
    assert (ROOT / "docs" / name).read_text("utf-8") == page, "run: python docs/generate.py"


def test_every_file_that_the_readme_links_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_configuration_of_the_readme_is_valid() -> None:
    tree = tomllib.loads(block("toml", "[accounts.support]"))
    config = load(tree, scenario=True)
    assert set(config.accounts) == {"support", "ops"}
    assert config.warnings == ()


def test_the_scenario_of_the_readme_gives_the_timeline_that_it_shows() -> None:
    timeline = run(json.loads(block("json", '"events"'))).timeline()
    assert timeline.startswith(block("", "0.000  received").rstrip().removesuffix("..."))


def test_the_clients_of_the_readme_are_those_of_the_examples() -> None:
    for language, holding, path in (("python", "AF_UNIX", "raw_client.py"), ("js", "encode", "node/raw_client.mjs")):
        example = (ROOT / "examples" / path).read_text("utf-8")
        for name in re.findall(r'"(\w+)"', block(language, holding)):
            assert name in example, f"{name} of the README is not in examples/{path}"


def test_the_bot_of_the_readme_shows_what_it_does() -> None:
    told: list[object] = []
    exec(compile(block("python", "presence.run"), "README.md", "exec"), {"print": told.append})
    assert told == [RunOutcome("done", mark="👍")]


@pytest.mark.parametrize(
    "cls",
    [events.Event, events.RunEvent, events.Hello, events.Received, events.CallResult, events.Ack, events.Welcome],
    ids=lambda cls: str(cls.__name__),
)
def test_fields_that_their_names_do_not_explain_are_explained(cls: type[Struct]) -> None:
    assert set(cls.__struct_fields__) - set(generator()._meanings(cls)) <= {"call_id"}
