"""The ledger on disks that fail: nobody waits, one warning, and everything is written once the disk is well again."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import ledger_file
from actors.ledger import Contents, Place
from actors.ledger_sqlite import SqliteLedger
from actors.ledger_tables import commit as write
from actors.presence.marks import Mark
from tests.failing_disk import Told, fail_and_recover, quick
from tests.test_ledger import EXPECTED, Hub, fill, row

__all__ = ["quick"]

NOBODY = 65_534


@pytest.fixture
def ordinary() -> Iterator[Path]:
    """A folder of a user whom the system's permissions hold back, which is who we are meanwhile."""
    folder = Path(tempfile.mkdtemp())
    root = os.geteuid() == 0
    if root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if root:
            os.seteuid(0)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o700)
        shutil.rmtree(folder)


# --- held by another program ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE"])
def test_a_file_that_another_program_holds_is_waited_for_and_never_put_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    told = Told(tmp_path, caplog)
    other = sqlite3.connect(told.ledger.path, isolation_level=None)
    fail_and_recover(told, lambda: other.execute(f"BEGIN {how}"), lambda: other.execute("ROLLBACK"))
    other.close()
    told.check_log("locked")
    assert not list(tmp_path.glob("*.damaged"))


def test_a_lock_that_is_short_is_only_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "BUSY_S", 10.0)
    told = Told(tmp_path, caplog)
    told.ack(0)
    other = sqlite3.connect(told.ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    acked: list[int] = []
    told.ledger.opened(row())
    told.ledger.after_commit(lambda: acked.append(1))
    told.hub.run()
    assert not acked
    other.execute("ROLLBACK")
    other.close()
    told.hub.run_until(lambda: bool(acked))
    assert not told.ledger.degraded
    assert not caplog.records
    told.next()


@pytest.mark.parametrize("how", ["IMMEDIATE", "EXCLUSIVE", "alone"])
def test_what_an_earlier_process_has_left_in_a_held_file_is_found_when_it_is_free(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    before = SqliteLedger(tmp_path, Hub())
    fill(before)
    before.close()
    other = sqlite3.connect(before.path, isolation_level=None)
    if how == "alone":
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("DELETE FROM runs WHERE run='nobody'")
        other.execute("COMMIT")
    else:
        other.execute(f"BEGIN {how}")
    told = Told(tmp_path, caplog)
    found: list[Contents] = []
    told.ledger.on_found = found.append
    told.ack(0)
    told.ledger.marks(Place("a", "c", "m1"), {"🤔": Mark(), "🔥": Mark()})
    told.ledger.used("s", "e1")
    other.execute("ROLLBACK") if other.in_transaction else None
    other.close()
    if how == "alone":
        told.recover()
        assert [each.runs for each in found] == [EXPECTED.runs]
        assert found[0].marks == {Place("a", "c", "m1"): {"👀": Mark("h1")}}
        assert found[0].typing == EXPECTED.typing
        assert found[0].ended == EXPECTED.ended
        assert found[0].learned == EXPECTED.learned
        told.check_log("locked")
    told.ack(1)
    told.recover()
    held = told.next()
    assert {key.run for key in held.runs} == {"m1", "n0", "n1"}
    assert held.marks[Place("a", "c", "m1")].keys() >= {"🤔", "🔥"}
    assert held.used["s"].keys() == {"e0", "e1", "e2"}
    assert not list(tmp_path.glob("*.damaged"))


# --- a disk that takes nothing ---------------------------------------------------------------------------------------------


def test_a_full_disk(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "livesign", tmp_path], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a small file system of its own can be made by root only")
    try:
        told = Told(tmp_path / "state", caplog)
        ballast = tmp_path / "ballast"

        def fill_up() -> None:
            with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
                while file.write(b"x" * 4_096):
                    pass
            told.ledger.marks(Place("a", "c", "large"), {"👀": Mark("h" * 20_000)})

        fail_and_recover(told, fill_up, ballast.unlink)
        told.check_log("full")
    finally:
        subprocess.run(["umount", "--lazy", tmp_path], check=True)


def test_a_file_that_may_not_grow(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = [1_000_000]

    def commit(connection: sqlite3.Connection, *arguments: Any, **options: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={most[0]}")
        write(connection, *arguments, **options)

    monkeypatch.setattr("actors.ledger_file.commit", commit)
    told = Told(tmp_path, caplog)

    def fill_up() -> None:
        most[0] = 1
        told.ledger.marks(Place("a", "c", "large"), {"👀": Mark("h" * 200_000)})

    fail_and_recover(told, fill_up, lambda: most.__setitem__(0, 1_000_000))
    told.check_log("full")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_be_read_only_is_written_once_that_is_over(
    ordinary: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    state = ordinary / "state"
    before = SqliteLedger(state, Hub())
    fill(before)
    before.close()
    target = before.path if what == "file" else state
    target.chmod(0o400 if what == "file" else 0o500)
    told = Told(state, caplog)
    told.ack(0)
    told.ack(1)
    assert told.ledger.degraded
    target.chmod(0o700)
    told.recover()
    told.ack(2)
    held = told.next()
    assert {key.run for key in held.runs} == {"m1", "n0", "n1", "n2"}
    assert held.marks == EXPECTED.marks
    told.check_log("")


def test_a_folder_that_cannot_be_made_is_made_once_it_can(ordinary: Path, caplog: pytest.LogCaptureFixture) -> None:
    ordinary.chmod(0o500)
    told = Told(ordinary / "some" / "where", caplog)
    told.ack(0)
    assert told.ledger.degraded
    ordinary.chmod(0o700)
    told.recover()
    told.next()
    told.check_log("Permission denied")


# --- deleted -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["ledger.db", "lock", ".", "replaced"])
def test_what_is_deleted_under_a_running_process_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    state = tmp_path / "state"
    told = Told(state, caplog)

    def delete() -> None:
        if what == ".":
            shutil.rmtree(state)
        elif what == "replaced":
            shutil.move(state, tmp_path / "old")
            shutil.copytree(tmp_path / "old", state)
        else:
            (state / what).unlink()

    fail_and_recover(told, delete, lambda: None)
    told.check_log("it has been deleted")


def test_a_folder_that_another_process_has_taken_meanwhile_is_left_to_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    told = Told(state, caplog)
    told.ack(0)
    shutil.rmtree(state)
    other = SqliteLedger(state, Hub())
    other.opened(row())
    told.ack(1)
    told.hub.run()
    assert told.ledger.degraded
    other.close()
    told.recover()
    told.next()
