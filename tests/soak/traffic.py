"""What bots of all platforms do for some minutes: waves of runs that all begin at once, as rows of a scenario."""

from __future__ import annotations

import random
from typing import Any

CONVERSATIONS = {
    "telegram": 40, "discord": 60, "slack": 8, "matrix": 4, "whatsapp": 40, "mattermost": 20, "zulip": 12, "signal": 5,
    "teams": 12, "googlechat": 16, "sandbox": 10,
}  # fmt: skip
"""As many as still can be served in a wave's time; each wave asks for far more than the limits allow."""
MESSAGES = {"zulip": 3, "teams": 4, "googlechat": 8}
"""Messages of a conversation at a time, where one each would not ask for more than the limits allow; else one."""
WAVE_MS = 120_000
TOOLS = ("bash", "web_search", "edit", "calendar")


def rows(minutes: float, seed: int) -> list[list[Any]]:
    """``[t_ms, event, client]`` of every account; accounts are named after their platforms."""
    rng = random.Random(seed)
    made: list[list[Any]] = []
    for platform in CONVERSATIONS:
        for number in range(CONVERSATIONS[platform]):
            conversation = f"-100{number}" if number % 2 else f"{number + 1}"
            for wave in range(max(1, int(minutes * 60_000 / WAVE_MS))):
                for more in range(MESSAGES.get(platform, 1)):
                    made += _run(rng, platform, conversation, f"m{wave}.{more}" if more else f"m{wave}", wave * WAVE_MS)
    made.sort(key=lambda row: int(row[0]))
    return made


def _run(rng: random.Random, platform: str, conversation: str, message: str, from_ms: int) -> list[list[Any]]:
    place = {"account": platform, "conversation": conversation, "message": message}
    if rng.random() < 0.2:
        place["thread"] = "7"
    t_ms = from_ms + rng.randrange(300)
    made: list[list[Any]] = [[t_ms, {"type": "received", "direct": conversation[0] != "-", "mentioned": True, **place}]]

    def say(kind: str, wait_ms: int, **fields: Any) -> None:
        nonlocal t_ms
        t_ms += wait_ms
        made.append([t_ms, {"type": kind, **fields, **{k: v for k, v in place.items() if k != "thread"}}])

    say("thinking", 300)
    for _ in range(rng.randrange(6, 12)):
        say("tool", rng.randrange(200, 4_000), name=rng.choice(TOOLS))
        say("thinking", rng.choice((300, 900, 2_000)))
    for _ in range(rng.choice((0, 10, 20))):  # faster than anybody could follow
        say(rng.choice(("thinking", "compacting")), 150)
    if rng.random() < 0.3:
        say("tool", 500, name="bash", call="long")
        say("tool_end", 25_000, call="long")
    if rng.random() < 0.6:
        say("sending", 200)
        say("sent", rng.choice((100, 1_500)))
    say(rng.choice(("done",) * 6 + ("error", "cancelled", "silent")), 400)
    return made
