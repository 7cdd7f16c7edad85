"""Short scenarios for tests: one account, one conversation and one message unless said otherwise."""

from __future__ import annotations

from typing import Any

from actors.simulate import Result, run

SANDBOX = {"accounts": {"a": {"platform": "sandbox"}}, "conversation": {"idle_ms": 60_000}}


def event(t_ms: int, kind: str, message: str = "m1", *, client: str = "c1", **fields: Any) -> list[Any]:
    """``[t_ms, {event}, client]``."""
    return [t_ms, {"type": kind, "conversation": "c", "message": message, **fields}, client]


def received(t_ms: int, message: str = "m1", *, client: str = "c1", **fields: Any) -> list[Any]:
    """A message that mentions the bot in a group."""
    return event(t_ms, "received", message, client=client, **{"direct": False, "mentioned": True, **fields})


def play(
    *steps: list[Any],
    config: dict[str, Any] | None = None,
    rules: list[dict[str, Any]] | None = None,
    latency_ms: int = 0,
    until_ms: int = 200_000,
) -> Result:
    """Run the steps; any order of time is kept."""
    return run(
        {
            "config": SANDBOX | (config or {}),
            "events": [list(step) for step in steps],
            "platform": {"latency_ms": latency_ms, "rules": rules or []},
            "until_ms": until_ms,
        }
    )


def calls(result: Result, message: str | None = "m1", conversation: str = "c") -> list[tuple[int, str, str | None]]:
    """(t_ms, op, emoji) of the calls about a message's marks; None: about typing."""
    return [
        (call.t_ms, call.command.op.value, call.command.emoji)
        for call in result.world.calls
        if call.command.conversation == conversation and call.command.message == message
    ]


def typing(result: Result, conversation: str = "c") -> list[tuple[int, str]]:
    """(t_ms, op) of the typing calls of a conversation."""
    return [(t_ms, op.removeprefix("typing_")) for t_ms, op, _ in calls(result, None, conversation)]


def outcomes(result: Result) -> dict[str, tuple[str, str | None]]:
    """Run to (outcome, reason)."""
    return {row["run"]: (row["outcome"], row["reason"]) for row in result.runs}


def assert_nothing_left(result: Result) -> None:
    """No mark, indicator, run, timer, actor, ledger row or violation."""
    plain = result.to_json()
    left = {
        name: plain[name]
        for name in ("shown", "typing", "open_runs", "timers", "actors", "ledger_rows", "violations")
        if plain[name]
    }
    assert not left
