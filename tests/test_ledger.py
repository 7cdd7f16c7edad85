"""The ledger: the same answers in memory and on disk, and what SQLite adds."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec
import pytest

from actors import ledger as ledger_module
from actors.ledger import Contents, LearnedRow, Ledger, MemoryLedger, Place, RefusedRow, RestRow, RunRow
from actors.ledger_sqlite import LedgerLockedError, SqliteLedger
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.pacing import ScopeKey
from actors.presence.policy import Policy
from actors.presence.terms import RunInfo, RunKey

KEY = RunKey("a", "c", "m1")
PLACE = Place("a", "c", "m1")
SCOPE = ("a", *ScopeKey("route", "marks", "c"))
LEARNED = LearnedRow(Learned(30_000, 300, -5, 5_000), 1_700_000_000_500)
REFUSED = RefusedRow(((30_000, 7), (5_000, 1)), 1_700_000_000_700)


class Hub:
    """The runtime's thread: runs the calls handed to it when told to."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def __call__(self, call: Callable[[], None]) -> None:
        self.calls.put(call)

    def run_until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.calls.get(timeout=10)()

    def run(self) -> None:
        try:
            while True:
                self.calls.get(timeout=0.05)()
        except Empty:
            pass


def row(key: RunKey = KEY) -> RunRow:
    info = RunInfo(key, "m1", "t", Policy(), ack_allowed=True, status_allowed=False, forum=True)
    return RunRow(info, 30_000, True, direct=False, mentioned=True, kind="audio")


def fill(ledger: Ledger) -> None:
    ledger.opened(row())
    ledger.opened(row(RunKey("a", "c", "m2")))
    ledger.marks(PLACE, {"👀": Mark("h1"), "🤔": Mark("h2", False), "🔥": Mark(None, False, "key-1")})
    ledger.marks(Place("a", "c", "m9"), {"👀": Mark()})
    ledger.marks(Place("a", "c", "m9"), {})
    ledger.rest(PLACE, RestRow("m1", ("👍", "👌")))
    ledger.rest(Place("a", "c", "m9"), RestRow("m9", ("👍",)))
    ledger.rest(Place("a", "c", "m9"), None)
    ledger.typing(Place("a", "c", None), True)
    ledger.typing(Place("a", "c", "t"), True)
    ledger.typing(Place("a", "c", "t"), False)
    ledger.ended(RunKey("a", "c", "m2"), "done", "why", 1_700_000_000_000)
    for number in range(3):
        ledger.used("s", f"e{number}")
    ledger.learned(SCOPE, LearnedRow(Learned(1, 2, 3, 4), 1_700_000_000_000))
    ledger.learned(SCOPE, LEARNED)
    ledger.refused("a", REFUSED)


EXPECTED = Contents(
    runs={KEY: row()},
    marks={PLACE: {"👀": Mark("h1"), "🤔": Mark("h2", False), "🔥": Mark(None, False, "key-1")}},
    rests={PLACE: RestRow("m1", ("👍", "👌"))},
    typing={Place("a", "c", None)},
    ended={RunKey("a", "c", "m2"): ("done", "why", 1_700_000_000_000)},
    used={"s": {"e0": None, "e1": None, "e2": None}},
    learned={SCOPE: LEARNED},
    refused={"a": REFUSED},
)


def test_the_twin_in_memory_gives_back_what_it_was_told() -> None:
    ledger = MemoryLedger()
    fill(ledger)
    assert ledger.load() == EXPECTED
    assert ledger.rows == 4


def test_the_ledger_on_disk_gives_it_back_to_the_next_process(tmp_path: Path) -> None:
    first = SqliteLedger(tmp_path, Hub())
    fill(first)
    assert first.load() == EXPECTED
    first.close()
    second = SqliteLedger(tmp_path, Hub())
    assert second.load() == EXPECTED
    assert list(second.load().used["s"]) == ["e0", "e1", "e2"]
    second.close()


def test_a_file_of_the_version_before_is_read_and_goes_on_as_one_of_this(tmp_path: Path) -> None:
    SqliteLedger(tmp_path, Hub()).close()
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        other.execute("DROP TABLE rests")
        other.execute(
            "INSERT INTO marks VALUES ('a', 'c', 'm1', ?)", (msgspec.msgpack.encode({"👀": "h1", "🤔": None}),)
        )
        other.execute("PRAGMA user_version=1")
    other.close()
    ledger = SqliteLedger(tmp_path, Hub())
    assert ledger.load().marks == {PLACE: {"👀": Mark("h1"), "🤔": Mark()}}
    ledger.rest(PLACE, RestRow("m1", ("👍",)))
    ledger.close()
    again = SqliteLedger(tmp_path, Hub())
    assert again.load().rests == {PLACE: RestRow("m1", ("👍",))}
    again.close()
    with sqlite3.connect(tmp_path / "ledger.db") as other:
        assert other.execute("PRAGMA user_version").fetchone() == (2,)
    other.close()


def test_an_ack_waits_for_the_commit_of_what_was_told_before_it(tmp_path: Path) -> None:
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    told: list[str] = []
    ledger.after_commit(lambda: told.append("nothing to wait for"))
    assert told == ["nothing to wait for"]
    ledger.opened(row())
    ledger.after_commit(lambda: told.append("committed"))
    assert told == ["nothing to wait for"]
    hub.run_until(lambda: len(told) == 2)
    with sqlite3.connect(ledger.path) as other:
        assert other.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    other.close()
    ledger.close()


def test_changes_while_the_writer_is_busy_become_one_batch(tmp_path: Path) -> None:
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    done: list[int] = []
    for number in range(1_000):
        ledger.opened(row(RunKey("a", "c", f"m{number}")))
        ledger.marks(PLACE, {"👀": Mark(str(number))})
        ledger.after_commit(lambda number=number: done.append(number))  # type: ignore[misc]
    hub.run_until(lambda: len(done) == 1_000)
    assert done == list(range(1_000))
    assert ledger.commits <= 2
    ledger.close()


def test_close_writes_what_is_left_and_answers_who_waits(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, Hub())
    told: list[int] = []
    ledger.opened(row())
    ledger.after_commit(lambda: told.append(1))
    ledger.close()
    ledger.close()
    assert told == [1]
    again = SqliteLedger(tmp_path, Hub())
    assert again.rows == 1
    again.close()


def test_a_ledger_that_a_living_process_holds_is_refused_with_what_to_do(tmp_path: Path) -> None:
    first = SqliteLedger(tmp_path, Hub())
    with pytest.raises(LedgerLockedError, match=r"in use by another livesign: stop that one, or set ledger\.path"):
        SqliteLedger(tmp_path, Hub())
    first.close()
    SqliteLedger(tmp_path, Hub()).close()


def test_a_disk_that_fails_turns_it_into_its_twin_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("actors.ledger_file.commit", full)
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    told: list[int] = []
    ledger.opened(row())
    ledger.after_commit(lambda: told.append(1))
    hub.run_until(lambda: ledger.degraded)
    ledger.opened(row(RunKey("a", "c", "m2")))
    ledger.after_commit(lambda: told.append(2))
    assert told == [1, 2]
    assert ledger.rows == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "going on without it" in caplog.text
    ledger.close()


def test_a_damaged_file_is_put_aside_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "ledger.db").write_bytes(b"this is no database, and longer than a header of one " * 40)
    ledger = SqliteLedger(tmp_path, Hub())
    assert ledger.load() == Contents()
    assert (tmp_path / "ledger.damaged").exists()
    assert "put aside" in caplog.text
    ledger.opened(row())
    ledger.close()
    again = SqliteLedger(tmp_path, Hub())
    assert again.rows == 1
    again.close()


def test_the_folder_is_private(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "new" / "place", Hub())
    assert (tmp_path / "new" / "place").stat().st_mode & 0o077 == 0
    ledger.close()


def test_what_is_remembered_is_bounded_in_memory_and_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "ENDED_MAX", 5)
    monkeypatch.setattr(ledger_module, "USED_IDS_MAX", 3)
    monkeypatch.setattr(ledger_module, "USED_SESSIONS_MAX", 2)
    hub = Hub()
    ledger = SqliteLedger(tmp_path, hub)
    for number in range(20):
        ledger.ended(RunKey("a", "c", f"m{number}"), "done", None, number)
        for session in ("s1", "s2", f"t{number}"):
            ledger.used(session, f"e{number}")
        hub.run()
    ledger.close()
    again = SqliteLedger(tmp_path, Hub())
    held = again.load()
    assert [key.run for key in held.ended] == [f"m{number}" for number in range(15, 20)]
    assert len(held.used) <= 2
    assert all(len(ids) <= 3 for ids in held.used.values())
    again.close()


def test_what_limits_taught_is_bounded_and_goes_when_it_says_nothing_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "LEARNED_MAX", 50)
    ledger = SqliteLedger(tmp_path, Hub())
    most = 0
    for number in range(1_000):
        lesson = Learned(60_000 if number % 7 else 604_800_000, 300, 60_000, 5_000)
        scope = ("a", *ScopeKey("conversation", "", f"c{number}"))
        ledger.learned(scope, LearnedRow(lesson, number * 60_000))
        most = max(most, len(ledger.load().learned))
    assert most == 50
    for number in range(200):
        scope = ("a", *ScopeKey("conversation", "", f"late{number % 3}"))
        ledger.learned(scope, LearnedRow(Learned(0, 300, 0, 5_000), 2_000_000_000 + number))
    assert len(ledger.load().learned) == 3
    ledger.close()
    again = SqliteLedger(tmp_path, Hub())
    assert again.load() == ledger.load()
    again.close()


CHILD = """
import sys, time
from pathlib import Path
from actors.ledger_sqlite import SqliteLedger
from tests.test_ledger import Hub, row
from actors.presence.terms import RunKey
hub = Hub()
ledger = SqliteLedger(sys.argv[1], hub)
number = 0
while True:
    ledger.opened(row(RunKey("a", "c", f"m{number}")))
    acked = []
    ledger.after_commit(lambda: acked.append(1))
    hub.run_until(lambda: acked)
    print(number, flush=True)
    number += 1
"""


@pytest.mark.real
def test_what_was_committed_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    for attempt in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / str(attempt))], cwd=root, stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(0.01 + 0.017 * attempt)
        child.kill()
        acked = [int(line) for line in child.stdout.read().split()[:-1]]
        child.stdout.close()
        child.wait()
        ledger = SqliteLedger(tmp_path / str(attempt), Hub())
        held = {key.run for key in ledger.load().runs}
        assert {f"m{number}" for number in acked} <= held
        ledger.close()
