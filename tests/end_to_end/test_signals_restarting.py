"""SIGTERM at the worst moment of an actor: it has just failed, and is being restarted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import ChatService, chat_service, eventually
from tests.end_to_end.signal_stage import Stage

pytestmark = [pytest.mark.real, pytest.mark.slow]

ACTORS = (
    "actors.router.RouterActor",
    "actors.platform_io.PlatformIOActor",
    "actors.conversation.ReactionActor",
    "actors.conversation.TypingActor",
)


@pytest.fixture
def service() -> Iterator[ChatService]:
    with chat_service() as running:
        yield running


def failing(place: str, times: int) -> str:
    """A script: once a file ``fail`` is there, the actor fails on so many messages; at the first the process gets SIGTERM."""
    module, _, name = place.rpartition(".")
    return f"""
import os, signal, sys, {module} as module
file = os.path.join(os.path.dirname(sys.argv[-1]), "fail")
left = [{times}]
def failing(self, message, __real=module.{name}.on_receive):
    if left[0] and os.path.exists(file):
        left[0] -= 1
        if left[0] == {times} - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("planted")
    return __real(self, message)
module.{name}.on_receive = failing
"""


@pytest.mark.parametrize(("place", "times"), [*zip(ACTORS, [1, 3, 1, 3], strict=True)])
def test_sigterm_while_an_actor_is_restarted_leaves_nothing(
    tmp_path: Path, service: ChatService, place: str, times: int
) -> None:
    stage = Stage(tmp_path, service)
    stage.write(budget_ms=5_000)
    with stage.ready(failing(place, times)) as (livesign, client):
        stage.open(client, 5)
        eventually(lambda: service.left() == (5, 5), "typing shows, too")
        (tmp_path / "fail").touch()
        client.send(type="tool", name="bash", **stage.run(0))
        client.close()
        livesign.line_with("SIGTERM: stopping")
        assert livesign.exit_code() == 0, livesign.text
        assert "planted" in livesign.text
    assert service.left() == (0, 0)
    assert not stage.remembered()
