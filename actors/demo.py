"""`livesign demo`: one process, no configuration, real sockets and real HTTP.

A chat service and a livesign server start on loopback; scripted agents work on messages in a few chats as clients of
that server; the screen shows what the chat service knows. At the end everything must be gone from the chats by
itself: what is left then is counted, over the service's own HTTP interface, before anything is shut down.

``speed`` runs all clocks of the demo faster: livesign's, the chat service's and the script's.

Ctrl-C, SIGTERM or the end of the terminal end the show: what shows is taken back first; a second signal does not wait for
that.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import gevent
import msgspec
from gevent.event import Event
from rich.console import Console
from rich.live import Live
from rich.text import Text

from actors.config import Config, load
from actors.daemon import Daemon
from actors.demo_canvas import Canvas
from actors.demo_picture import Picture, PlainLines
from actors.demo_script import ACCOUNTS, CHATS, CONFIG, PLAN, SCENES
from actors.demo_signals import Told, signals
from actors.demo_stage import Stage
from actors.demo_view import MIN_HEIGHT, MIN_WIDTH, screen
from actors.exits import FAILED, OK
from actors.runtime import HubDriver, Runtime
from actors.sandbox import SandboxClient, SandboxOptions, SandboxService

FRAME_S = 0.1
"""Between two looks at the chats."""
LAST_LOOK_MS = 1_000
"""The empty chats are shown for so long at the end."""
REST_MAX_MS = 20_000
"""What still shows so long after the last step would never go."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How it went. ``calls_made``, ``marks_left`` and ``typing_left`` are the chat service's own figures."""

    events: int
    calls_made: int
    calls_saved: int
    marks_left: int
    typing_left: int
    errors: int

    @property
    def good(self) -> bool:
        """Nothing is left, nothing went wrong."""
        return not (self.marks_left or self.typing_left or self.errors)


class ScaledClock:
    """Real time, ``speed`` times as fast, from 0 on."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._start_ns = time.monotonic_ns()
        self._wall_ms = time.time_ns() // 1_000_000

    def now_ns(self) -> int:
        """Nanoseconds since the start."""
        return int((time.monotonic_ns() - self._start_ns) * self._speed)

    def now_ms(self) -> int:
        """Milliseconds since the start."""
        return self.now_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Where the wall clock would be at this speed."""
        return self._wall_ms + self.now_ms()


class Demo:
    """One performance. `play` while `picture` is looked at; then `summary`."""

    def __init__(self, directory: Path, speed: float, hurry: Event | None = None) -> None:
        """Once ``hurry`` is set, `close` does not wait until everything is taken back."""
        self.speed = speed
        self.faults = _Faults()
        self._hurry = hurry
        self.over = False
        """Whether the last step is played and the chats are at rest (or should be)."""
        self._sandbox = SandboxService(options=SandboxOptions(time_scale=speed)).start()
        socket_path = str(directory / "livesign.sock")
        clock = ScaledClock(speed)
        runtime = Runtime(HubDriver(speed=speed), clock, name="demo")
        self._daemon = Daemon(_config(socket_path, self._sandbox.base_url), runtime)
        self._daemon.start()
        self._eyes = SandboxClient(self._sandbox.base_url)
        self._start_ms = clock.now_ms()
        self._now_ms = clock.now_ms
        self._stage = Stage(socket_path, self._sandbox.base_url, self.now_ms, speed)

    def now_ms(self) -> int:
        """The demo's clock."""
        return self._now_ms() - self._start_ms

    def play(self) -> None:
        """From the first message until nothing is under way any more."""
        try:
            self._eyes.rules(PLAN)
            self._stage.play(SCENES)
            until_ms = self.now_ms() + REST_MAX_MS
            while not self._daemon.application.parts.at_rest and self.now_ms() < until_ms:
                gevent.sleep(FRAME_S / self.speed)
            gevent.sleep(LAST_LOOK_MS / 1_000 / self.speed)
        finally:
            self.over = True

    def picture(self) -> Picture:
        """What there is to see now."""
        counters = self._daemon.application.counters()
        notes = list(self._stage.notes)  # before the look at the chats: what is told must not run ahead of them
        return Picture(
            t_ms=self.now_ms(),
            state=self._eyes.state(),
            calls=self._eyes.calls(last=0),
            notes=notes,
            events=counters.get("events", 0),
            saved=counters.get("calls_saved", 0),
        )

    def summary(self) -> Summary:
        """The figures now."""
        picture = self.picture()
        failures = self._daemon.application.counters().get("failures", 0)
        return Summary(
            events=picture.events,
            calls_made=picture.calls.total,
            calls_saved=picture.saved,
            marks_left=picture.state.marks,
            typing_left=picture.state.typing,
            errors=failures + len(self.faults.texts) + len(self._stage.errors),
        )

    @property
    def complaints(self) -> list[str]:
        """What went wrong, in words."""
        return [*self._stage.errors, *self.faults.texts]

    def close(self) -> None:
        """Stop everything."""
        self._stage.close()
        self._eyes.close()
        self._daemon.stop(self._hurry)
        self._sandbox.stop()


def run(*, speed: float = 1.0, json: bool = False, plain: bool = False, console: Console | None = None) -> int:
    """Play the demo on ``console`` (standard output); the exit code, 128 and its number where a signal has ended it."""
    console = console or Console(highlight=False)
    try:
        with _demo(speed) as demo:
            _perform(demo, None if json else console, plain)
            summary = demo.summary()
            complaints = demo.complaints
    except Told as told:
        return 128 + told.number
    if json:
        print(msgspec.json.encode(asdict(summary)).decode())
    else:
        _print_summary(summary, console)
    for complaint in complaints:
        print(f"livesign: {complaint}", file=sys.stderr)
    return OK if summary.good else FAILED


def _perform(demo: Demo, console: Console | None, plain: bool) -> None:
    playing = gevent.spawn(demo.play)
    try:
        if console is not None:
            show = _show if not plain and _fits(console) else _tell
            show(demo, console)
        playing.get()
    finally:
        playing.kill()


def _fits(console: Console) -> bool:
    width, height = console.size
    return console.is_terminal and not console.is_dumb_terminal and width >= MIN_WIDTH and height >= MIN_HEIGHT


@contextmanager
def _demo(speed: float) -> Iterator[Demo]:
    hurry = Event()
    with tempfile.TemporaryDirectory(prefix="livesign-demo-") as directory, signals(hurry):
        demo = Demo(Path(directory), speed, hurry)
        loggers = logging.getLogger("livesign"), logging.getLogger("actors")
        for logger in loggers:
            logger.addHandler(demo.faults)
        try:
            yield demo
        finally:
            demo.close()
            for logger in loggers:
                logger.removeHandler(demo.faults)


def _config(socket_path: str, base_url: str) -> Config:
    accounts = {name: {"platform": "sandbox", "base_url": base_url, "token": name} for name in ACCOUNTS}
    return load({**CONFIG, "server": {"unix": socket_path}, "accounts": accounts})


class _Faults(logging.Handler):
    """Keeps what livesign logs as an error; the rest would only disturb the screen."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


# --- showing ---------------------------------------------------------------------------------------------------------


def _show(demo: Demo, console: Console) -> None:
    """Live, until it is over."""

    def now() -> Canvas:
        return screen(demo.picture(), CHATS, console, demo.speed)

    with Live(now(), console=console, screen=True, auto_refresh=False, redirect_stderr=False) as live:
        while not demo.over:
            gevent.sleep(FRAME_S)
            live.update(now(), refresh=True)


def _tell(demo: Demo, console: Console) -> None:
    """In lines, until it is over."""
    plain = PlainLines(CHATS)
    while True:
        over = demo.over
        for line in plain.lines(demo.picture()):
            console.print(line, soft_wrap=True, markup=False, emoji=False)
        if over:
            return
        gevent.sleep(FRAME_S / 2)


def _print_summary(summary: Summary, console: Console) -> None:
    wished = summary.calls_made + summary.calls_saved
    left = f"{summary.marks_left} marks and {summary.typing_left} typing indicators"
    lines = (
        Text.assemble(("livesign demo", "bold"), " is over."),
        f"  {summary.events:4} events came from the agents",
        f"  {summary.calls_made:4} calls were made to the chat service",
        f"  {summary.calls_saved:4} more were not needed: of {wished} changes, those that were replaced in time",
        Text(f"  {left} are left behind", style="green" if summary.good else "red"),
        f"  {summary.errors:4} errors",
        "",
        "Next: livesign serve            a server with a chat to watch in the browser",
        "      livesign send --help      tell it what your bot does",
    )
    for line in lines:
        console.print(line, markup=False)
