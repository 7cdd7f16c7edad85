"""`livesign serve` with one account, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.end_to_end.processes import Process, RawClient, eventually

CONFIG = """
[accounts.bot]
{account}
token_env = "BOT_TOKEN"

[ack]
scope = "all"

[status]
presentation = "full"
min_change_ms = 0
debounce_ms = 0
done_hold_ms = 200

[server]
unix = "{folder}/s.sock"

[ledger]
path = "{folder}/ledger"
"""


class Served:
    """The server's process and a client."""

    def __init__(self, process: Process, client: RawClient) -> None:
        self.process = process
        self.client = client

    def tell(self, kind: str, place: dict[str, str], **fields: Any) -> None:
        self.client.send(type=kind, **place, **fields)

    def counters(self) -> dict[str, int]:
        """What the server has counted."""
        self.client.send(type="stats")
        reply = self.client.receive()
        found: dict[str, int] = reply["counters"]
        return found

    def drained(self, runs: int) -> None:
        """Wait until so many runs have ended and nothing of them is left to do."""
        eventually(lambda: self.counters().get("runs_ended", 0) >= runs, f"{runs} runs at their end")


@contextmanager
def served(folder: Path, token: str, *account: str) -> Iterator[Served]:
    """A running server; stopped by SIGKILL at the end. ``account``: its lines of TOML. The token must be in nothing that it
    says."""
    config = folder / "livesign.toml"
    config.write_text(CONFIG.format(account="\n".join(account), folder=folder), "utf-8")
    process = Process("-m", "actors", "serve", str(config), env={"BOT_TOKEN": token})
    try:
        process.line_with("ready")
        with RawClient(folder / "s.sock") as client:
            yield Served(process, client)
    finally:
        process.close()
    assert token not in process.text
