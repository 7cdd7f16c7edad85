"""The recorded truth tables, every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tables import replay_table

DATA = Path(__file__).parent / "data"


def table(name: str) -> Any:
    return json.loads((DATA / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("ack_gate.json", 13_824),
        ("ack_gate_whatsapp.json", 256),
        ("ack_remove_after_reply.json", 48),
        ("tool_emoji.json", 207),
    ],
)
def test_every_row(name: str, rows: int) -> None:
    results = list(replay_table(table(name)))
    assert len(results) == rows
    assert [row for row, problems in results if problems] == []


def test_a_wrong_row_is_noticed() -> None:
    gate = table("ack_gate_whatsapp.json")
    gate["results"] = "1" + gate["results"][1:]
    assert [bool(problems) for _, problems in replay_table(gate)].count(True) == 1


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ValueError, match="known"):
        list(replay_table({"something": "else"}))
