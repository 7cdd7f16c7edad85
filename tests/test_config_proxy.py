"""The proxy of an account: its own, else the environment's."""

from __future__ import annotations

from typing import Any

import pytest

from actors.config import Config, load

DISCORD: dict[str, Any] = {"platform": "discord", "token": "t"}
PROXY = "http://me:secret-word@proxy.example.org:3128"


def loaded(environ: dict[str, str], **account: Any) -> Config:
    return load({"accounts": {"a": {**DISCORD, **account}}, "ledger": {"path": ":memory:"}}, environ=environ)


def proxy_of(environ: dict[str, str], **account: Any) -> str | None:
    return loaded(environ, **account).accounts["a"].credentials.proxy


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY"])
def test_the_environment_names_the_proxy_where_the_account_does_not(name: str) -> None:
    assert proxy_of({name: PROXY}) == PROXY
    assert proxy_of({name: "proxy.example.org:3128"}) == "http://proxy.example.org:3128"
    assert proxy_of({name: PROXY}, proxy="http://own:1") == "http://own:1"


def test_the_proxy_is_that_of_the_address_s_scheme() -> None:
    both = {"http_proxy": "http://plain:1", "https_proxy": "http://tls:2"}
    assert proxy_of(both) == "http://tls:2"
    assert proxy_of(both, base_url="http://discord.example.org/api") == "http://plain:1"
    assert proxy_of({"http_proxy": "http://plain:1"}) is None


@pytest.mark.parametrize(
    "listed",
    ["discord.com", ".discord.com", "com", "*", "x.org, discord.com:443", "DISCORD.com", "*.discord.com"],
)
def test_what_no_proxy_lists_is_reached_directly(listed: str) -> None:
    account = {"base_url": "https://discord.com:443/api"}
    assert proxy_of({"https_proxy": PROXY, "no_proxy": listed}, **account) is None
    assert proxy_of({"HTTPS_PROXY": PROXY, "NO_PROXY": listed}, **account) is None


@pytest.mark.parametrize("listed", ["", "cord.com", "x.discord.com", "discord.com:80", "localhost,127.0.0.1"])
def test_and_nothing_else_is(listed: str) -> None:
    assert proxy_of({"https_proxy": PROXY, "no_proxy": listed}) == PROXY


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"])
def test_this_host_is_never_reached_through_the_environment_s_proxy(base_url: str) -> None:
    assert proxy_of({"http_proxy": PROXY}, base_url=base_url) is None


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "https://me:secret-word@proxy", "http://"])
def test_a_proxy_of_another_kind_is_not_used_and_that_is_said_without_repeating_it(proxy: str) -> None:
    config = loaded({"https_proxy": proxy})
    assert config.accounts["a"].credentials.proxy is None
    assert config.warnings == (
        "accounts.a: the environment's https_proxy is no proxy of the form http://host:port: it is not used",
    )


def test_the_password_of_a_proxy_shows_nowhere() -> None:
    config = loaded({"https_proxy": PROXY})
    assert "secret-word" not in f"{config!r} {config.describe()} {config.accounts['a'].credentials!r}"
    assert config.describe()["accounts"]["a"]["proxy"] == "http://proxy.example.org:3128"


def test_accounts_without_an_address_and_scenarios_have_no_proxy() -> None:
    everything = {"http_proxy": PROXY, "https_proxy": PROXY}
    tree = {"accounts": {"a": {"platform": "callback"}}}
    assert load(tree, environ=everything).accounts["a"].credentials.proxy is None
    assert load({"accounts": {"a": DISCORD}}, scenario=True, environ=everything).accounts["a"].credentials.proxy is None
