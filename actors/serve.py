"""``livesign serve``: a `Daemon` as a process of its own, from its start to its exit code.

| signal | what happens |
| --- | --- |
| SIGTERM, SIGINT | what shows is taken back, within ``shutdown.budget_ms``, then the process ends and says what is left |
| either once more | it ends at once; what still shows stays |
| SIGHUP | the file is read again; one that is refused changes nothing, and the log says why |

Signals that come while it starts count when it stands; several SIGHUPs in a row are one. One line on stderr says that it is
ready; everything else there is the log. A reader of it that goes away does not end the server. Nothing is monkey patched.
"""

from __future__ import annotations

import logging
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import gevent
from gevent.event import Event
from gevent.queue import Empty, Queue

from actors.config import SHOW_ALL, Config, ConfigError, load
from actors.daemon import AccountError, Daemon
from actors.exits import FAILED, OK, UNAVAILABLE, USAGE
from actors.ledger_sqlite import LedgerLockedError
from actors.pauses import PauseWatch
from actors.server import ListenError

log = logging.getLogger("livesign")

OTHER_FILES = 512
"""For calls to platforms, the ledger, pages and the rest."""
_LOOK_S = 1.0
"""How often it is seen whether the tree still stands."""
NO_CONFIGURATION = "no configuration given: one account on the built-in sandbox"
_RUNNING = "is livesign running already? Stop it, or set server.unix or server.tcp to another place"
_HINTS: Mapping[str, str] = MappingProxyType({
    "in use by another process": _RUNNING,
    "already in use": _RUNNING,
    "could replace": "set server.unix to a path in a directory that only you can write",
})  # fmt: skip


def serve(source: str | None, *, leave: bool = False) -> int:
    """Run with the configuration file ``source`` (None: none) until a signal ends it; returns the exit code.

    ``leave``: a signal leaves what shows to a successor on the same ledger. Raises ConfigError before anything is started.
    """
    signals: Queue[int] = Queue()
    watchers = [
        gevent.signal_handler(number, signals.put, number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    ]
    try:
        config = load(SHOW_ALL if source is None else source)
        for warning in config.warnings:
            log.warning("%s", warning)
        _raise_file_limit(config.server.limits.connections)
        pauses = PauseWatch()
        daemon = Daemon(config)
        daemon.gauges["gc_longest_pause_us"] = lambda: pauses.longest_us
        daemon.start()
    except (ListenError, LedgerLockedError) as error:
        return _failed(UNAVAILABLE, str(error))
    except AccountError as error:
        return _failed(USAGE, str(error))
    else:
        pauses.start()
        _say(ready_line(daemon))
        return _run(daemon, signals, pauses, leave)
    finally:
        for watcher in watchers:
            watcher.cancel()


def _raise_file_limit(connections: int) -> None:
    """Let the process have so many clients; what the system gives at first is often less."""
    wanted = connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        log.warning("server.limits.connections is %d, but the system allows only %d open files", connections, most)


def ready_line(daemon: Daemon) -> str:
    """Where it listens, and what accounts it has."""
    places = [daemon.config.server.unix, ":".join(map(str, daemon.server.tcp_address or ()))]
    accounts = [
        f"{name} ({account.platform}{_address(daemon, name)})" for name, account in daemon.config.accounts.items()
    ]
    listening = " and ".join(place for place in places if place) or "nowhere"
    return f"livesign: ready, listening on {listening}; accounts: {', '.join(accounts)}"


def _address(daemon: Daemon, name: str) -> str:
    service = daemon.sandboxes.get(name)
    return "" if service is None else f", watch it at {service.base_url}/"


def _run(daemon: Daemon, signals: Queue[int], pauses: PauseWatch, leave: bool) -> int:
    stands = _serve_until_told(daemon, signals)
    if leave and stands:
        daemon.leave()
        pauses.stop()
        return OK
    hurry = Event()
    impatience = gevent.spawn(_await_second, signals, hurry)
    try:
        clean = daemon.stop(hurry)
    finally:
        impatience.kill()
        pauses.stop()
    log.info("stopped; the longest pause of the garbage collector was %.1f ms", pauses.longest_us / 1_000)
    if not stands:
        return _failed(FAILED, "livesign has failed and cannot go on: the log above says why; start it again")
    if not clean:
        return _failed(FAILED, f"stopped before everything that shows could be taken back{_left(daemon)}")
    return OK


def _serve_until_told(daemon: Daemon, signals: Queue[int]) -> bool:
    """False: the tree has fallen."""
    while True:
        try:
            number = signals.get(timeout=_LOOK_S)
            while number == signal.SIGHUP and not signals.empty():  # one reading does for all of them
                number = signals.get()
        except Empty:
            if not daemon.alive:
                return False
            continue
        if number != signal.SIGHUP:
            log.info("%s: stopping", signal.Signals(number).name)
            return True
        _reload(daemon)


def _left(daemon: Daemon) -> str:
    left = daemon.application.left
    if not left:
        return ""
    lost = daemon.config.ledger_path == ":memory:" or daemon.gauges["ledger_degraded"]()
    known = "no ledger on disk remembers them" if lost else "the next start on this ledger takes them back"
    return f": {left} may still show; {known}"


def _await_second(signals: Queue[int], hurry: Event) -> None:
    while signals.get() == signal.SIGHUP:
        log.warning("SIGHUP: livesign is stopping, the configuration is not read again")
    log.warning("told twice: stopping at once")
    hurry.set()


def _reload(daemon: Daemon) -> None:
    source = daemon.config.source
    if source is None:
        log.warning("SIGHUP: there is no configuration file to read again")
        return None
    try:
        config = _checked(source)
    except ConfigError as error:
        daemon.refuse_reload()
        return _refused(*error.problems)
    try:
        change = daemon.reload(config)
    except ConfigError as error:
        return _refused(*error.problems)
    except AccountError as error:
        return _refused(error)
    except Exception:  # a fault of ours in reading must not end a server that works
        log.exception("reload failed")
        return None
    told = [
        f"{word} {', '.join(names)}"
        for word, names in (
            ("added", change.added),
            ("removed", change.removed),
            ("changed at once", change.changed),
            ("needs a new start:", change.ignored),
        )
        if names
    ]
    return log.info("reloaded %s%s", source, "".join(f"; {part}" for part in told))


def _refused(*problems: object) -> None:
    for problem in problems:
        log.error("reload refused, nothing has changed: %s", problem)


def _checked(source: str) -> Config:
    config = load(source)
    for warning in config.warnings:
        log.warning("%s", warning)
    return config


def _failed(code: int, text: str) -> int:
    hint = next((hint for sign, hint in _HINTS.items() if sign in text), None)
    _say(f"livesign: {text}" + (f"\nlivesign: {hint}" if hint else ""))
    return code


def _say(text: str) -> None:
    with suppress(OSError):  # whoever read it has gone, or the disk behind it is full
        print(text, file=sys.stderr, flush=True)
