"""Signals during the demo: the first ends the show, the second the taking back after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import gevent
from gevent.event import Event


class Told(BaseException):
    """A signal has ended the show."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals(hurry: Event) -> Iterator[None]:
    """Raises `Told` where the present greenlet waits at the first signal, sets ``hurry`` at the second."""
    showing = gevent.getcurrent()
    told: list[int] = []

    def take(number: int) -> None:
        told.append(number)
        if len(told) == 1:
            gevent.kill(showing, Told(number))
        else:
            hurry.set()

    watchers = [gevent.signal_handler(each, take, each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    try:
        yield
    finally:
        for watcher in watchers:
            watcher.cancel()
