"""Calls for the transport's tests, and what they expect of a failed one."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gevent
import pytest

from actors.platforms.spec import Request
from actors.platforms.transport import GeventTransport, NoAnswer, NotSent
from tests.platforms.raw_server import RawServer, Script

SECRET = "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
POST = Request("POST", f"/bot{SECRET}/sendChatAction", (("Content-Type", "application/json"),), b"{}")
PUT = Request("PUT", "/v3/typing", (("Authorization", f"Bearer {SECRET}"),), b'{"typing":true}')
GET = Request("GET", "/v3/whoami", (("Authorization", f"Bearer {SECRET}"),))
DELETE = Request("DELETE", "/v1/marks")


@contextmanager
def against(script: Script, connections: int = 2, **options: Any) -> Iterator[tuple[RawServer, GeventTransport]]:
    with RawServer(script) as peer:
        transport = GeventTransport(peer.url + "/api", connections, **options)
        try:
            yield peer, transport
        finally:
            transport.close()


def refused(transport: GeventTransport, request: Request = POST, deadline_ms: int = 2_000) -> Exception:
    """How the call failed; its whole text was searched for the secret."""
    with pytest.raises((NotSent, NoAnswer)) as caught:
        transport.send(request, deadline_ms)
    text = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in text
    return caught.value


@contextmanager
def the_hub_runs_on() -> Iterator[None]:
    """Fails when nothing else could run meanwhile."""
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while True:
            gevent.sleep(0.005)
            ticks += 1

    others = gevent.spawn(tick)
    yield
    others.kill()
    assert ticks > 4
