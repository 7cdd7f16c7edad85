"""The recorded typing traces, and more of them from a model of the recorded controller."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.typing_model import random_trace, record
from tests.conformance.typing_replay import replay_typing

DATA = Path(__file__).parent / "data"
TRACES = [
    json.loads(line)
    for name in ("typing.jsonl", "typing_latency.jsonl")
    for line in (DATA / name).read_text(encoding="utf-8").splitlines()
]
MODELLED = [trace for trace in TRACES if "timer_overflow" not in trace.get("quirks", ())]
PLAIN = [trace for trace in TRACES if "quirks" not in trace]

Trace = dict[str, Any]


@pytest.mark.parametrize("trace", TRACES, ids=[trace["id"] for trace in TRACES])
def test_the_recorded_trace(trace: Trace) -> None:
    assert replay_typing(trace) == []


def test_the_recordings_are_all_there() -> None:
    assert (len(TRACES), len(PLAIN)) == (177, 119)


# --- the model ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trace", MODELLED, ids=[trace["id"] for trace in MODELLED])
def test_the_model_gives_what_was_recorded(trace: Trace) -> None:
    made = record(trace["config"], trace["script"], trace["end_ms"])
    for part in ("calls", "ends", "timers_end"):
        assert made[part] == trace.get(part, made[part])
    assert made["ttl_at"] == trace.get("ttl_at", [])
    of_the_model = set(trace.get("quirks", [])) - {"stale_failure_counts", "ttl_dropped_while_visible"}
    assert set(made["quirks"]) == of_the_model


@pytest.mark.parametrize("block", range(20))
def test_random_traces_of_the_model(block: int) -> None:
    plain = 0
    for seed in range(block * 50, block * 50 + 50):
        trace = random_trace(seed)
        plain += not trace["quirks"]
        assert replay_typing(trace) == [], trace
    assert plain > 20


# --- the replay notices what is wrong -----------------------------------------------------------------------


def drop_last_call(trace: Trace) -> None:
    trace["calls"].pop()


def shift_a_call(trace: Trace) -> None:
    trace["calls"][-1][0] += 1


def forget_the_ttl(trace: Trace) -> None:
    trace["ttl_at"] = [1] if "ttl_at" not in trace else []


def leave_a_timer(trace: Trace) -> None:
    trace["timers_end"] += 1


@pytest.mark.parametrize("spoil", [drop_last_call, shift_a_call, forget_the_ttl, leave_a_timer])
def test_a_recording_that_differs_fails(spoil: Callable[[Trace], None]) -> None:
    for trace in PLAIN:
        if trace["calls"]:
            spoiled = copy.deepcopy(trace)
            spoil(spoiled)
            assert replay_typing(spoiled) != []


def test_a_trace_with_quirks_is_held_to_its_starts() -> None:
    spoiled = copy.deepcopy(next(trace for trace in TRACES if trace["id"] == "tyl-0003"))
    spoiled["calls"][1][0] += 5
    assert replay_typing(spoiled) != []
