"""What an operator is told of a platform's answers, over whole runs."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from actors.complaints import Complaints
from actors.presence.terms import Command, Op, Outcome, OutcomeKind
from tests.config_trees import account_on
from tests.scenes import play

HOUR_MS = 3_600_000
TS, THREAD = "1700000000.000100", "1699999999.000200"


def texts(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "livesign"]


def test_a_missing_scope_is_told_with_the_scope_that_is_needed_and_once(caplog: pytest.LogCaptureFixture) -> None:
    body = {"ok": False, "error": "missing_scope", "needed": "chat:write", "provided": "reactions:write"}
    rules = [{"op": "typing_start", "response": {"status": 200, "headers": {}, "body": json.dumps(body)}}]
    place: dict[str, Any] = {"conversation": "C", "thread": THREAD}
    steps = [
        [minute * 60_000 + after_ms, {"type": kind, "message": f"17000000{minute}.01", "direct": True, **place}]
        for minute in range(50)
        for after_ms, kind in ((0, "received"), (5_000, "done"))
    ]
    config = {"accounts": {"a": account_on("slack")}, "ack": {"scope": "all"}}
    play(*steps, rules=rules, config=config, until_ms=HOUR_MS)
    assert texts(caplog) == [
        "account a: typing calls are refused everywhere: missing_scope needed: chat:write; provided: reactions:write "
        "(told once an hour)"
    ]


def heard(*outcomes: tuple[int, Outcome], op: Op = Op.SET) -> None:
    complaints = Complaints("a")
    for at_ms, outcome in outcomes:
        complaints.hear(Command(op, "c", None, "m", "👀"), outcome, at_ms)


def test_a_complaint_is_told_again_after_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    refused = Outcome(OutcomeKind.FORBIDDEN, detail="403 kicked")
    heard((0, refused), (HOUR_MS - 1, refused), (HOUR_MS, refused))
    assert texts(caplog) == ["account a: marks are refused in c: 403 kicked (told once an hour)"] * 2


def test_what_is_everyday_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    heard(
        (0, Outcome(OutcomeKind.OK)),
        (0, Outcome(OutcomeKind.GONE)),
        (0, Outcome(OutcomeKind.INVALID_REACTION)),
        (0, Outcome(OutcomeKind.TRANSIENT)),
        (0, Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=59_999)),
        (0, Outcome(OutcomeKind.RATE_LIMITED)),
        (0, Outcome(OutcomeKind.FORBIDDEN, scope="message")),
    )
    assert texts(caplog) == []


def test_long_limits_and_faults_of_ours_are_told_on_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        heard(
            (0, Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=HOUR_MS, detail="131048")),
            (0, Outcome(OutcomeKind.BAD_REQUEST, detail="x\n" + "y" * 900)),
        )
    first, second = texts(caplog)
    assert first == "account a: marks have to wait 3600 s in c: 131048 (told once an hour)"
    assert second.startswith("account a: marks are not understood in c: x yyy")
    assert "\n" not in second
    assert len(second) < 600
