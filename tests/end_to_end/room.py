"""A room on a real homeserver, served by `livesign serve`."""

from __future__ import annotations

from pathlib import Path

from tests.end_to_end.processes import Process, RawClient
from tests.end_to_end.synapse import Eyes, Synapse, User

CONFIG = """
[accounts.bot]
platform = "matrix"
base_url = "{base_url}"
token_env = "BOT_TOKEN"
limits.account = {{ per_ms = 1000, count = 100 }}

[ack]
scope = "all"

[status]
presentation = "full"
min_change_ms = 0
debounce_ms = 200
done_hold_ms = 700
settle = "{settle}"

[server]
unix = "{folder}/s.sock"

[ledger]
path = "{folder}/ledger"

[lease]
adopt_ms = {adopt_ms}
"""


class Room:
    """A room with the bot in it, a user who asks and watches, and a server that serves the bot."""

    def __init__(
        self,
        homeserver: Synapse,
        folder: Path,
        settle: str = "clear",
        adopt_ms: int = 15_000,
        base_url: str | None = None,
    ) -> None:
        """``base_url``: the bot's way to the homeserver, where that is not the direct one."""
        self.bot: User = homeserver.register()
        self.alice: User = homeserver.register()
        self.id = self.alice.create_room(self.bot)
        self.message = self.alice.say(self.id, "please work on this")
        self.eyes = Eyes(self.alice, self.id)
        self._folder = folder
        settings = {
            "base_url": base_url or homeserver.base_url, "folder": folder, "settle": settle, "adopt_ms": adopt_ms,
        }  # fmt: skip
        (folder / "livesign.toml").write_text(CONFIG.format(**settings), "utf-8")
        self._serve()

    def _serve(self) -> None:
        config = self._folder / "livesign.toml"
        self.server = Process("-m", "actors", "serve", str(config), env={"BOT_TOKEN": self.bot.token})
        self.server.line_with("ready")
        self.client = RawClient(self._folder / "s.sock")

    def serve_again(self) -> None:
        """After the end of the server: another one, and a new connection to it."""
        self.close()
        self._serve()

    def tell(self, kind: str, **fields: object) -> None:
        self.client.send(type=kind, conversation=self.id, message=self.message, **fields)

    def shows(self, *emoji: str) -> None:
        """Wait until exactly these marks of the bot stand on the message."""
        wanted = [(self.bot.user_id, self.message, key) for key in emoji]
        self.eyes.until(lambda eyes: eyes.marks == wanted)

    def types(self, on: bool) -> None:
        wanted = [self.bot.user_id] if on else []
        self.eyes.until(lambda eyes: bool(eyes.typing) and eyes.typing[-1] == wanted)

    def close(self) -> None:
        self.client.close()
        self.server.close()
