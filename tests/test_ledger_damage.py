"""A ledger's file that makes no sense: put aside, said once, and a new one takes its place."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from actors.ledger import Contents
from actors.ledger_sqlite import SqliteLedger
from tests.failing_disk import Told, fail_and_recover, quick
from tests.test_ledger import Hub, fill

__all__ = ["quick"]


def spoil(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as other:
        other.execute(statement)
    other.close()


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "no database": lambda path: path.write_bytes(b"this is no database, and longer than a header of one " * 400),
    "cut off": lambda path: os.truncate(path, 5_000),
    "holes": lambda path: path.write_bytes(path.read_bytes()[:4_096] + b"\xa5" * (path.stat().st_size - 4_096)),
    "of a later version": lambda path: spoil(path, "PRAGMA user_version=77"),
    **{
        f"rubbish in {table}": lambda path, table=table: spoil(path, f"UPDATE {table} SET row=x'c1ff'")  # type: ignore[misc]
        for table in ("runs", "marks", "rests", "ended", "used", "learned", "refused")
    },
    **{
        f"something else in {table}": lambda path, table=table: spoil(path, f"UPDATE {table} SET row=x'9301c0c0'")  # type: ignore[misc]
        for table in ("runs", "marks", "rests", "ended", "used", "learned", "refused")
    },
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_put_aside_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    before = SqliteLedger(tmp_path, Hub())
    fill(before)
    before.close()
    DAMAGES[damage](before.path)
    told = Told(tmp_path, caplog)
    assert told.ledger.load() == Contents()
    assert (tmp_path / "ledger.damaged").exists()
    told.ack(0)
    told.next()
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "put aside as ledger.damaged" in record.getMessage()


def test_a_file_that_is_damaged_under_a_running_process_is_put_aside_and_written_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(tmp_path, caplog)

    def damage() -> None:
        spoil(told.ledger.path, "DELETE FROM typing")  # by another program: what the ledger has in its cache is void
        with sqlite3.connect(told.ledger.path) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        other.close()
        DAMAGES["holes"](told.ledger.path)

    fail_and_recover(told, damage, lambda: None)
    assert (tmp_path / "ledger.damaged").exists()
    assert [record.getMessage() for record in caplog.records if "put aside as ledger.damaged" in record.getMessage()]
    assert len(caplog.records) == 3
