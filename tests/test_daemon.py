"""A whole livesign in this process, on the real hub: its parts together, reload, and its end."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import msgpack
import pytest
from gevent import socket

from actors.config import Config, ConfigError, load
from actors.daemon import AccountError, Daemon, sandbox_options
from actors.messages import FromClient
from actors.pauses import THRESHOLDS, PauseWatch
from actors.sandbox import SandboxClient
from actors.server import ListenError
from protocol.events import Thinking

pytestmark = pytest.mark.real


def config(tmp_path: Path, **more: Any) -> Config:
    tree = {"server": {"unix": str(tmp_path / "livesign.sock")}, "accounts": {"bot": {"platform": "sandbox"}}}
    return load({**tree, "ledger": {"path": ":memory:"}, **more})


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(config(tmp_path))
    made.start()
    yield made
    made.stop()


def send(daemon: Daemon, **event: Any) -> Any:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        path = daemon.config.server.unix
        assert path is not None
        sock.connect(path)
        sock.sendall(msgpack.packb({"id": "1", "conversation": "c", "message": "m", "lease_ms": 60_000, **event}))
        return msgpack.unpackb(sock.recv(4_096))


def eventually(condition: Any) -> None:
    with gevent.Timeout(5):
        while not condition():
            gevent.sleep(0.005)


def test_a_sandbox_account_without_an_address_has_a_chat_of_its_own(daemon: Daemon) -> None:
    service = daemon.sandboxes["bot"]
    chat = SandboxClient(service.base_url)
    assert send(daemon, type="received", direct=False, mentioned=True)["result"] == "applied"
    eventually(lambda: chat.marks("c", "m") == ["👀"] and chat.typing("c") == ["bot"])
    stats = daemon.stats()
    assert stats["open_runs"] == stats["server_events"] == 1
    assert stats["calls_made"] == chat.calls().total
    chat.close()


def test_a_stop_takes_back_what_shows_and_leaves_no_actor(tmp_path: Path) -> None:
    daemon = Daemon(config(tmp_path))
    daemon.start()
    chats = daemon.sandboxes["bot"].chats
    send(daemon, type="received", direct=False, mentioned=True)
    eventually(lambda: chats.view(0).marks == 1)
    assert daemon.stop() is True
    assert chats.view(0).marks == chats.view(0).typing == 0
    assert daemon.runtime.actor_count == daemon.runtime.armed_timers == 0
    assert not (tmp_path / "livesign.sock").exists()


def test_a_refused_reload_changes_nothing(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    before, port = daemon.config, daemon.application.parts.accounts["bot"].port
    broken = {"platform": "matrix", "token": "t", "base_url": "https://h", "ca_file": str(tmp_path / "ca.pem")}
    new = config(tmp_path, accounts={"bot": {"platform": "sandbox", "token": "other"}, "second": broken})
    with pytest.raises(AccountError, match=r"accounts\.second\.ca_file: .* holds no usable certificate"):
        daemon.reload(new)
    assert daemon.config is before
    assert daemon.application.parts.accounts["bot"].port is port
    assert daemon.stats()["reloads_refused"] == 1
    assert send(daemon, type="thinking")["result"] == "applied"


def test_a_reload_adds_accounts_and_keeps_the_chat_of_those_that_change(daemon: Daemon, tmp_path: Path) -> None:
    service = daemon.sandboxes["bot"]
    accounts = {"bot": {"platform": "sandbox", "token": "renamed"}, "second": {"platform": "sandbox"}}
    change = daemon.reload(config(tmp_path, accounts=accounts))
    assert (change.added, change.changed) == (("second",), ("bot",))
    assert daemon.sandboxes["bot"] is service
    assert send(daemon, type="thinking", account="second")["result"] == "applied"
    eventually(lambda: daemon.sandboxes["second"].chats.view(0).marks == 1)
    assert send(daemon, type="thinking", account="bot")["result"] == "applied"
    eventually(lambda: service.chats.view(0).chats and service.chats.view(0).chats[0].typing[0].account == "renamed")


def test_events_that_wait_while_the_account_is_exchanged_are_applied(daemon: Daemon, tmp_path: Path) -> None:
    replies: list[Any] = []
    for number in range(6):
        event = Thinking(id=str(number), conversation="c", message=str(number), lease_ms=60_000)
        daemon.application.submit(FromClient("s", event, replies.append, None, False))
        name = ("bot", "other")[number % 2]
        daemon.reload(config(tmp_path, accounts={name: {"platform": "sandbox"}}))
    eventually(lambda: len(replies) == 6)
    assert [reply.result for reply in replies] == ["applied"] * 6
    assert "failures" not in daemon.stats()
    assert daemon.stop() is True


def test_what_an_account_that_is_gone_has_left_is_still_taken_back(daemon: Daemon, tmp_path: Path) -> None:
    chats = daemon.sandboxes["bot"].chats
    assert send(daemon, type="thinking")["result"] == "applied"
    eventually(lambda: chats.view(0).marks == 1)
    daemon.reload(config(tmp_path, accounts={"other": {"platform": "sandbox"}}))
    assert daemon.config.policy("bot", "c") == config(tmp_path).policy("bot", "c")
    eventually(lambda: chats.view(0).marks == 0)


def test_a_file_that_names_no_account_any_more_is_refused(daemon: Daemon, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="accounts: names none any more"):
        daemon.reload(load({"ledger": {"path": ":memory:"}}))
    assert list(daemon.config.accounts) == ["bot"]


def test_where_it_cannot_listen_nothing_is_left_running(daemon: Daemon, tmp_path: Path) -> None:
    second = Daemon(config(tmp_path))
    with pytest.raises(ListenError):
        second.start()
    assert second.runtime.actor_count == 0
    assert second.sandboxes == {}
    assert not second.alive
    assert daemon.alive


def test_an_event_applied_before_a_restart_is_known_after_it(tmp_path: Path) -> None:
    settings = config(tmp_path, ledger={"path": str(tmp_path / "ledger")})
    hello = {"type": "hello", "session": "bot"}
    event = {"type": "thinking", "id": "e1", "conversation": "c", "message": "m", "lease_ms": 60_000}
    results = []
    for _ in range(2):
        made = Daemon(settings)
        made.start()
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(5)
            sock.connect(str(made.config.server.unix))
            sock.sendall(msgpack.packb(hello) + msgpack.packb(event))
            unpacker = msgpack.Unpacker()
            while (reply := next(unpacker, None)) is None or reply["type"] != "ack":
                if reply is None:
                    unpacker.feed(sock.recv(4_096))
            results.append(reply["result"])
        made.stop()
    assert results == ["applied", "duplicate"]


def test_a_fallen_tree_is_noticed(tmp_path: Path) -> None:
    daemon = Daemon(config(tmp_path))
    daemon.start()
    root = daemon.runtime.lookup("root")
    assert root is not None
    daemon.runtime.stop(root).get()
    assert not daemon.alive
    assert daemon.stop() is False


def test_the_options_of_an_account_choose_what_its_chat_is_like(tmp_path: Path) -> None:
    account = {"platform": "sandbox", "reactions": "add_remove", "typing_stop": False, "typing_lifetime_ms": 7_000}
    options = sandbox_options(
        config(tmp_path, accounts={"bot": {**account, "post_clears_typing": False, "typing_in": "direct"}}).accounts[
            "bot"
        ]
    )
    assert options == replace(
        options,
        reactions="add_remove",
        typing_stop=False,
        typing_lifetime_ms=7_000,
        post_clears_typing=False,
        typing_in="direct",
    )


def test_the_longest_pause_of_the_garbage_collector_is_known() -> None:
    before = gc.get_threshold()
    watch = PauseWatch()
    watch.start()
    try:
        assert gc.get_threshold() == THRESHOLDS
        assert watch.longest_us == 0
        gc.collect()
        assert watch.longest_us > 0
        kept: list[list[int]] = [[] for _ in range(1_000)]
        gc.collect()
        assert len(gc.get_objects()) < len(kept)  # those to come look at none of them again
    finally:
        watch.stop()
        gc.set_threshold(*before)
        gc.unfreeze()


def test_a_ledger_that_another_program_holds_keeps_no_client_waiting_and_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("actors.ledger_file.BUSY_S", 0.01)
    monkeypatch.setattr("actors.ledger_writer.RETRY_S", 0.005)
    daemon = Daemon(config(tmp_path, ledger={"path": str(tmp_path / "state")}))
    daemon.start()
    try:
        assert daemon.stats()["ledger_degraded"] == 0
        with closing(sqlite3.connect(tmp_path / "state" / "ledger.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert send(daemon, type="received", direct=False, mentioned=True)["result"] == "applied"
            assert daemon.stats()["ledger_degraded"] == 1
            assert send(daemon, type="thinking", id="2")["result"] == "applied"
        eventually(lambda: daemon.stats()["ledger_degraded"] == 0)
        with closing(sqlite3.connect(tmp_path / "state" / "ledger.db")) as other:
            assert other.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    finally:
        daemon.stop()
    assert [record.levelname for record in caplog.records if "ledger" in record.getMessage()] == ["WARNING"] * 2
