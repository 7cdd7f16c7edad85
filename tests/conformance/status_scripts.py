"""Makes random status scripts in the format of the recordings."""

from __future__ import annotations

import random
from typing import Any

__all__ = ["random_trace"]

TOOLS = ("exec", "web_search", "Read", "WebFetch", "cron", "browser", None, "thread_create", "web search")
EMOJIS = ("🦊", "🤖", "📝", "🌐", "🤔", "👀")
STATES = (
    "queued",
    "thinking",
    "tool",
    "coding",
    "web",
    "done",
    "error",
    "stallSoft",
    "stallHard",
    "compacting",
)
LONG_GAPS_MS = (9_000, 10_000, 10_001, 15_000, 31_000)


def random_trace(seed: int) -> dict[str, Any]:
    """The trace of ``seed``: config and script."""
    rng = random.Random(seed)
    config: dict[str, Any] = {"initialEmoji": rng.choice(("👀", "🦊")), "hasRemove": rng.random() < 0.6}
    if rng.random() < 0.4:
        config["emojis"] = {rng.choice(STATES): rng.choice(EMOJIS) for _ in range(rng.randint(1, 4))}
    if rng.random() < 0.4:
        config["timing"] = {
            "debounceMs": rng.choice((0, 250, 700, 1_500)),
            "stallSoftMs": rng.choice((2_000, 5_000, 10_000)),
            "stallHardMs": rng.choice((1_900, 8_000, 10_000, 30_000)),
        }
    if rng.random() < 0.2:
        config["mode"] = "sync"
    if rng.random() < 0.4:
        config["latencyMs"] = [rng.choice((0, 50, 300, 800)) for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.3:
        config["faults"] = {"setEmojis": rng.sample(("🤔", "🔥", "⚡", "🥱", "😨", "✍", "🦊"), rng.randint(1, 3))}
    return {"id": f"random-{seed}", "seed": seed, "config": config, "script": _script(rng)}


def _script(rng: random.Random) -> list[list[Any]]:
    now_ms = rng.choice((0, 0, 13))
    script: list[list[Any]] = []
    ops = (
        "queued",
        "thinking",
        "tool",
        "tool",
        "thinking",
        "compacting",
        "cancel_pending",
        "restore_initial",
    )
    for _ in range(rng.randint(1, 14)):
        op = rng.choice(ops)
        script.append([now_ms, op, rng.choice(TOOLS)] if op == "tool" else [now_ms, op])
        short_ms = rng.choice((0, rng.randint(1, 699), 700, rng.randint(701, 3_000), rng.randint(3_000, 9_000)))
        now_ms += rng.choice(LONG_GAPS_MS) if rng.random() < 0.25 else short_ms
    if rng.random() < 0.7:
        script.append([now_ms, rng.choice(("done", "done", "error", "clear"))])
        if rng.random() < 0.6:
            now_ms += rng.choice((1_500, 2_500, 4_000))
            script.append([now_ms, rng.choice(("restore_initial", "clear", "thinking", "queued"))])
    return script
