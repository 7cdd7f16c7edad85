"""SIGTERM while the ledger's disk is full: the end comes in time, and nobody is told that a ledger remembers what it does not."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ChatService, RawClient, chat_service, eventually
from tests.end_to_end.signal_stage import Stage

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def service() -> Iterator[ChatService]:
    with chat_service() as running:
        yield running


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The ledger's folder, a small file system of its own."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "livesign", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system of its own can be made by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
def stage(tmp_path: Path, service: ChatService) -> Stage:
    return Stage(tmp_path, service)


def degraded(client: RawClient) -> bool:
    counters: dict[str, int] = client.send(type="stats", id=os.urandom(8).hex())["counters"]
    assert client.receive()["type"] == "ack"
    return counters["ledger_degraded"] == 1


def fill(stage: Stage, disk: Path, client: RawClient) -> None:
    """Nothing more goes onto the disk, and livesign has noticed."""
    with (disk / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
        while file.write(b"x" * 512):
            pass
    opened = iter(range(3, 100_000))

    def noticed() -> bool:
        for _ in range(50):
            client.send(type="thinking", **stage.run(next(opened)))
        return degraded(client)

    eventually(noticed, "the disk is found full")


def test_what_the_platform_takes_back_is_a_clean_end(stage: Stage, disk: Path) -> None:
    stage.write(budget_ms=20_000)
    with stage.ready() as (livesign, client):
        stage.open(client, 3)
        fill(stage, disk, client)
        client.close()
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0, livesign.text
        assert livesign.text.count("No space left") + livesign.text.count("full") >= 1
        assert "Traceback" not in livesign.text
    assert not stage.shown()


def test_what_stays_is_not_said_to_be_remembered(stage: Stage, disk: Path) -> None:
    with stage.ready() as (livesign, client):
        stage.open(client, 3)
        fill(stage, disk, client)
        client.close()
        stage.chat.rules({"outcome": "hang"})
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 1
        assert "may still show; no ledger on disk remembers them" in livesign.text
        assert "the next start on this ledger" not in livesign.text
        assert "Traceback" not in livesign.text
    assert stage.shown()


def test_room_that_comes_back_in_time_is_used_and_the_next_start_takes_everything_back(
    stage: Stage, disk: Path
) -> None:
    with stage.ready() as (livesign, client):
        stage.open(client, 3)
        fill(stage, disk, client)
        stage.chat.rules({"outcome": "hang"})
        (disk / "ballast").unlink()
        eventually(lambda: not degraded(client), "the ledger is well again")
        client.close()
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 1
        assert "the next start on this ledger takes them back" in livesign.text
    assert stage.shown() <= stage.remembered()
    stage.chat.rules()
    with stage.ready() as (heir, _):
        eventually(lambda: not stage.shown(), "nothing shows")
        heir.signal(signal.SIGTERM)
        assert heir.exit_code() == 0, heir.text
