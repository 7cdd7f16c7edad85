"""Our status machine and lane against the recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.status_model import StatusModel
from tests.conformance.status_player import play
from tests.conformance.status_replay import replay_status
from tests.conformance.status_scripts import random_trace

DATA = Path(__file__).parent / "data"
FILES = ("status_reaction.jsonl", "status_reaction_faults.jsonl")
TRACES: list[dict[str, Any]] = [
    json.loads(line) for file in FILES for line in (DATA / file).read_text(encoding="utf-8").splitlines()
]
BY_ID = {trace["id"]: trace for trace in TRACES}
EMPTY_EMOJI = "sr-0042"
"""An empty emoji, which our configuration refuses."""


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace["id"])
def test_a_recorded_trace(trace: dict[str, Any]) -> None:
    assert replay_status(trace) == []


def test_every_trace_without_quirks_is_matched_call_by_call() -> None:
    clean = [trace for trace in TRACES if not trace.get("quirks") and trace["id"] != EMPTY_EMOJI]
    assert len(clean) == 147
    for trace in clean:
        played = play(trace)
        assert (played.calls, played.visible) == (trace["calls"], trace["visible_end"]), trace["id"]


def test_a_difference_is_noticed() -> None:
    trace = BY_ID["sr-0001"]
    early = {**trace, "calls": [[5, "set", "👀"], *trace["calls"][1:]]}
    assert replay_status(early) == ["call 0 is [0, 'set', '👀'], recorded was [5, 'set', '👀']"]
    assert replay_status({**trace, "calls": trace["calls"][:-1]}) == ["11 calls, recorded were 10"]
    assert "visible" in replay_status({**trace, "visible_end": []})[0]
    more = {**trace, "calls": trace["calls"][:3], "quirks": ["superseded_sent"]}
    assert replay_status(more) == ["11 calls, recorded were only 3"]


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        # Alternating phases are shown within three debounces.
        ("sr-0011", [[0, "set", "👀"], [2200, "set", "🤔"], [2200, "remove", "👀"]]),
        # Asking for what shows drops what was pending.
        ("sr-0010", [[0, "set", "👀"], [800, "set", "🤔"], [800, "remove", "👀"]]),
        # A clear removes what is there.
        ("sr-0003", [[4500, "remove", "👍"]]),
    ],
)
def test_what_is_done_better(name: str, calls: list[Any]) -> None:
    played = play(BY_ID[name])
    assert [call for call in played.calls if call in calls] == calls


def test_a_slow_platform_gets_the_final_mark_at_once() -> None:
    recorded = BY_ID["srf-0020"]
    ours = next(call for call in play(recorded).calls if call[2] == "👍")
    theirs = next(call for call in recorded["calls"] if call[2] == "👍")
    assert ours[0] < theirs[0] - 10_000


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace["id"])
def test_the_model_of_the_recorded_controller_replays_everything(trace: dict[str, Any]) -> None:
    model = StatusModel(trace)
    model.run()
    assert (model.calls, model.visible) == (trace["calls"], trace["visible_end"])


def test_new_scripts_without_quirks_are_matched_and_the_others_are_held_to_the_invariants() -> None:
    clean = 0
    for seed in range(3_000):
        trace = random_trace(seed)
        model = StatusModel(trace)
        model.run()
        trace |= {"calls": model.calls, "ends": model.ends, "visible_end": model.visible}
        slow_clear = any(row[1] == "clear" for row in trace["script"]) and (
            "latencyMs" in trace["config"] or "faults" in trace["config"]
        )
        if model.met - {"goes ahead"} or slow_clear:
            trace["quirks"] = ["flap_stale"]
        else:
            clean += 1
        assert replay_status(trace) == [], seed
    assert clean > 1_500
