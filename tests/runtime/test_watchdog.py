"""The watchdog, on the real clock: that is its subject."""

from __future__ import annotations

import logging
import time
from typing import Any

import gevent
import pytest

from actors.runtime import HubDriver, Runtime
from tests.runtime.stand import Call, GreenletRecorder, Recorder, native_sleep

pytestmark = pytest.mark.real


def hold(_actor: Any) -> None:
    native_sleep(0.25)


@pytest.mark.parametrize(("kind", "who"), [(Recorder, "Recorder"), (GreenletRecorder, "A greenlet")])
def test_whoever_holds_the_hub_is_reported_once_with_its_stack(
    kind: type[Recorder], who: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), Runtime(HubDriver(watchdog_ms=50)).start_thread() as runtime:
        ref = runtime.spawn(kind)
        ref.ask(Call(hold))
        assert runtime.counters["held"] == 1
    message = next(record.getMessage() for record in caplog.records if "has held the hub" in record.getMessage())
    assert message.startswith(who)
    assert "in hold" in message


def test_an_idle_or_busy_runtime_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    with Runtime(HubDriver(watchdog_ms=50)).start_thread() as runtime:
        ref = runtime.spawn(Recorder)
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            ref.ask("x")
        gevent.sleep(0.2)
        assert "held" not in runtime.counters
