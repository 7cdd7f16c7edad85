"""`livesign serve` is killed while the answer of a real homeserver is on its way: the next one asks again under the same key,
so that nothing is doubled, and brings the message to where it should be."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end.limiting_proxy import forwarder
from tests.end_to_end.processes import eventually
from tests.end_to_end.room import Room
from tests.end_to_end.synapse import running
from tests.platforms.recorder import Answer, Recorded, Recorder

pytestmark = pytest.mark.real

KEY = {"👀": "👀", "🤔": "🤔", "👍": "👍\ufe0f"}


class Swallower:
    """Passes everything on, and keeps the answer to the first request that fits."""

    def __init__(self, url: str, fits: Callable[[Recorded], bool]) -> None:
        self._forward = forwarder(url)
        self._fits = fits
        self.swallowed: Recorded | None = None
        self.answer: Answer | None = None
        self.goes_on = threading.Event()
        self.server = Recorder(self._pass)

    def _pass(self, request: Recorded) -> Answer:
        answer = self._forward(request)
        if self.swallowed is None and self._fits(request):
            self.swallowed, self.answer = request, answer
            self.goes_on.wait(20)
        return answer


def adds(emoji: str) -> Callable[[Recorded], bool]:
    return lambda request: "/send/m.reaction/" in request.path and request.values["m.relates_to"]["key"] == KEY[emoji]


def removes(request: Recorded) -> bool:
    return "/redact/" in request.path


@pytest.mark.parametrize(
    ("settle", "swallowed", "end", "left"),
    [
        ("clear", adds("🤔"), False, []),
        ("keep", adds("👍"), True, ["👍"]),
        ("keep", removes, True, ["👍"]),
    ],
    ids=[
        "a phase",
        "an end that stays",
        "a removal, and an end that stays",
    ],
)
def test_a_call_in_doubt_at_a_kill_is_made_good_by_the_next_server(
    tmp_path: Path, settle: str, swallowed: Callable[[Recorded], bool], end: bool, left: list[str]
) -> None:
    homeserver = running()
    proxy = Swallower(homeserver.base_url, swallowed)
    with proxy.server as server:
        room = Room(homeserver, tmp_path, settle=settle, adopt_ms=300, base_url=server.url)
        try:
            room.tell("received", direct=True)
            room.shows(KEY["👀"])
            room.tell("thinking")
            if end:
                if swallowed is not removes:
                    room.shows(KEY["🤔"])
                reply = room.client.send(type="done", conversation=room.id, message=room.message, id="end")
                assert reply["type"] == "ack"
            eventually(lambda: proxy.swallowed is not None, "the call")
            room.server.close()
            proxy.goes_on.set()
            server.take()
            room.serve_again()
            room.shows(*(KEY[emoji] for emoji in left))
            keys = [each["content"]["m.relates_to"]["key"] for each in room.eyes.events if each["type"] == "m.reaction"]
            again = [each.path for each in server.seen if swallowed(each)]
        finally:
            proxy.goes_on.set()
            room.close()
    assert proxy.answer is not None
    assert proxy.answer[0] == 200
    assert proxy.swallowed is not None
    if swallowed is not removes:
        assert again[0] == proxy.swallowed.path
        assert len(keys) == len(set(keys))
