"""The metrics page of a running daemon, read as Prometheus reads it."""

from __future__ import annotations

import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import msgpack
import pytest
from gevent import socket

from actors.config import load
from actors.daemon import Daemon
from actors.meters import ACCOUNT_COUNTERS, ACCOUNT_GAUGES, COUNTERS, GAUGES, OUTCOME
from actors.server import ListenError

pytestmark = pytest.mark.real
parser: Any = pytest.importorskip("prometheus_client.parser")
openmetrics: Any = pytest.importorskip("prometheus_client.openmetrics.parser")

SECRET = "token-of-the-bot"


def config(tmp_path: Path, listen: str = "127.0.0.1:0") -> Any:
    return load({
        "server": {"unix": str(tmp_path / "livesign.sock")},
        "accounts": {
            "bot": {"platform": "sandbox", "token": SECRET},
            "other": {"platform": "sandbox", "token": "secret-2"},
        },
        "ledger": {"path": ":memory:"},
        "metrics": {"listen": listen},
    })  # fmt: skip


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(config(tmp_path))
    made.start()
    yield made
    made.stop()


def fetch(daemon: Daemon, path: str = "/metrics", **headers: str) -> tuple[int, str, str]:
    """Status, content type and text; by a client of its own, while this thread's hub goes on."""
    assert daemon.metrics is not None
    url = daemon.metrics.url.removesuffix("/metrics") + path

    def get() -> tuple[int, str, str]:
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read().decode()

    result: Any = gevent.get_hub().threadpool.spawn(get).get(timeout=20)
    return result  # type: ignore[no-any-return]


def samples(text: str) -> dict[tuple[str, ...], float]:
    """Name and labels to value."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def work(daemon: Daemon) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
        sock.connect(daemon.server.context.settings.unix or "")
        event = {"type": "thinking", "id": "1", "account": "bot", "conversation": "secret chat", "message": "m"}
        sock.sendall(msgpack.packb({**event, "lease_ms": 60_000}))
        assert msgpack.unpackb(sock.recv(4_096))["result"] == "applied"
    with gevent.Timeout(5):
        while daemon.stats().get("outcome_ok", 0) < 2:
            gevent.sleep(0.005)


def test_everything_counted_is_there_and_means_what_stats_say(daemon: Daemon) -> None:
    work(daemon)
    status, kind, text = fetch(daemon)
    assert status == 200
    assert kind.startswith("text/plain; version=")
    found = samples(text)
    assert found["livesign_open_runs",] == found["livesign_runs_opened_total",] == 1
    assert found["livesign_account_calls_made_total", "bot"] == found["livesign_outcomes_total", "bot", "ok"] >= 2
    assert found["livesign_account_calls_made_total", "other"] == 0
    assert found["livesign_server_accepts_failed_total",] == found["livesign_ledger_degraded",] == 0
    assert SECRET not in text
    assert "secret chat" not in text


def test_every_name_has_its_meaning(daemon: Daemon) -> None:
    work(daemon)
    known = {*GAUGES, *COUNTERS, *ACCOUNT_COUNTERS}
    assert {name for name in daemon.stats() if not name.startswith(OUTCOME)} <= known
    families = {family.name: family for family in parser.text_string_to_metric_families(fetch(daemon)[2])}
    assert all(family.documentation for family in families.values())
    expected = {f"livesign_{name}" for name in (*daemon.gauges, *COUNTERS)} | {"livesign_outcomes"}
    assert families.keys() == expected | {f"livesign_account_{n}" for n in (*ACCOUNT_COUNTERS, *ACCOUNT_GAUGES)}
    assert daemon.gauges.keys() | {"gc_longest_pause_us"} == GAUGES.keys()


def test_openmetrics_is_spoken_to_those_who_ask_for_it(daemon: Daemon) -> None:
    _, kind, text = fetch(daemon, Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    assert list(openmetrics.text_string_to_metric_families(text))


def test_a_stopped_account_is_measured(daemon: Daemon) -> None:
    daemon.sandboxes["bot"].stop()
    assert samples(fetch(daemon)[2])["livesign_account_stopped", "bot"] == 0
    daemon.application.parts.accounts["bot"].lanes._health.stopped = "auth"
    assert samples(fetch(daemon)[2])["livesign_account_stopped", "bot"] == 1
    daemon.application.parts.accounts["bot"].lanes._health.stopped = None


def test_health_and_unknown_pages(daemon: Daemon) -> None:
    assert fetch(daemon, "/health")[::2] == (200, "ok\n")
    assert fetch(daemon, "/")[0] == 404
    daemon.application.stopping = True
    assert fetch(daemon, "/health")[0] == 503


def test_an_address_that_is_taken_leaves_nothing_running(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.metrics is not None
    taken = daemon.metrics.url.removeprefix("http://").removesuffix("/metrics")
    (tmp_path / "second").mkdir()
    second = Daemon(config(tmp_path / "second", taken))
    with pytest.raises(ListenError, match=f"cannot listen on {taken}: Address already in use"):
        second.start()
    assert second.runtime.actor_count == 0
    assert fetch(daemon)[0] == 200


def test_peers_that_say_nothing_do_not_keep_others_out(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.metrics.CONNECTION_S", 0.1)
    assert daemon.metrics is not None
    host, _, port = daemon.metrics.url.removeprefix("http://").removesuffix("/metrics").partition(":")
    crowd = [socket.create_connection((host, int(port))) for _ in range(50)]
    crowd[0].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    assert fetch(daemon)[0] == 200
    for sock in crowd:
        sock.close()


@pytest.mark.parametrize(
    "data", [b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"x" * 100_000]
)
def test_what_is_no_request_harms_nobody(
    daemon: Daemon, data: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.WARNING)
    assert daemon.metrics is not None
    host, _, port = daemon.metrics.url.removeprefix("http://").removesuffix("/metrics").partition(":")
    with socket.create_connection((host, int(port))) as sock:
        sock.settimeout(5)
        try:
            sock.sendall(data)
            sock.recv(100)
        except OSError:
            pass
    assert fetch(daemon)[0] == 200
    assert "Traceback" not in caplog.text + capfd.readouterr().err


def test_an_address_for_the_whole_network_is_warned_of(tmp_path: Path) -> None:
    (warning,) = config(tmp_path, "0.0.0.0:9100").warnings
    assert warning == "metrics.listen: everybody who reaches it can read the metrics"


def test_nothing_listens_unless_it_is_asked_for(tmp_path: Path) -> None:
    daemon = Daemon(load({"server": {"unix": str(tmp_path / "l.sock")}, "ledger": {"path": ":memory:"}}))
    assert daemon.metrics is None
    daemon.close()
