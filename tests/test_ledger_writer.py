"""The thread that writes the ledger: whatever happens to it, nobody waits for ever, and it goes on trying."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from gevent import GreenletExit

from actors import ledger_sqlite, ledger_writer
from actors.ledger import LearnedRow, Place
from actors.ledger_file import LedgerFile
from actors.ledger_sqlite import LedgerLockedError, SqliteLedger
from actors.ledger_tables import commit as write
from actors.ledger_writer import LedgerWriter
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.terms import RunKey
from tests.failing_disk import Told, fail_and_recover, quick
from tests.test_ledger import Hub, row

__all__ = ["quick"]

FAULTS = [
    sqlite3.OperationalError("disk I/O error"), sqlite3.IntegrityError("of the code"), OSError(errno.EIO, "no disk"),
    MemoryError(), RuntimeError("a bug"), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
    SystemExit(1), KeyboardInterrupt(), GreenletExit(), BaseException(),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: type(fault).__name__)
def test_whatever_goes_wrong_in_the_writer_nobody_waits_for_ever(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    broken: list[BaseException] = []

    def commit(*arguments: Any, **options: Any) -> None:
        if broken:
            raise broken[0]
        write(*arguments, **options)

    monkeypatch.setattr("actors.ledger_file.commit", commit)
    told = Told(tmp_path, caplog)
    fail_and_recover(told, lambda: broken.append(fault), broken.clear)
    told.check_log(str(fault) or type(fault).__name__)


def test_one_who_waits_and_fails_does_not_keep_the_others_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told(tmp_path, caplog)
    done: list[int] = []
    told.ledger.opened(row())
    for number in range(3):
        told.ledger.after_commit(lambda number=number: done.append(1 // number))  # type: ignore[misc]
    told.hub.run_until(lambda: len(done) == 2)
    told.ledger.close()


def test_who_has_told_nothing_new_waits_for_what_is_being_written_and_no_longer(tmp_path: Path) -> None:
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    done: list[int] = []
    ledger.opened(row())
    hub.calls.get(timeout=10)()  # it is being written
    ledger.after_commit(lambda: done.append(1))
    hub.run_until(lambda: bool(done))
    ledger.close()


def test_a_disk_that_hangs_is_not_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, caplog)
    told.ack(0)
    hung = ledger_writer._allocate_lock()

    def commit(*arguments: Any, **options: Any) -> None:
        with hung:
            write(*arguments, **options)

    monkeypatch.setattr("actors.ledger_file.commit", commit)
    done: list[int] = []
    with hung:
        told.ledger.opened(row())
        told.ledger.after_commit(lambda: done.append(1))
        told.hub.calls.get(timeout=10)()
        told.ledger.after_commit(lambda: done.append(2))
        assert not done
        monkeypatch.setattr(ledger_sqlite, "SLOW_S", -1.0)
        told.ledger.after_commit(lambda: done.append(3))
        assert done == [1, 2, 3] or done == [2, 1, 3]
        told.ledger.opened(row(RunKey("a", "c", "meanwhile")))
    monkeypatch.setattr(ledger_sqlite, "SLOW_S", 10.0)
    told.recover()
    assert RunKey("a", "c", "meanwhile") in told.next().runs
    told.check_log("no answer for")


@pytest.mark.parametrize(("every_s", "slept"), [(-1.0, 3), (60.0, 0)])
def test_a_hub_that_is_never_idle_leaves_the_interpreter_to_the_writer_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every_s: float, slept: int
) -> None:
    sleeps: list[float] = []
    monkeypatch.setattr(ledger_sqlite, "native_sleep", sleeps.append)
    monkeypatch.setattr(ledger_sqlite, "YIELD_EVERY_S", every_s)
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    done: list[int] = []
    ledger.after_commit(lambda: done.append(0))
    ledger.opened(row())
    ledger.after_commit(lambda: done.append(1))
    assert not sleeps  # nothing is being written
    hub.calls.get(timeout=10)()
    for number in range(2, 5):
        ledger.after_commit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert len(sleeps) == slept
    hub.run_until(lambda: len(done) == 5)
    ledger.close()


def test_an_end_waits_for_a_disk_that_hangs_only_so_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Told(tmp_path, caplog)
    told.ack(0)
    hung = ledger_writer._allocate_lock()

    def commit(*_: Any, **__: Any) -> None:
        with hung:
            pass

    monkeypatch.setattr("actors.ledger_file.commit", commit)
    monkeypatch.setattr(ledger_sqlite, "CLOSE_S", 0.01)
    done: list[int] = []
    with hung:
        told.ledger.opened(row())
        told.ledger.after_commit(lambda: done.append(1))
        told.hub.calls.get(timeout=10)()
        told.ledger.close()
    assert done == [1]
    assert "not waiting for it" in caplog.text
    assert told.ledger._writer.end(10)
    told.ledger._file.close()


def test_an_end_while_it_could_not_be_written_tries_once_more(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told(tmp_path, caplog)
    told.ack(0)
    other = sqlite3.connect(told.ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    told.ack(1)
    assert told.ledger.degraded
    other.execute("ROLLBACK")
    other.close()
    told.next()


def test_the_pause_between_two_tries_grows_to_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_writer, "RETRY_S", 1.0)
    monkeypatch.setattr(ledger_writer, "RETRY_MAX_S", 60.0)
    pauses: list[float | None] = []
    tries = 100

    class Batches:
        def get(self, timeout: float | None) -> None:
            pauses.append(timeout)
            if len(pauses) < tries:
                raise ledger_writer._Empty

    blocked = tmp_path / "file"
    blocked.touch()
    writer = LedgerWriter(LedgerFile(blocked / "below"), Hub(), lambda _: None, lambda _: None)
    writer._batches = Batches()
    writer._run(failed=True)
    assert pauses == [1, 2, 4, 8, 16, 32, *[60] * (tries - 6)]


@pytest.mark.parametrize("seed", range(20))
def test_whenever_a_disk_fails_and_comes_back_the_next_process_finds_what_there_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    broken = [False]

    def commit(*arguments: Any, **options: Any) -> None:
        if broken[0]:
            raise OSError(errno.EIO, "no disk")
        write(*arguments, **options)

    monkeypatch.setattr("actors.ledger_file.commit", commit)
    told = Told(tmp_path, caplog)
    ledger, acks = told.ledger, 0
    acked: list[int] = []
    for step in range(400):
        key = RunKey("a", "c", f"m{dice.randrange(20)}")
        place = Place("a", "c", key.run)
        match dice.randrange(8):
            case 0:
                ledger.opened(row(key))
            case 1:
                ledger.ended(key, "done", None, step)
            case 2:
                ledger.marks(place, dict.fromkeys(dice.sample("👀🤔🔥", dice.randrange(4)), Mark()))
            case 3:
                ledger.typing(place, dice.random() < 0.5)
            case 4:
                ledger.used(f"s{dice.randrange(3)}", f"e{step}")
            case 5:
                ledger.learned(("a", "conversation", "", key.run), LearnedRow(Learned(1, 2, 3, step), step))
            case 6:
                ledger.after_commit(lambda step=step: acked.append(step))  # type: ignore[misc]
                acks += 1
            case 7:
                while not told.hub.calls.empty():
                    told.hub.calls.get()()
        if dice.random() < 0.02:
            broken[0] = not broken[0]
    broken[0] = False
    told.ack(0)
    told.recover()
    told.hub.run_until(lambda: len(acked) == acks)
    told.next()


def test_the_child_of_a_fork_lets_the_parents_ledger_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told(tmp_path, caplog)
    told.ack(0)
    child = os.fork()
    if child == 0:
        try:
            told.ledger.abandon()
            told.ledger.opened(row())
            told.ledger.close()
            try:
                SqliteLedger(tmp_path, Hub())
            except LedgerLockedError:
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    told.ack(1)
    assert not told.ledger.degraded
    assert {key.run for key in told.next().runs} == {"n0", "n1"}
