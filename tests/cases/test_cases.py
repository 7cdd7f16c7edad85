"""Every case of this folder passes, and the list of those left out is what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cases import FOLDER, own_files
from tests.cases.case import read_file
from tests.cases.runner import differences

pytestmark = pytest.mark.filterwarnings("error")

CASES = 116
LEFT_OUT_AT_MOST = 0.15


def excluded() -> list[Mapping[str, str]]:
    rows: list[Mapping[str, str]] = json.loads((FOLDER / "excluded.json").read_text("utf-8"))["excluded"]
    return rows


@pytest.mark.parametrize("path", own_files(), ids=lambda path: path.stem)
def test_a_case_that_people_met_does_not_happen_here(path: Path) -> None:
    (case,) = read_file(path)
    assert case.id == path.stem
    assert list(differences(case)) == []


def test_every_case_is_here_or_left_out_for_a_reason() -> None:
    here = {path.stem for path in own_files()}
    left_out = {row["id"] for row in excluded()}
    assert not here & left_out
    assert len(here | left_out) == CASES
    assert len(left_out) <= LEFT_OUT_AT_MOST * CASES
    assert all(row["decided_by"] and row["words"] and row["reason"] for row in excluded())
