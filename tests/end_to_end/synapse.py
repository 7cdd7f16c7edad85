"""A real Matrix homeserver (Synapse) for tests: started on loopback in a folder of its own, stopped by its
process.

Synapse is not a dependency. ``LIVESIGN_SYNAPSE_PYTHON`` names the interpreter of an environment that has it::

    python3 -m venv synapse-env && synapse-env/bin/pip install matrix-synapse
    LIVESIGN_SYNAPSE_PYTHON=$PWD/synapse-env/bin/python python -m pytest

Without it the tests that call `running` are skipped and say so. The server is started once per test run.
"""

from __future__ import annotations

import atexit
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

VARIABLE = "LIVESIGN_SYNAPSE_PYTHON"
SECRET = "test-only"
START_S = 60.0
HIGH = {"per_second": 1000, "burst_count": 1000}


@dataclass(frozen=True)
class User:
    """A registered user."""

    user_id: str
    token: str = field(repr=False)
    server: Synapse = field(repr=False)

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One request of the client-server API, plain and blocking. Raises urllib.error.HTTPError."""
        return self.server.call(method, path, body, self.token)

    def create_room(self, *invited: User) -> str:
        """A room with everybody invited already in it."""
        answer = self.call("POST", "/_matrix/client/v3/createRoom", {"preset": "public_chat", "name": "tests"})
        room = str(answer["room_id"])
        for user in invited:
            user.call("POST", f"/_matrix/client/v3/join/{quote(room)}", {})
        return room

    def say(self, room: str, text: str) -> str:
        """Send a message. Returns its event id."""
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/m.room.message/{time.monotonic_ns()}"
        return str(self.call("PUT", path, {"msgtype": "m.text", "body": text})["event_id"])


class Eyes:
    """What a user sees of one room, followed with ``/sync`` from the moment it is made."""

    def __init__(self, user: User, room: str) -> None:
        self._user = user
        self._room = room
        self._since = ""
        self.events: list[dict[str, Any]] = []
        """Timeline events, in order."""
        self.typing: list[list[str]] = []
        """Every change of who is typing, in order."""
        self._sync(0)
        self.events.clear()
        self.typing.clear()

    def look(self, wait_ms: int = 0) -> Eyes:
        """Take in what is new; waits up to ``wait_ms`` for something."""
        self._sync(wait_ms)
        return self

    def until(self, condition: Any, within_s: float = 10.0) -> Eyes:
        """Look until ``condition(self)`` holds. Raises AssertionError."""
        limit = time.monotonic() + within_s
        while not condition(self):
            assert time.monotonic() < limit, f"not seen: events {self.events}, typing {self.typing}"
            self._sync(500)
        return self

    @property
    def marks(self) -> list[tuple[str, str, str]]:
        """Annotations that still stand: (sender, target, key), in order."""
        redacted = {each.get("redacts") or each["content"].get("redacts") for each in self.events}
        return [
            (each["sender"], relation["event_id"], relation["key"])
            for each in self.events
            if each["type"] == "m.reaction" and each["event_id"] not in redacted
            for relation in (each["content"].get("m.relates_to"),)
            if relation
        ]

    def _sync(self, wait_ms: int) -> None:
        since = f"&since={self._since}" if self._since else ""
        answer = self._user.call("GET", f"/_matrix/client/v3/sync?timeout={wait_ms}{since}")
        self._since = answer["next_batch"]
        room = answer.get("rooms", {}).get("join", {}).get(self._room, {})
        self.events += room.get("timeline", {}).get("events", [])
        for event in room.get("ephemeral", {}).get("events", []):
            if event["type"] == "m.typing":
                self.typing.append(event["content"]["user_ids"])


class Synapse:
    """A running homeserver. ``limit`` is its ``rc_message``, the limit of marks and redactions."""

    def __init__(self, python: str, folder: Path, limit: dict[str, float] | None = None) -> None:
        self.python = python
        self._folder = folder
        self._limit = limit or HIGH
        self._names = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.base_url = ""

    def start(self) -> None:
        """Start and wait until it answers. Raises RuntimeError with the end of its log."""
        port = _free_port()
        self.base_url = f"http://127.0.0.1:{port}"
        (self._folder / "hs.yaml").write_text(yaml.safe_dump(self._settings(port)))
        (self._folder / "log.yaml").write_text(yaml.safe_dump(_logging(self._folder / "hs.log")))
        base = [self.python, "-m", "synapse.app.homeserver", "-c", "hs.yaml"]
        subprocess.run([*base, "--generate-keys"], cwd=self._folder, check=True, capture_output=True, timeout=60)
        with (self._folder / "out.log").open("wb") as out:
            self._process = subprocess.Popen(base, cwd=self._folder, stdout=out, stderr=out)
        limit = time.monotonic() + START_S
        while time.monotonic() < limit and self._process.poll() is None:
            try:
                self.call("GET", "/_matrix/client/versions")
            except OSError:
                time.sleep(0.05)
            else:
                return
        log = "".join(each.read_text("utf-8", "replace")[-2_000:] for each in sorted(self._folder.glob("*.log")))
        self.stop()
        raise RuntimeError(f"Synapse did not start: {log}")

    def stop(self) -> None:
        """Stop the process. Does nothing when it is not running."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def register(self, name: str | None = None) -> User:
        """A new user; without ``name`` one that nobody else has."""
        path = "/_synapse/admin/v1/register"
        nonce = self.call("GET", path)["nonce"]
        user = name or f"user{next(self._names)}"
        message = "\0".join((nonce, user, "pw", "notadmin")).encode()
        mac = hmac.new(SECRET.encode(), message, hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": "pw", "admin": False, "mac": mac}
        answer = self.call("POST", path, body)
        return User(answer["user_id"], answer["access_token"], self)

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> dict[str, Any]:
        """One request. Raises urllib.error.HTTPError, OSError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base_url + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        if token is not None:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                loaded: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            error.close()
            raise
        return loaded

    def _settings(self, port: int) -> dict[str, Any]:
        listener = {
            "bind_addresses": ["127.0.0.1"], "port": port, "tls": False, "type": "http",
            "resources": [{"names": ["client"]}],
        }  # fmt: skip
        return {
            "server_name": "localhost",
            "pid_file": "hs.pid",
            "listeners": [listener],
            "database": {"name": "sqlite3", "args": {"database": "hs.db"}},
            "log_config": "log.yaml",
            "media_store_path": "media",
            "registration_shared_secret": SECRET,
            "macaroon_secret_key": SECRET,
            "form_secret": SECRET,
            "signing_key_path": "hs.key",
            "report_stats": False,
            "trusted_key_servers": [],
            "federation_domain_whitelist": [],
            "presence": {"enabled": False},
            "rc_message": self._limit,
            "rc_login": {"address": HIGH, "account": HIGH},
            "rc_joins": {"local": HIGH},
            "rc_joins_per_room": HIGH,
            "rc_room_creation": HIGH,
            "rc_invites": {"per_user": HIGH, "per_room": HIGH, "per_issuer": HIGH},
        }


@cache
def running() -> Synapse:
    """The test run's homeserver. Skips the test where there is none to be had."""
    return _started(None)


@cache
def limited() -> Synapse:
    """The test run's homeserver whose limit on marks and redactions is on: two a second, three at once."""
    return _started({"per_second": 2, "burst_count": 3})


def _started(limit: dict[str, float] | None) -> Synapse:
    python = os.environ.get(VARIABLE)
    if not python:
        pytest.skip(f"no Synapse: {VARIABLE} does not name the python of an environment with matrix-synapse")
    folder = Path(tempfile.mkdtemp(prefix="livesign-synapse-"))
    server = Synapse(python, folder, limit)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.stop)
    server.start()
    return server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _logging(file: Path) -> dict[str, Any]:
    return {
        "version": 1,
        "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(file), "formatter": "plain"}},
        "root": {"level": "WARNING", "handlers": ["file"]},
        "disable_existing_loggers": False,
    }
