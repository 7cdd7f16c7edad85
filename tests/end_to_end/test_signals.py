"""Signals to ``livesign serve`` on its bad days: a platform that hangs, a file that is wrong, a start that takes long, an
actor that is being restarted. Whatever happens, what shows has a row in the ledger."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ChatService, Process, chat_service, eventually
from tests.end_to_end.signal_stage import BUDGET_MS, Load, Stage

pytestmark = [pytest.mark.real, pytest.mark.slow]

HANGS = {"outcome": "hang"}


@pytest.fixture(scope="module")
def service() -> Iterator[ChatService]:
    with chat_service() as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path, service: ChatService) -> Stage:
    return Stage(tmp_path, service)


def ends(process: Process, *numbers: signal.Signals) -> float:
    """Send these; how long it then takes to its end, in ms."""
    for place, number in enumerate(numbers):
        if place:
            process.line_with("stopping")  # two of one kind that are sent at once are one
        process.signal(number)
    began = time.monotonic()
    process.exit_code()
    return (time.monotonic() - began) * 1_000


def calm(process: Process) -> bool:
    """It has not complained of faults of its own."""
    return "Traceback" not in process.text and "ERROR" not in process.text


def taken_back(stage: Stage) -> None:
    """The next start takes back what the one before has left, and knows it."""
    stage.chat.rules()
    with stage.ready() as (heir, _):
        eventually(lambda: not stage.shown(), "nothing shows")
        eventually(lambda: not stage.remembered(), "the ledger knows it, too")
        heir.signal(signal.SIGTERM)
        assert heir.exit_code() == 0, heir.text


# --- SIGTERM ---------------------------------------------------------------------------------------------------------


def test_sigterm_under_load_on_a_platform_that_hangs_ends_in_time_and_says_what_is_left(stage: Stage) -> None:
    with stage.ready() as (livesign, client):
        stage.open(client, 40)
        load = Load(stage)
        load.start()
        client.close()
        eventually(lambda: load.sent > 50, "the load runs")
        stage.chat.rules({"nth": list(range(0, 10_000, 2)), **HANGS, "applied": True}, HANGS)
        passed_ms = ends(livesign, signal.SIGTERM)
        load.join(10)
        assert livesign.exit_code() == 1
        assert BUDGET_MS - 50 <= passed_ms < BUDGET_MS + 2_500
        assert "stopped before everything that shows could be taken back: marks on" in livesign.text
        assert "the next start on this ledger takes them back" in livesign.text
        assert calm(livesign)
    assert stage.shown()
    assert stage.shown() <= stage.remembered()
    taken_back(stage)


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_wait_for_the_budget(stage: Stage, second: signal.Signals) -> None:
    stage.write(budget_ms=60_000)
    with stage.ready() as (livesign, client):
        stage.open(client, 3)
        client.close()
        stage.chat.rules(HANGS)
        assert ends(livesign, signal.SIGTERM, second) < 3_000
        assert livesign.exit_code() == 1
        assert "told twice" in livesign.text
        assert calm(livesign)
    assert len(stage.shown()) == 3
    assert stage.shown() <= stage.remembered()
    taken_back(stage)


def test_an_account_that_the_platform_has_stopped_is_not_waited_for_and_not_called_clean(stage: Stage) -> None:
    stage.write(budget_ms=60_000)
    with stage.ready() as (livesign, client):
        stage.open(client, 2)
        stage.chat.rules({"outcome": "auth"})
        client.send(type="done", **stage.run(0))
        livesign.line_with("refuses its credentials")
        client.close()
        assert ends(livesign, signal.SIGTERM) < 3_000
        assert livesign.exit_code() == 1
        assert "marks on 2 messages" in livesign.text
    assert stage.shown() <= stage.remembered()
    taken_back(stage)


def test_sigterm_during_the_recovery_of_a_long_ledger_takes_back_what_it_can_and_remembers_the_rest(
    stage: Stage,
) -> None:
    with stage.ready() as (livesign, client):
        stage.open(client, 300)
        livesign.signal(signal.SIGKILL)
        livesign.exit_code()
    stage.chat.rules({"latency_ms": 20})
    with stage.serve(at("actors.application.recover", signal.SIGTERM)) as livesign:
        assert livesign.exit_code() == 1
        assert calm(livesign)
    shown = stage.shown()
    assert 0 < len(shown) < 300
    assert shown <= stage.remembered()
    taken_back(stage)


# --- while it starts -------------------------------------------------------------------------------------------------


def at(place: str, *numbers: signal.Signals) -> str:
    """A script: as soon as this function is called, the process gets these signals, and the function takes its time."""
    module, _, name = place.rpartition(".")
    return f"""
import os, time, {module} as module
def interrupted(*args, __real=module.{name}, **kwargs):
    for number in {[int(number) for number in numbers]}:
        os.kill(os.getpid(), number)
    time.sleep(0.05)
    return __real(*args, **kwargs)
module.{name} = interrupted
"""


PLACES = ("actors.serve.load", "actors.serve.Daemon", "actors.application.recover", "actors.daemon.Server")


@pytest.mark.parametrize(("place", "number"), [*zip(PLACES, [signal.SIGTERM, signal.SIGINT] * 2, strict=True)])
def test_told_to_stop_while_it_starts_it_stands_and_then_ends_cleanly(
    stage: Stage, place: str, number: signal.Signals
) -> None:
    with stage.serve(at(place, number)) as livesign:
        assert livesign.exit_code() == 0, livesign.text
        assert f"{number.name}: stopping" in livesign.text
        assert calm(livesign)
    assert not stage.socket.exists()


def test_told_twice_while_it_starts_it_does_not_wait_for_the_budget(stage: Stage) -> None:
    stage.write(budget_ms=60_000)
    with stage.ready() as (livesign, client):
        stage.open(client, 1)
        livesign.signal(signal.SIGKILL)
        livesign.exit_code()
    stage.chat.rules(HANGS)
    with stage.serve(at("actors.serve.Daemon", signal.SIGTERM, signal.SIGINT)) as livesign:
        assert livesign.exit_code() == 1
        assert "told twice" in livesign.text
        assert calm(livesign)
    assert stage.shown() == stage.remembered()
    taken_back(stage)


# --- SIGHUP ----------------------------------------------------------------------------------------------------------


def test_sighup_while_it_starts_does_not_end_it(stage: Stage) -> None:
    with stage.ready(at("actors.serve.load", signal.SIGHUP)) as (livesign, client):
        livesign.line_with("reloaded")
        stage.open(client, 1)
        client.close()
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("[ack]\nscoope = 'all'\n", "ack.scoope"),
        ("[ack]\nscope = 'everywhere'\n", "ack.scope"),
        ("[accounts.second]\nplatform = 'telegram'\n", "accounts.second.token"),
        ("[accounts.second]\nplatform = 'matrix'\ntoken_file = 'gone'\nbase_url = 'https://h'\n", "token_file"),
        ("[ack\n", "is not TOML"),
    ],
)
def test_a_bad_file_is_one_clear_error_and_the_old_configuration_stays(stage: Stage, more: str, words: str) -> None:
    with stage.ready() as (livesign, client):
        stage.write(more)
        livesign.signal(signal.SIGHUP)
        assert words in livesign.line_with("reload refused, nothing has changed: ")
        assert client.send(type="stats", id="1")["counters"]["reloads_refused"] == 1
        assert client.receive()["type"] == "ack"
        stage.open(client, 1)
        client.close()
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0
        assert livesign.text.count("ERROR") == 1
        assert stage.name not in livesign.text.replace(str(stage.config.parent), "")


def test_a_file_that_is_gone_is_no_reason_to_stop(stage: Stage) -> None:
    with stage.ready() as (livesign, _):
        stage.config.unlink()
        livesign.signal(signal.SIGHUP)
        assert "cannot be read: No such file" in livesign.line_with("reload refused")
        stage.write()
        livesign.signal(signal.SIGHUP)
        livesign.line_with("reloaded")


def test_a_storm_of_sighups_under_load_disturbs_nobody(stage: Stage) -> None:
    with stage.ready() as (livesign, client):
        load = Load(stage)
        load.start()
        for number in range(50):
            stage.write("" if number % 2 else "[ack]\nscope = 'nowhere'\n", budget_ms=20_000)
            livesign.signal(signal.SIGHUP)
            time.sleep(0.002)
        assert number % 2
        livesign.signal(signal.SIGHUP)
        livesign.line_with("reloaded")
        stage.open(client, 3)
        client.close()
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0
        load.join(10)
        assert "Traceback" not in livesign.text
    assert not stage.shown()


def test_sighup_during_a_drain_is_answered_and_does_not_hurry_it(stage: Stage) -> None:
    with stage.ready() as (livesign, client):
        stage.open(client, 3)
        client.close()
        stage.chat.rules({"latency_ms": 150})
        livesign.signal(signal.SIGTERM)
        livesign.line_with("stopping")
        livesign.signal(signal.SIGHUP)
        livesign.line_with("SIGHUP: livesign is stopping")
        assert livesign.exit_code() == 0, livesign.text
    assert not stage.shown()
