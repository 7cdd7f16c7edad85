"""matrix-nio side by side with the Matrix adapter on the same server: their calls mean what ours mean."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any
from urllib.parse import unquote

import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import Command, Op, OutcomeKind
from tests.platforms.fakes import outcome_of
from tests.platforms.recorder import Answer, Recorded, Recorder

pytestmark = pytest.mark.real

TOKEN, USER, ROOM, EVENT, MARK = "syt_token", "@bot:localhost", "!room:localhost", "$event", "$mark"
KEY = "👍\ufe0f"


def homeserver(request: Recorded) -> Answer:
    body = {} if "/typing/" in request.path else {"event_id": MARK}
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


async def by_nio(url: str) -> None:
    nio = pytest.importorskip("nio", reason="matrix-nio is in the extra sdk")
    client = nio.AsyncClient(url, USER)
    client.access_token, client.user_id = TOKEN, USER
    try:
        relation = {"rel_type": "m.annotation", "event_id": EVENT, "key": KEY}
        sent = await client.room_send(ROOM, "m.reaction", {"m.relates_to": relation}, tx_id="t1")
        assert sent.event_id == MARK
        await client.room_redact(ROOM, MARK, tx_id="t2")
        await client.room_typing(ROOM, True, timeout=30_000)
        await client.room_typing(ROOM, False)
    finally:
        await client.close()


def meaning(requests: list[Recorded]) -> list[tuple[str, str, Any, str]]:
    """Method, path without the API's version and encoding, body and token, wherever they are told."""
    found = []
    for each in requests:
        path, _, query = each.path.partition("?")
        token = each.headers.get("authorization", "").removeprefix("Bearer ") or re.sub(".*access_token=", "", query)
        found.append((each.method, re.sub("/client/(r0|v3)/", "/client/", unquote(path)), each.values, token))
    return found


def test_matrix_nio_means_what_we_mean() -> None:
    with Recorder(homeserver) as server:
        asyncio.run(by_nio(server.url))
        theirs = meaning(server.take())
        platform = HttpPlatform(
            adapter("matrix"), Credentials(token=TOKEN, base_url=server.url, options={"user_id": USER})
        )
        for command in (
            Command(Op.SET, ROOM, None, EVENT, "👍", idempotency_key="t1"),
            Command(Op.REMOVE, ROOM, None, EVENT, "👍", MARK, idempotency_key="t2"),
            Command(Op.TYPING_START, ROOM, idempotency_key="t3"),
            Command(Op.TYPING_STOP, ROOM, idempotency_key="t4"),
        ):
            assert outcome_of(platform, command).kind is OutcomeKind.OK
        platform.close()
        ours = meaning(server.take())
    assert ours == theirs
    assert len(theirs) == 4
