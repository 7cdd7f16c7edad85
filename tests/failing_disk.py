"""A ledger whose disk fails and comes back, for tests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from actors import ledger_file, ledger_writer
from actors.ledger import Contents, Place
from actors.ledger_sqlite import SqliteLedger
from actors.presence.marks import Mark
from actors.presence.terms import RunKey
from tests.test_ledger import Hub, fill, row

__all__ = ["Told", "fail_and_recover", "quick"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries again soon."""
    monkeypatch.setattr(ledger_file, "BUSY_S", 0.02)
    monkeypatch.setattr(ledger_file, "LOOK_S", 0.0)
    monkeypatch.setattr(ledger_writer, "RETRY_S", 0.005)
    monkeypatch.setattr(ledger_writer, "RETRY_MAX_S", 0.02)


class Told:
    """A ledger, the thread it lives in, and what it logs."""

    def __init__(self, path: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "livesign")
        self.hub = Hub()
        self.path = path
        self._caplog = caplog
        self.ledger = SqliteLedger(path, self.hub)

    def ack(self, number: int) -> None:
        """Something is told, and an ack waits for it: it has to come."""
        acked: list[int] = []
        self.ledger.opened(row(RunKey("a", "c", f"n{number}")))
        self.ledger.after_commit(lambda: acked.append(number))
        self.hub.run_until(lambda: bool(acked))

    def recover(self) -> None:
        self.hub.run_until(lambda: not self.ledger.degraded)

    def next(self) -> Contents:
        """End, and look what the next process finds."""
        expected = self.ledger.load()
        self.ledger.close()
        after = SqliteLedger(self.path, Hub())
        held = after.load()
        after.close()
        assert held == expected
        return held

    def check_log(self, why: str) -> None:
        """One warning that says why, and one line that it is over."""
        told = [record.getMessage() for record in self._caplog.records]
        first, *_, last = told
        assert why in first
        assert "going on without it" in first
        assert last.endswith("is written again, and holds everything")
        assert len([text for text in told if "put aside" not in text]) == 2


def fail_and_recover(told: Told, fail: Callable[[], object], mend: Callable[[], object]) -> None:
    """A working ledger fails, and everything is as if it had not."""
    fill(told.ledger)
    told.ack(0)
    fail()
    for number in range(1, 6):
        told.ack(number)
    assert told.ledger.degraded
    told.ledger.marks(Place("a", "c", "m1"), {"🔥": Mark("h2")})
    told.ledger.typing(Place("a", "c", None), False)
    told.ledger.ended(RunKey("a", "c", "n0"), "error", None, 1_700_000_000_001)
    for number in range(5):
        told.ledger.used("s", f"later{number}")
    mend()
    told.recover()
    told.ack(6)
    held = told.next()
    assert {key.run for key in held.runs} == {"m1", *(f"n{number}" for number in range(1, 7))}
    assert list(held.used["s"])[-5:] == [f"later{number}" for number in range(5)]
