"""The doors. Each takes bytes, and raises only where livesign has a fault."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from typing import Final

from actors.config import load
from actors.config_problems import ConfigError
from actors.platforms.registry import PLATFORMS, adapter
from actors.platforms.spec import HttpAdapter, Response
from actors.presence.terms import TYPING_OPS, Command, Op, Outcome
from actors.scenario import ScenarioError, read
from protocol.client.core import Core
from protocol.client.executor import Talk
from protocol.codec import MAX_EVENT_BYTES, Decoder, ReplyDecoder, encode
from protocol.errors import DecodeError
from protocol.events import Done, Hello, Subscribe, Thinking

ADAPTERS: Final[tuple[HttpAdapter, ...]] = tuple(adapter(name) for name in PLATFORMS)
_SENT: Final = (Thinking(id="1", conversation="c", message="m"), Done(id="2", conversation="c", message="m"))
STATUSES: Final = (200, 204, 400, 401, 403, 404, 409, 413, 429, 500, 502, 503, 999)


def _explains(error: Exception) -> None:
    assert str(error)


def _fed(decoder: Decoder | ReplyDecoder, data: bytes, piece: int) -> list[object]:
    items: list[object] = []
    for start in range(0, len(data), piece):
        for item in decoder.feed(data[start : start + piece]):
            items.append(repr(item.reply()) if isinstance(item, DecodeError) else repr(item))
        assert decoder.pending <= MAX_EVENT_BYTES + piece
    return items


def events(data: bytes) -> None:
    """A client's stream: pieces change nothing, and what is left over is bounded."""
    piece, stream = (data[0] % 32 + 1, data[1:]) if data else (1, b"")
    whole = _fed(Decoder(), stream, len(stream) or 1)
    assert _fed(Decoder(), stream, piece) == whole


def replies(data: bytes) -> None:
    """What a client hears from a server that may be anything."""
    _fed(ReplyDecoder(), data, 64)


def client(data: bytes) -> None:
    """What a client and an executor make of what they hear."""
    core, talk = Core(Hello(client="c"), 4), Talk(Hello(client="c", role="execute"), Subscribe(what="calls"))
    core.follow()
    most = sum(len(encode(core_event)) + 64 for core_event in _SENT) + 256
    for event in _SENT:
        core.add(event)
    for side in (core, talk):
        side.begin()
        for item in ReplyDecoder().feed(data):
            if isinstance(item, DecodeError):
                continue
            try:
                side.heard(item)
            except ConnectionError as error:
                side.lost(str(error))
                side.begin()
    assert len(core.take(1_000_000)) <= most
    assert len(core.outbox) <= len(_SENT)


def config(data: bytes) -> None:
    """A configuration file."""
    try:
        tree = tomllib.loads(data.decode("utf-8", "replace"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    try:
        load(tree, scenario=True)
    except ConfigError as error:
        _explains(error)


def scenario(data: bytes) -> None:
    """A scenario file."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(tree, dict):
        try:
            read(tree)
        except ScenarioError as error:
            _explains(error)


def answers(data: bytes) -> None:
    """What a platform, or something on the way to it, answers to a call."""
    head, body = data[:4].ljust(4, b"\0"), data[4:]
    op = tuple(Op)[head[1] % len(Op)]
    message = None if op in TYPING_OPS else "8"
    command = Command(op, "7", None, message, "👀", "handle", "key")
    headers = {"retry-after": body[:8].decode("latin-1"), "content-type": "application/json"} if head[3] % 2 else {}
    response = Response(STATUSES[head[2] % len(STATUSES)], headers, body)
    outcome = ADAPTERS[head[0] % len(ADAPTERS)].outcome(command, response)
    assert isinstance(outcome, Outcome)
    assert outcome.retry_after_ms is None or outcome.retry_after_ms >= 0


TARGETS: Final[dict[str, Callable[[bytes], None]]] = {
    target.__name__: target for target in (events, replies, client, config, scenario, answers)
}
