"""The ledgers of embedded processes: which slot is taken, and what of the dead is taken over."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors import slots as module
from actors.ledger import Place
from actors.ledger_sqlite import LedgerLockedError, SqliteLedger
from actors.presence.marks import Mark
from actors.presence.terms import RunKey
from actors.slots import Slots, open_slots
from tests.test_ledger import Hub, row


def name(slots: Slots) -> str:
    return slots.own.path.parent.name


def leave(parent: Path, number: int, account: str) -> None:
    """A dead process had this in its slot."""
    ledger = SqliteLedger(parent / f"ledger-{number}", Hub())
    ledger.opened(row(RunKey(account, "c", f"m{number}")))
    ledger.marks(Place(account, "c", f"m{number}"), {"👀": Mark()})
    ledger.typing(Place(account, "c", None), True)
    ledger.close()


def test_each_process_takes_the_first_slot_that_nobody_holds(tmp_path: Path) -> None:
    three = [open_slots(tmp_path, Hub(), {"a"}) for _ in range(3)]
    assert [name(each) for each in three] == ["ledger-0", "ledger-1", "ledger-2"]
    three[1].own.opened(row())
    three[1].own.close()
    again = open_slots(tmp_path, Hub(), {"a"})
    assert name(again) == "ledger-1"
    assert again.own.rows == 1
    for each in (three[0], three[2], again):
        each.own.close()


def test_what_other_dead_processes_have_left_is_taken_over_and_then_dropped_there(tmp_path: Path) -> None:
    for number in range(3):
        leave(tmp_path, number, "a")
    hub = Hub()
    slots = open_slots(tmp_path, hub, {"a"})
    assert name(slots) == "ledger-0"
    assert {key.run for key in slots.own.load().runs} == {"m0", "m1", "m2"}
    assert len(slots.own.load().marks) == 3
    with pytest.raises(LedgerLockedError):
        SqliteLedger(tmp_path / "ledger-1", Hub())
    slots.settle()
    hub.run_until(lambda: not slots.dead)
    for number in (1, 2):
        ledger = SqliteLedger(tmp_path / f"ledger-{number}", Hub())
        assert ledger.rows == 0
        ledger.close()
    slots.own.close()


def test_what_is_another_bots_is_left_to_it(tmp_path: Path) -> None:
    leave(tmp_path, 0, "other")
    mine = open_slots(tmp_path, Hub(), {"a"})
    assert name(mine) == "ledger-1"
    theirs = open_slots(tmp_path, Hub(), {"other"})
    assert name(theirs) == "ledger-0"
    assert theirs.own.rows == 3
    mine.own.close()
    theirs.own.close()


def test_what_was_not_settled_stays_where_it_is(tmp_path: Path) -> None:
    for number in range(2):
        leave(tmp_path, number, "a")
    slots = open_slots(tmp_path, Hub(), {"a"})
    slots.close_dead()
    slots.own.close()
    ledger = SqliteLedger(tmp_path / "ledger-1", Hub())
    assert ledger.rows == 3
    ledger.close()


def test_slots_are_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOTS", 2)
    leave(tmp_path, 0, "other")
    held = [open_slots(tmp_path, Hub(), {"a"}) for _ in range(2)]
    assert [name(each) for each in held] == ["ledger-1", "ledger-0"]
    with pytest.raises(LedgerLockedError, match="all 2 slots"):
        open_slots(tmp_path, Hub(), {"a"})
    for each in held:
        each.own.close()


def test_what_cannot_be_written_here_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("full")

    for number in range(2):
        leave(tmp_path, number, "a")
    monkeypatch.setattr("actors.ledger_file.commit", full)
    hub = Hub()
    slots = open_slots(tmp_path, hub, {"a"})
    slots.settle()
    hub.run_until(lambda: not slots.dead)
    monkeypatch.undo()
    slots.own.close()
    ledger = SqliteLedger(tmp_path / "ledger-1", Hub())
    assert ledger.rows == 3
    ledger.close()


def test_a_folder_that_takes_nothing_is_said_once_and_used_once_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("actors.ledger_writer.RETRY_S", 0.005)
    parent = tmp_path / "state"
    parent.touch()
    hub = Hub()
    slots = open_slots(parent, hub, {"a"})
    slots.own.opened(row())
    assert slots.own.degraded
    assert len(caplog.records) == 1
    parent.unlink()
    hub.run_until(lambda: not slots.own.degraded)
    slots.own.close()
    again = open_slots(parent, Hub(), {"a"})
    assert again.own.rows == 1
    again.own.close()
