"""Configuration files, the lines of their problems, and secrets that stay secret."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.config import ConfigError, load
from actors.scenario import ScenarioError
from actors.simulate import run_file
from tests.config_trees import (
    ENVIRON,
    TELEGRAM,
    config,
    only_problem,
    problems,
)

# --- files ---


FILE = """\
[accounts.tg]
platform = "telegram"
token_file = "tg.token"

[status]
debounce_ms = 100
emoji = { done = "🎉" }

[[match]]
direct = true
typing.mode = "message"

[[match]]
[match.status]
settle = "keep"
"""


def written(directory: Path, text: str) -> Path:
    path = directory / "livesign.toml"
    path.write_text(text, "utf-8")
    return path


def test_a_file_is_loaded_and_its_relative_paths_begin_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tg.token").write_text("12:abc\n")
    loaded = load(written(tmp_path, FILE + '[ledger]\npath = "state"\n'), environ=ENVIRON)
    assert loaded.accounts["tg"].credentials.token == "12:abc"
    assert loaded.ledger_path == str(tmp_path / "state")
    policy = loaded.policy("tg", "c", direct=True)
    assert (policy.typing.mode, policy.status.settle, policy.status.debounce_ms) == ("message", "keep", 100)
    assert policy.status.emoji["done"][0] == "🎉"
    assert loaded.source == str(tmp_path / "livesign.toml")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("debounce_ms = 100", "debounce_ms = -1", 6),
        ('emoji = { done = "🎉" }', 'emoji = { done = "" }', 7),
        ('typing.mode = "message"', 'typing.mode = "no"', 11),
        ('settle = "keep"', 'settle = "no"', 15),
        ('token_file = "tg.token"', "", 1),
    ],
)
def test_a_problem_of_a_file_names_file_and_line(tmp_path: Path, old: str, new: str, line: int) -> None:
    (tmp_path / "tg.token").write_text("12:abc")
    path = written(tmp_path, FILE.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        load(path, environ=ENVIRON)
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"status = {", "is not TOML"),
        (b"\xff = 1", "is not UTF-8 text"),
        (b"a = " + b"[" * 5_000, "is not TOML"),
        (b"a = " + b"9" * 5_000, "is not TOML"),
    ],
)
def test_a_file_that_is_no_toml_is_a_configuration_error(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        load(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize("read", [load, run_file])
def test_a_file_without_an_end_is_refused_before_it_fills_the_memory(read: Callable[[str], object]) -> None:
    with pytest.raises((ConfigError, ScenarioError), match="cannot be read: File too large"):
        read("/dev/zero")


@pytest.mark.parametrize(("read", "text"), [(load, FILE), (run_file, "{}")])
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, read: Callable[[str], object], text: str) -> None:
    (tmp_path / "tg.token").write_text("t0ken")
    read(str(written(tmp_path, "\N{ZERO WIDTH NO-BREAK SPACE}" + text)))


# --- secrets ---


def test_a_token_comes_from_the_environment_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(" 1:x \n")
    for place in ({"token_env": "BOT"}, {"token_file": str(tmp_path / "t")}):
        loaded = load({"accounts": {"a": {"platform": "telegram", **place}}}, environ={"BOT": "1:x"})
        assert loaded.accounts["a"].credentials.token == "1:x"


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ({}, "accounts.a.token: telegram needs a token (allowed: token, token_env or token_file)"),
        ({"token_env": "BOT"}, "accounts.a.token_env: the environment variable BOT is not set"),
        ({"token_file": "/nowhere/t"}, "/nowhere/t cannot be read: No such file or directory"),
        ({"token_file": "/dev/null"}, "/dev/null is empty"),
        ({"token": "x", "token_env": "BOT"}, "accounts.a.token_env: token is set too: keep one of them"),
    ],
)
def test_a_token_that_is_not_there_is_an_error(own: dict[str, str], reason: str) -> None:
    assert reason in only_problem({"accounts": {"a": {"platform": "telegram", **own}}})


def test_secrets_are_in_no_text(tmp_path: Path) -> None:
    own = {
        **TELEGRAM,
        "base_url": "http://user:hidden@localhost:1/",
        "proxy": "http://user:hidden@localhost:2",
    }
    server = {"tokens": [{"token": "secret2"}]}
    loaded = config({"accounts": {"tg": own}, "server": server})
    for text in (repr(loaded.describe()), repr(loaded.server), repr(loaded.accounts["tg"].policy)):
        assert "secret" not in text
        assert "hidden" not in text
    assert "secret" not in repr(loaded)
    assert loaded.describe()["accounts"]["tg"]["base_url"] == "http://localhost:1"
    (tmp_path / "t").write_text("sec ret")
    wrong: list[dict[str, Any]] = [
        {"token": "sec ret"},
        {"token": ["sec ret"]},
        {"token": 5, "tokne": "sec ret"},
        {"token": "x", "base_url": "sec ret"},
        {"token": "x", "proxy": "https://sec ret@x"},
        {"token_file": str(tmp_path / "t")},
    ]
    for own in wrong:
        assert "sec ret" not in "".join(problems({"accounts": {"a": {"platform": "telegram", **own}}}))


def test_tcp_needs_tokens_and_warns_of_a_network_without_tls() -> None:
    assert "server.tcp: nobody could connect" in only_problem({"server": {"tcp": "127.0.0.1:1"}})
    tokens = [{"token": "x"}]
    assert config({"server": {"tcp": "127.0.0.1:1", "tokens": tokens}}).warnings == ()
    (warning,) = config({"server": {"tcp": "0.0.0.0:1", "tokens": tokens}}).warnings
    assert "in the clear on 0.0.0.0:1" in warning
