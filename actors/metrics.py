"""The metrics page of ``livesign serve``, at ``metrics.listen``: over HTTP, in Prometheus' text format.

| path | answer |
| --- | --- |
| /metrics | everything that `stats` says, by account where it is of one |
| /health | 200 while it works, 503 when it stops or has failed |

There is no secret on it, and nothing of what is said in the chats; whoever reaches the address can read it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import gevent
from gevent.pool import Pool
from gevent.pywsgi import WSGIHandler, WSGIServer
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from actors.acceptor import Patient, listen_tcp
from actors.meters import ACCOUNT_COUNTERS, ACCOUNT_GAUGES, COUNTERS, GAUGES, OUTCOME

if TYPE_CHECKING:
    from actors.daemon import Daemon

log = logging.getLogger("livesign.metrics")

REQUESTS_MAX = 32
"""Connections at the same time."""
CONNECTION_S = 10.0
"""A connection lives no longer, whatever is asked, or is not."""


class MetricsPage:
    """Listens from `start` to `stop`. Used on the daemon's hub."""

    def __init__(self, address: str, daemon: Daemon) -> None:
        self._address = address
        self._daemon = daemon
        registry = CollectorRegistry()
        registry.register(_Collector(daemon))
        self._metrics: Any = make_wsgi_app(registry)
        self._server: _Server | None = None

    def start(self) -> None:
        """Raises `ListenError`."""
        host = self._address.rpartition(":")[0].strip("[]")
        self._server = _Server(
            listen_tcp(self._address),
            self._answer,
            spawn=Pool(REQUESTS_MAX),
            log=None,
            error_log=log,
            handler_class=_Handler,
            environ={"SERVER_NAME": host},  # else the library asks the name service
        )
        self._server.start()
        log.info("metrics at %s", self.url)

    @property
    def url(self) -> str:
        """Where it is."""
        assert self._server is not None
        return f"http://{self._address.rpartition(':')[0]}:{self._server.server_port}/metrics"

    def stop(self) -> None:
        """Close the listener and all connections."""
        server, self._server = self._server, None
        if server is not None:
            server.stop(timeout=0)

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/metrics":
                answer: Iterable[bytes] = self._metrics(environ, start_response)
                return answer
            case "/health":
                works = self._daemon.alive and not self._daemon.application.stopping
                status, text = ("200 OK", b"ok\n") if works else ("503 Service Unavailable", b"stopping\n")
            case _:
                status, text = "404 Not Found", b"there are /metrics and /health\n"
        start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
        return [text]


class _Server(Patient, WSGIServer):
    def not_accepted(self, error: OSError) -> None:
        log.debug("no connection can be accepted: %s", error.strerror)


class _Handler(WSGIHandler):
    def handle(self) -> None:
        with gevent.Timeout(CONNECTION_S, False):  # type: ignore[arg-type]
            super().handle()


class _Collector:
    """Reads everything when it is asked."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def describe(self) -> Iterable[Metric]:
        """Nothing is known before the daemon has started."""
        return ()

    def collect(self) -> Iterator[Metric]:
        daemon = self._daemon
        stats = Counter(daemon.stats())
        for name in daemon.gauges:
            yield GaugeMetricFamily(f"livesign_{name}", GAUGES[name], stats[name])
        for name, meaning in COUNTERS.items():
            yield CounterMetricFamily(f"livesign_{name}", meaning, stats[name])
        accounts = {name: each.lanes for name, each in daemon.application.parts.accounts.items()}
        yield from _by_account(
            CounterMetricFamily, ACCOUNT_COUNTERS, {n: each.counters for n, each in accounts.items()}
        )
        yield from _by_account(
            GaugeMetricFamily,
            ACCOUNT_GAUGES,
            {
                name: {
                    "calls_under_way": lanes.under_way,
                    "lanes": len(lanes),
                    "stopped": int(lanes.stopped is not None),
                }
                for name, lanes in accounts.items()
            },
        )
        outcomes = CounterMetricFamily("livesign_outcomes", "what became of calls", labels=["account", "outcome"])
        for name, lanes in accounts.items():
            for key, value in lanes.counters.items():
                if key.startswith(OUTCOME):
                    outcomes.add_metric([name, key.removeprefix(OUTCOME)], value)
        yield outcomes


def _by_account(
    family: type[CounterMetricFamily | GaugeMetricFamily],
    meanings: Mapping[str, str],
    values: Mapping[str, Mapping[str, int]],
) -> Iterator[Metric]:
    for name, meaning in meanings.items():
        metric = family(f"livesign_account_{name}", meaning, labels=["account"])
        for account, of_account in values.items():
            metric.add_metric([account], of_account.get(name, 0))
        yield metric
