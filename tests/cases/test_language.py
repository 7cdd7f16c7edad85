"""The language of cases: each kind of expectation passes where it holds and fails where it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cases.__main__ import main
from tests.cases.case import Case
from tests.cases.runner import BARE_EXPECTATIONS, EXPECTATIONS, differences, is_test
from tests.cases.words import CONTROLS, EVENTS, NOTHING, QUESTIONS

pytestmark = pytest.mark.filterwarnings("error")

RUN: list[Any] = [[0, "message", {"m": "m1", "chat": "T"}], [100, "begin", {"m": "m1"}], [9_000, "done", {"m": "m1"}]]
BARE: list[Any] = [
    [0, "actor", {"id": "a", "tick_ms": 1_000}],
    [10, "tell_many", {"to": "a", "count": 200}],
    [10, "stats", {}],
    [20, "ask_many", {"to": "a", "count": 2}],
    [5_500, "await_stop", {"to": "a"}],
]


def failures(expect: Any, script: list[Any] = RUN, **more: Any) -> list[str]:
    case = msgspec.convert({"id": "X", "title": "x", "script": script, "expect": [expect], **more}, Case)
    return list(differences(case))


HOLDS: list[tuple[Any, Any]] = [
    ({"calls": {"op": "typing"}, "at": [0, 4_000, 8_000]}, {"calls": {"op": "typing"}, "at": [0, 4_000]}),
    ({"calls": {"op": "typing"}, "count": 3}, {"calls": {"op": "typing"}, "max": 2}),
    ({"calls": {"op": "typing"}, "gap_min": 4_000}, {"calls": {"op": "typing"}, "gap_min": 4_001}),
    (
        {"calls": {"op": "typing"}, "from": 0, "to": 9_000, "gap_max": 4_000},
        {"calls": {"op": "typing"}, "from": 0, "to": 12_001, "gap_max": 4_000},
    ),
    (
        {"calls": {"op": "typing"}, "per_ms": 4_000, "at_most": 1},
        {"calls": {"op": "typing"}, "per_ms": 4_001, "at_most": 1},
    ),
    ({"calls": {"emoji": "E.done"}, "first": 9_000}, {"calls": {"emoji": "E.done"}, "first": 8_000}),
    ({"calls": {"emoji": []}, "count": 1}, {"calls": {"emoji": []}, "count": 2}),
    ({"calls": {"chat": "T", "thread": None}}, {"calls": {"chat": "T", "thread": "7"}}),
    ({"calls": {"message": ["m1", "m2"], "outcome": "ok"}}, {"calls": {"outcome": "gone"}}),
    ({"no_calls": {"op": "typing"}, "after": 8_000}, {"no_calls": {"op": "typing"}, "from": 8_000}),
    (
        {"order": [{"emoji": "E.queued"}, {"emoji": "E.thinking"}, {"emoji": "E.done"}]},
        {"order": [{"emoji": "E.done"}, {"emoji": "E.queued"}]},
    ),
    ({"marks": "m1", "are": ["E.done"], "at": 9_500}, {"marks": "m1", "are": ["E.done"]}),
    ({"marks": "m1", "to": 9_000, "min": 1}, {"marks": "m1", "min": 1}),
    ({"marks": "m1", "max": 1}, {"marks": "m1", "max": 0}),
    ({"marks": "m1", "never": ["E.error"]}, {"marks": "m1", "never": ["E.done"]}),
    ({"marks": "m1", "once": ["E.done"]}, {"marks": "m1", "once": ["E.error"]}),
    (
        {"marks": "m1", "from": 2_000, "to": 8_000, "always": ["E.thinking"]},
        {"marks": "m1", "from": 500, "to": 8_000, "always": ["E.thinking"]},
    ),
    (
        {"marks": {"message": "m1", "chat": "T"}, "only": ["E.queued", "E.thinking", "E.done"]},
        {"marks": "m1", "only": ["E.queued"]},
    ),
    ({"typing": "T", "from": 0, "to": 9_000}, {"typing": "T", "on": False, "at": 4_500}),
    ({"typing": "T", "on": False, "from": 13_000}, {"typing": "T", "on": False, "from": 12_000}),
    ({"typing": "quiet", "on": False}, {"typing": "quiet"}),
    ({"typing": "T", "to": 14_000, "gap_max": 1_000}, {"typing": "T", "to": 14_001, "gap_max": 1_000}),
    ({"run": "m1", "outcome": "done", "ended": 9_000}, {"run": "m1", "outcome": "error"}),
    ({"run": "m1", "reason": None}, {"run": "m1", "open": True}),
    ({"runs": {"outcome": "done"}, "count": 1}, {"runs": {"outcome": "error"}}),
    ({"answer": 1, "result": "applied"}, {"answer": 1, "result": "late"}),
    ({"replies": {"type": "ack"}, "count": 3}, {"replies": {"type": "state"}}),
    ({"counter": "runs_opened", "is": 1}, {"counter": "late_events"}),
    ({"sum": ["runs", "open_runs"], "is": 1}, {"sum": ["runs", "runs_ended"], "is": 1}),
    ({"rest": True}, {"exit": 0}),
]


@pytest.mark.parametrize(("holds", "fails"), HOLDS, ids=lambda value: json.dumps(value)[:60])
def test_an_expectation_passes_where_it_holds_and_fails_where_it_does_not(holds: Any, fails: Any) -> None:
    assert failures(holds) == []
    assert failures(fails)


def test_what_is_left_over_is_named() -> None:
    assert failures({"rest": ["open_runs"]}, RUN[:2]) == ["left at the end: open_runs 1"]


def test_the_end_of_the_process_has_its_code_and_its_time() -> None:
    script = [*RUN[:2], [3_000, "sigterm", {"grace": 5_000}]]
    assert failures({"exit": 0, "from": 3_000, "to": 3_100}, script) == []
    assert len(failures({"exit": 0, "before": 3_000}, script)) == 1


def test_a_warning_of_the_configuration_is_found_by_its_text() -> None:
    settings = {"emoji.queued": "🦀"}
    assert failures({"warning": "🦀", "count": 1}, settings=settings) == []
    assert len(failures({"warning": "🦀", "count": 0}, settings=settings)) == 1


BARE_HOLDS: list[tuple[Any, Any]] = [
    ({"answered": "ask_many", "count": 2, "to": 20}, {"answered": "all", "count": 3}),
    ({"pending": 0}, {"pending": 1}),
    ({"handled": "a", "count": 202}, {"handled": "a", "max": 201}),
    ({"starts": "a", "count": 1}, {"starts": "a", "min": 2}),
    ({"ticks": "a", "count": 5}, {"ticks": "a", "from": 6_000}),
    ({"returned": "each", "from": 5_500}, {"returned": "each", "after": 5_500}),
    ({"registered": "a", "is": False}, {"registered": "a"}),
    ({"runtime": "armed_timers", "is": 0}, {"runtime": "actor_count", "min": 1}),
    ({"depth": "a", "count": 200}, {"depth": "a", "max": 199}),
    ({"logged": "messages waiting", "count": 1}, {"logged": "messages waiting", "count": 0}),
]


@pytest.mark.parametrize(("holds", "fails"), BARE_HOLDS, ids=lambda value: json.dumps(value)[:60])
def test_the_same_goes_for_bare_actors(holds: Any, fails: Any) -> None:
    assert failures(holds, BARE) == []
    assert failures(fails, BARE)


def test_every_kind_of_expectation_is_tried_here() -> None:
    tried = {word for pair in (*HOLDS, *BARE_HOLDS) for expect in pair for word in expect}
    assert set(EXPECTATIONS) - tried <= {"warning"}
    assert set(BARE_EXPECTATIONS) <= tried


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"expect": []}, "nothing is expected"),
    ({"expect": [{"call": {}}]}, "expect[0] must be an object with exactly one of"),
    ({"expect": [{"calls": {"opp": "set"}}]}, "expect[0]: Object contains unknown field `opp`"),
    ({"expect": [{"calls": {"op": "sett"}}]}, "there is no call 'sett'"),
    ({"expect": [{"marks": "m9", "max": 1}]}, "the script has no turn 'm9'"),
    ({"expect": [{"marks": "m1", "never": ["E.joy"]}]}, "there is no state 'E.joy'"),
    ({"expect": [{"run": "m9", "open": True}]}, "the script has no turn 'm9'"),
    ({"expect": [{"runs": {"outcom": "error"}, "count": 0}]}, "there is no field of a run 'outcom'"),
    ({"expect": [{"replies": {"typ": "ack"}, "count": 0}]}, "there is no field of a reply 'typ'"),
    ({"expect": [{"replies": {"type": "nack"}, "count": 0}]}, "there is no reply 'nack'"),
    ({"expect": [{"replies": {"type": "ack"}, "client": "c9", "count": 0}]}, "there is no client 'c9'"),
    ({"expect": [{"counter": "late_event", "is": 0}]}, "there is no counter 'late_event'"),
    ({"expect": [{"sum": ["runs", "late_event"], "is": 1}]}, "there is no counter 'late_event'"),
    ({"script": BARE, "expect": [{"runtime": "restart", "is": 0}]}, "there is no number of a runtime 'restart'"),
    ({"expect": [{"no_calls": {}, "from": 5_000, "to": 4_999}]}, "expect[0]: the window ends before it begins"),
    ({"expect": [{"no_calls": {}, "after": 5_000, "before": 5_001}]}, "expect[0]: the window ends before it begins"),
    ({"settings": {"speed": 1}}, "there is no setting 'speed'"),
    ({"settings": {"typing.mode": "sometimes"}}, "typing.mode"),
    ({"platform": {"like": "fax"}}, "there is no platform 'fax'"),
    ({"platform": {"rules": [{"op": "dance"}]}}, "there is no call 'dance'"),
    ({"platform": {"rules": [{"outcome": "fine"}]}}, "platform"),
    ({"script": [[0, "bytes", {"hex": "00"}]]}, "name the test that proves it in proved_by"),
    ({"script": [[0, "burst", {"chat": "T"}]]}, "burst lacks count"),
    ({"script": [["0", "begin", {}]]}, "script[0] must be [t_ms, word, arguments]"),
    ({"script": [[0, "crash_actor", {"what": "the moon"}]]}, "there is no actor 'the moon'"),
    (
        {"script": [[0, "message", {"m": "m1"}], [9, "text", {"m": "m1", "repeat": 0, "until": 50}]]},
        "repeat at least 1",
    ),
    ({"script": [[0, "message", {"m": ["m1"]}]]}, "a turn is named by text"),
    ({"proved_by": ["tests/cases/test_language.py::test_nothing"]}, "there is no test"),
]


@pytest.mark.parametrize(("change", "words"), MISTAKES, ids=[words[:40] for _, words in MISTAKES])
def test_a_mistake_in_a_case_is_told_in_words(change: dict[str, Any], words: str) -> None:
    tree = {"id": "X", "title": "x", "script": RUN, "expect": [{"rest": True}], **change}
    (difference, *_) = differences(msgspec.convert(tree, Case))
    assert words in difference


def test_a_test_is_found_by_its_node_id() -> None:
    assert is_test("tests/cases/test_language.py::test_a_test_is_found_by_its_node_id")
    assert is_test("tests/cases/test_language.py::test_a_mistake_in_a_case_is_told_in_words[x]")
    assert not is_test("tests/cases/test_language.py")
    assert not is_test("tests/cases/nowhere.py::test_x")


def test_the_tables_of_words_do_not_overlap() -> None:
    tables = (EVENTS, CONTROLS, QUESTIONS, NOTHING)
    assert len({word for table in tables for word in table}) == sum(map(len, tables))


def test_a_word_of_no_table_is_sent_as_it_is() -> None:
    script = [*RUN[:1], [50, "progress", {"m": "m1"}], [60, "sparkle", {"m": "m1"}], *RUN[1:]]
    assert failures({"answer": 1, "result": "applied"}, script) == []
    assert failures({"answer": 2, "code": "unknown_type"}, script) == []


def test_the_command_names_what_failed_and_ends_with_the_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = {"id": "G", "title": "good", "script": RUN, "expect": [{"rest": True}]}
    bad = good | {"id": "B", "title": "bad", "expect": [{"run": "m1", "outcome": "error"}]}
    file = tmp_path / "cases.json"
    file.write_text(json.dumps([good, bad]))
    assert main([str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "B bad"
    assert "not error" in lines[1]
    assert lines[-2:] == ["failed: B", "1 passed, 1 failed"]
    file.write_text(json.dumps(good))
    assert main([str(file), "--timeline"]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


@pytest.mark.parametrize("text", ["{", "[1]", '{"id": "X"}', '{"id": "X", "title": "x", "scrip": []}'])
def test_a_file_that_is_not_of_the_form_is_refused_with_its_name(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.json"
    file.write_text(text)
    good = tmp_path / "good.json"
    good.write_text(json.dumps({"id": "G", "title": "good", "script": RUN, "expect": [{"rest": True}]}))
    assert main([str(file), str(good)]) == 2
    out, err = capsys.readouterr()
    assert str(file) in err
    assert out.splitlines()[-1] == "1 passed, 1 failed"
