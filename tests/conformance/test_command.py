"""The command that replays any files: ``python -m tests.conformance``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.__main__ import main

DATA = Path(__file__).parent / "data"


def test_all_files_of_the_corpus_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(path) for path in sorted(DATA.iterdir())]) == 0
    assert capsys.readouterr().out.splitlines() == ["14814 passed, 0 failed"]


def test_failing_ids_are_named_and_the_exit_code_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = (DATA / "status_reaction.jsonl").read_text(encoding="utf-8").splitlines()[:3]
    wrong = {**json.loads(lines[1]), "visible_end": []}
    broken = {"id": "odd", "config": {"initialEmoji": "x"}, "script": [[0, "unheard of"]]}
    file = tmp_path / "some.jsonl"
    file.write_text("\n".join([lines[0], json.dumps(wrong), "", json.dumps(broken)]), encoding="utf-8")
    assert main([str(file)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "1 passed, 2 failed sr-0002 odd"
    assert "visible at the end" in out[0]
    assert "KeyError" in out[1]


def test_typing_traces_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (DATA / "typing.jsonl").read_text(encoding="utf-8").splitlines()[0]
    file = tmp_path / "mixed.jsonl"
    file.write_text(line, encoding="utf-8")
    assert main([str(file)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


@pytest.mark.parametrize("files", [[], ["no such file.jsonl"], [__file__]])
def test_what_cannot_be_read_is_exit_code_two(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(files) == 2
    assert capsys.readouterr().err
