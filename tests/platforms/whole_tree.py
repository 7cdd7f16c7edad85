"""One run through the whole tree, over HTTP, in the test's own hub."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent

from actors.application import Application
from actors.config import Account, load
from actors.ledger import MemoryLedger
from actors.messages import FromClient
from actors.platforms.port import HttpPlatform
from actors.runtime import Runtime
from protocol import events


def run_and_watch(account: dict[str, Any], place: dict[str, str], marks: Callable[[], list[str]]) -> list[list[str]]:
    """Accept the message at ``place``, think, and be done; what ``marks`` shows one after the other until nothing of
    ours is left. ``status`` of ``account`` is set for a short run."""
    account = {**account, "status": {"debounce_ms": 0, "done_hold_ms": 10, "min_change_ms": 0}}
    runtime = Runtime()
    app = Application(load({"accounts": {"a": account}}), runtime, _port, MemoryLedger())
    app.start()
    try:
        run: dict[str, Any] = {"account": "a", **place}
        for event in (events.Received(**run, direct=False, mentioned=True), events.Thinking(**run), events.Done(**run)):
            app.submit(FromClient("s", event, lambda reply: None))
            gevent.sleep(0.05)
        seen: list[list[str]] = []
        with gevent.Timeout(15):
            while not seen or seen[-1]:
                gevent.sleep(0.02)
                now = marks()
                if not seen or now != seen[-1]:
                    seen.append(now)
        return seen
    finally:
        app.close()
        runtime.close()


def _port(account: Account) -> HttpPlatform:
    return HttpPlatform(account.adapter, account.credentials)
