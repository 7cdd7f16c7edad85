"""The Slack emulator (npm ``emulate``, 0.12.2, needs Node 24), started by the command in LIVESIGN_SLACK_EMULATOR:

    npm i emulate@0.12.2
    LIVESIGN_SLACK_EMULATOR="node24 node_modules/emulate/dist/index.js start"

Options for service, port and seed are added to it. It keeps reactions; it has no limits and no thread status.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.recorder import Recorded

COMMAND = "LIVESIGN_SLACK_EMULATOR"
TOKEN = "xoxb-livesign-emulated"
CHANNEL = "C000000001"
SEED = {
    "slack": {
        "team": {"name": "W", "domain": "w"},
        "users": [{"name": "dev", "real_name": "D", "email": "d@example.com"}],
        "channels": [{"name": "general"}],
        "bots": [{"name": "bot"}],
    }
}


class Emulator:
    """A running emulator."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """Call a method of the Web API as somebody else would."""
        data = json.dumps(values).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.url}/{method}", data, headers), timeout=5) as answer:
            loaded: dict[str, Any] = json.loads(answer.read())
        return loaded

    def forward(self, request: Recorded) -> bytes:
        """The body of the answer to somebody's call."""
        kept = {name: request.headers[name] for name in ("content-type", "authorization")}
        target = self.url + request.path.removeprefix("/api")
        with urllib.request.urlopen(urllib.request.Request(target, request.body, kept), timeout=5) as answer:
            body: bytes = answer.read()
        return body

    def say(self, text: str) -> str:
        """The ts of a new message in the channel."""
        ts = self.call("chat.postMessage", channel=CHANNEL, text=text)["ts"]
        assert isinstance(ts, str)
        return ts

    def marks(self, ts: str) -> list[str]:
        """Names of the reactions on a message."""
        message = self.call("reactions.get", channel=CHANNEL, timestamp=ts)["message"]
        return [each["name"] for each in message.get("reactions", [])]


@contextlib.contextmanager
def emulator(folder: Path) -> Iterator[Emulator]:
    """Start it and stop it again. Skips the test where there is none."""
    command = os.environ.get(COMMAND)
    if not command:
        pytest.skip(f"no Slack emulator: {COMMAND} does not say how to start one")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    seed = folder / "slack.json"
    seed.write_text(json.dumps(SEED), "utf-8")
    args = [*shlex.split(command), "-s", "slack", "-p", str(port), "--seed", str(seed)]
    with open(folder / "emulator.log", "wb") as log:
        process = subprocess.Popen(args, stdout=log, stderr=log, start_new_session=True)
        try:
            _wait_for(port, process, folder / "emulator.log")
            yield Emulator(f"http://127.0.0.1:{port}/api")
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=10)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until_s = time.monotonic() + 20
    while time.monotonic() < until_s and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail(f"the Slack emulator did not start: {log.read_text('utf-8', 'replace')[-500:]}")
