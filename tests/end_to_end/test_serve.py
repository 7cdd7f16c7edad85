"""``livesign serve`` as a real process: signals, exit codes, lost clients, reload."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ROOT, ChatService, Process, RawClient, chat_service, eventually, server

pytestmark = pytest.mark.real

CONFIG = """
[ledger]
path = ":memory:"
[server]
unix = "livesign.sock"
[lease]
ms = 300
[status]
debounce_ms = 20
error_hold_ms = 400
[accounts.bot]
platform = "sandbox"
base_url = "{base_url}"
token = "secret-of-the-bot"
"""
CLIENT = """
import msgpack, socket, sys, time
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(msgpack.packb({"type": "thinking", "conversation": "c", "message": "m"}))
print("sent", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def shared_chat() -> Iterator[ChatService]:
    with chat_service() as service:
        yield service


@pytest.fixture
def chat(shared_chat: ChatService) -> ChatService:
    shared_chat.rules()
    return shared_chat


@pytest.fixture
def config(tmp_path: Path, chat: ChatService) -> Path:
    path = tmp_path / "livesign.toml"
    path.write_text(CONFIG.format(base_url=chat.base_url))
    return path


def test_sigterm_takes_back_what_shows_and_ends_with_0(config: Path, chat: ChatService) -> None:
    with server(str(config)) as livesign, RawClient(config.parent / "livesign.sock") as client:
        received = {"type": "received", "conversation": "c", "message": "m", "direct": False, "mentioned": True}
        assert client.send(id="1", **received) == {"type": "ack", "id": "1", "result": "applied"}
        assert client.send(id="2", type="thinking", conversation="c", message="m")["result"] == "applied"
        eventually(lambda: chat.marks() == ["🤔"] and chat.left() == (1, 1), "thinking and typing show")
        livesign.signal(signal.SIGTERM)
        assert client.receive()["type"] == "closing"
        assert livesign.exit_code() == 0
        assert chat.left() == (0, 0)
        assert "secret-of-the-bot" not in livesign.text
    assert not (config.parent / "livesign.sock").exists()


def test_a_killed_client_costs_its_run_and_nothing_is_left(config: Path, chat: ChatService) -> None:
    with server(str(config)) as livesign:
        client = Process("-c", CLIENT, str(config.parent / "livesign.sock"))
        client.line_with("sent")
        eventually(lambda: chat.marks() == ["🤔"], "the run shows")
        client.signal(signal.SIGKILL)
        eventually(lambda: chat.marks() == ["😱"], "its lease is over: an error shows")
        eventually(lambda: chat.left() == (0, 0), "everything is gone")
        client.close()
        livesign.signal(signal.SIGINT)
        assert livesign.exit_code() == 0


def test_a_second_server_on_the_same_socket_is_refused(config: Path) -> None:
    with server(str(config)) as first:
        second = Process("-m", "actors", "serve", str(config))
        assert second.exit_code() == 3
        assert "in use" in second.text
        assert "running already" in second.text
        second.close()
        assert first.runs
        RawClient(config.parent / "livesign.sock").close()  # it still listens


def test_a_second_signal_ends_a_stop_that_hangs(config: Path, chat: ChatService) -> None:
    with server(str(config)) as livesign, RawClient(config.parent / "livesign.sock") as client:
        client.send(type="thinking", conversation="c", message="hangs")
        eventually(lambda: chat.marks() == ["🤔"], "the run shows")
        chat.rules({"outcome": "hang"})
        livesign.signal(signal.SIGTERM)
        livesign.line_with("stopping")
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 1
        assert "before everything that shows could be taken back" in livesign.text
        assert "ERROR" not in livesign.text
    chat.rules()
    assert chat.left()[0] == 1
    subprocess.run([sys.executable, "-c", _CLEAN_UP, f"{chat.base_url}/v1/chats/c/messages/hangs/marks"], check=True)


_CLEAN_UP = """
import sys, urllib.request
headers = {"Authorization": "Bearer secret-of-the-bot"}
urllib.request.urlopen(urllib.request.Request(sys.argv[1], method="DELETE", headers=headers)).close()
"""


def test_a_reload_that_is_refused_changes_nothing_and_says_why(config: Path, chat: ChatService) -> None:
    good = config.read_text()
    with server(str(config)) as livesign, RawClient(config.parent / "livesign.sock") as client:
        config.write_text(good + '\n[ack]\nscope = "everywhere"\nemojy = "👀"\n')
        livesign.signal(signal.SIGHUP)
        assert "reload refused" in livesign.line_with("ack.scope")
        assert "reload refused" in livesign.line_with("ack.emojy")
        config.write_text(good + '\n[accounts.second]\nplatform = "sandbox"\n[ack]\nscope = "all"\n')
        livesign.signal(signal.SIGHUP)
        assert "added second" in livesign.line_with("reloaded")
        event = {"type": "received", "account": "bot", "conversation": "c", "message": "r", "direct": True}
        assert client.send(id="1", **event)["result"] == "applied"
        eventually(lambda: chat.marks() == ["👀"], "the new scope holds")
        done = {"type": "silent", "account": "bot", "conversation": "c", "message": "r"}
        assert client.send(id="2", **done)["result"] == "applied"
        eventually(lambda: chat.left() == (0, 0), "everything is gone")


def test_without_a_configuration_there_is_a_chat_to_watch(tmp_path: Path) -> None:
    env = {"XDG_RUNTIME_DIR": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    with server(env=env) as livesign:
        found = re.search(r"http://127\.0\.0\.1:\d+", livesign.text)
        assert found is not None
        chat = ChatService(found[0])

        def send(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
            command = [sys.executable, "-m", "actors", "send", *args]
            return subprocess.run(
                command, cwd=ROOT, env={"PATH": "/usr/bin:/bin", **env}, input=stdin, capture_output=True, text=True
            )

        sent = send("thinking", "--conversation", "c", "--message", "m")
        assert (sent.returncode, sent.stdout) == (0, "applied\n")
        eventually(lambda: chat.marks() == ["🤔"], "the mark outlives the command that sent it")
        refused = send("merged", "-c", "c", "-m", "m", "--set", "into=nothing")
        assert refused.returncode == 1
        assert "rejected: bad_value (into)" in refused.stderr
        lines = '{"type": "tool", "conversation": "c", "message": "m"}\nno json\n{"type": "stats"}\n'
        mixed = send("--json", stdin=lines)
        assert mixed.returncode == 2
        assert [line.split(",")[0] for line in mixed.stdout.splitlines()] == [
            '{"type":"ack"',
            '{"type":"rejected"',
            '{"type":"stats"',
        ]
        assert "line 2: this is no JSON" in mixed.stdout
        assert "\nopen_runs 1\n" in send("stats").stdout
        unknown = send("thinking", "-c", "c", "-m", "n", "-a", "sandbx")
        assert unknown.returncode == 1
        assert "there is no account 'sandbx' (there are: sandbox)" in unknown.stderr
        assert send("done", "-c", "c", "-m", "m").stdout == "applied\n"
        assert send("done", "-c", "c", "-m", "m").stdout == "late\n"
        eventually(lambda: chat.left() == (0, 0), "everything is gone")
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0


def test_a_second_server_on_the_same_ledger_is_refused(config: Path, tmp_path: Path) -> None:
    text = config.read_text().replace('":memory:"', '"ledger"')
    config.write_text(text)
    other = tmp_path / "other.toml"
    other.write_text(text.replace("livesign.sock", "other.sock"))
    with server(str(config)):
        second = Process("-m", "actors", "serve", str(other))
        assert second.exit_code() == 3
        assert "ledger" in second.text
        assert "Traceback" not in second.text
        second.close()


def test_a_server_cleans_up_after_one_that_was_killed(config: Path, chat: ChatService) -> None:
    config.write_text(config.read_text().replace('":memory:"', '"ledger"') + "\n[lease]\nadopt_ms = 300\n")
    config.write_text(config.read_text().replace("[lease]\nms = 300\n", ""))
    with server(str(config)) as first, RawClient(config.parent / "livesign.sock") as client:
        client.send(type="thinking", conversation="c", message="left")
        eventually(lambda: chat.marks() == ["🤔"], "the run shows")
        first.signal(signal.SIGKILL)
        first.exit_code()
    assert chat.marks() == ["🤔"]
    with server(str(config)) as second:
        eventually(lambda: chat.left() == (0, 0), "what the dead one left is gone")
        second.signal(signal.SIGTERM)
        assert second.exit_code() == 0


def test_leave_keeps_what_shows_for_a_successor_whose_clients_go_on(config: Path, chat: ChatService) -> None:
    config.write_text(config.read_text().replace('":memory:"', '"ledger"'))
    run = {"conversation": "c", "message": "m"}
    with server("--leave", str(config)) as livesign, RawClient(config.parent / "livesign.sock") as client:
        client.send(id="1", type="thinking", **run)
        eventually(lambda: chat.marks() == ["🤔"], "thinking shows")
        livesign.signal(signal.SIGTERM)
        assert livesign.exit_code() == 0
        assert chat.marks() == ["🤔"]
    with server("--leave", str(config)), RawClient(config.parent / "livesign.sock") as client:
        assert client.send(id="2", type="tool", name="bash", **run)["result"] == "applied"
        eventually(lambda: chat.marks() == ["👨\u200d💻"], "the successor goes on")
        client.send(id="3", type="done", **run)
        eventually(lambda: chat.left() == (0, 0), "and ends it")


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="the system does not tell a process's limits")
def test_the_limit_of_open_files_is_raised_for_the_connections_that_are_allowed(config: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with server(str(config)) as livesign:
            limits = Path(f"/proc/{livesign.pid}/limits").read_text().splitlines()
            (line,) = [line for line in limits if "open files" in line]
            assert int(line.split()[3]) >= min(1_024 + 512, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
