"""Executors: clients that make the calls of remote accounts. Without sockets, and then with the real clients."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gevent
import pytest

from actors.config import Config, load
from actors.daemon import Daemon
from actors.dialogue import Dialogue
from actors.executors import Executors, RemotePort
from actors.grants import Grant
from actors.presence.terms import Command, Op, Outcome, OutcomeKind, RetryRules
from actors.server_context import ServerContext
from protocol.client.aio import AsyncClient
from protocol.client.blocking import Client
from protocol.client.execution import Callbacks, CallOutcome
from protocol.codec import normalise
from protocol.events import Ack, Call, Rejected, Reply
from tests.server.world import Router, context, elsewhere, eventually

pytestmark = pytest.mark.real

REMOTE = {"ledger": {"path": ":memory:"}, "accounts": {"a": {"platform": "remote", "like": "telegram"}}}
SET = Command(Op.SET, "5", message="7", emoji="👍")


class Peer:
    """An executor without a socket."""

    def __init__(self, shared: ServerContext, session: str | None = None, **hello: Any) -> None:
        self.replies: list[Reply] = []
        grant = Grant("local", **hello)
        self.dialogue = Dialogue(shared, "peer", grant, self.replies.append)
        self.say({"type": "hello", "role": "execute", **({"session": session} if session else {})})

    def say(self, source: dict[str, Any]) -> Reply | None:
        count = len(self.replies)
        assert self.dialogue.take(normalise(source)) is None
        return self.replies[-1] if len(self.replies) > count else None

    @property
    def calls(self) -> list[Call]:
        return [reply for reply in self.replies if isinstance(reply, Call)]

    def take_calls(self, **fields: Any) -> Reply | None:
        return self.say({"type": "subscribe", "what": "calls", "id": "s", **fields})

    def answer(self, call: Call, outcome: str = "ok", **fields: Any) -> Reply | None:
        return self.say({"type": "call_result", "id": "r", "call_id": call.call_id, "outcome": outcome, **fields})


class Scene:
    def __init__(self) -> None:
        self.shared = context(Router())
        self.executors: Executors = self.shared.executors
        config = load({"accounts": {"a": {"platform": "remote"}, "b": {"platform": "remote"}}})
        self.ports = {name: self.executors.port(account) for name, account in config.accounts.items()}
        self.outcomes: list[Outcome] = []

    def peer(self, **fields: Any) -> Peer:
        return Peer(self.shared, **fields)

    def call(self, port: str = "a", command: Command = SET, deadline_ms: int = 5_000) -> None:
        self.ports[port].call(command, deadline_ms, self.outcomes.append)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    for port in scene.ports.values():
        port.close()
    gevent.sleep(0.001)


def test_a_call_goes_to_the_executor_and_its_answer_comes_back(scene: Scene) -> None:
    peer = scene.peer()
    assert peer.take_calls() == Ack(id="s", result="applied")
    scene.call()
    [call] = peer.calls
    assert (call.account, call.conversation, call.message, call.op, call.emoji) == ("a", "5", "7", "set", "👍")
    assert 4_000 < call.deadline_ms <= 5_000
    assert call.epoch == 0
    assert peer.answer(call, handle="h") == Ack(id="r", result="applied")
    assert scene.outcomes == [Outcome(OutcomeKind.OK, "h")]
    assert peer.answer(call) == Ack(id="r", result="late")
    assert len(scene.outcomes) == 1


def test_a_limit_is_told_with_all_that_belongs_to_it(scene: Scene) -> None:
    peer = scene.peer()
    peer.take_calls()
    scene.call()
    peer.answer(peer.calls[0], "rate_limited", retry_after_ms=700, scope="conversation", detail="slow down")
    assert scene.outcomes == [
        Outcome(OutcomeKind.RATE_LIMITED, retry_after_ms=700, scope="conversation", detail="slow down")
    ]


def test_the_newest_executor_gets_the_calls_and_the_one_before_it_when_it_leaves(scene: Scene) -> None:
    old, new = scene.peer(), scene.peer()
    old.take_calls()
    new.take_calls(account="a")
    scene.call("a")
    scene.call("b")
    assert [call.account for call in new.calls] == ["a"]
    assert [call.account for call in old.calls] == ["b"]
    new.dialogue.leave()
    scene.call("a")
    assert [call.account for call in old.calls] == ["b", "a"]


def test_a_result_counts_only_from_the_session_that_got_the_call(scene: Scene) -> None:
    mine, other = scene.peer(session="mine"), scene.peer(session="other")
    other.take_calls()
    mine.take_calls()
    scene.call()
    [call] = mine.calls
    assert other.answer(call) == Ack(id="r", result="late")
    assert scene.outcomes == []
    mine.answer(call)
    assert len(scene.outcomes) == 1


def test_a_lost_executor_leaves_an_unknown_outcome(scene: Scene) -> None:
    peer = scene.peer()
    peer.take_calls()
    scene.call()
    peer.dialogue.leave()
    assert scene.outcomes == [Outcome(OutcomeKind.UNKNOWN, detail="the executor is lost")]


def test_a_call_waits_for_an_executor_within_its_deadline(scene: Scene) -> None:
    scene.call()
    scene.call(deadline_ms=10)
    eventually(lambda: scene.outcomes == [Outcome(OutcomeKind.TRANSIENT, detail="no executor is connected")])
    peer = scene.peer()
    peer.take_calls()
    assert len(peer.calls) == 1
    assert peer.calls[0].deadline_ms < 5_000


def test_a_call_that_is_not_answered_in_time_is_unknown(scene: Scene) -> None:
    peer = scene.peer()
    peer.take_calls()
    scene.call(deadline_ms=10)
    eventually(lambda: [outcome.detail for outcome in scene.outcomes] == ["deadline"])
    assert scene.outcomes[0].kind is OutcomeKind.UNKNOWN
    assert peer.answer(peer.calls[0]) == Ack(id="r", result="late")


def test_a_closed_port_ends_its_calls(scene: Scene) -> None:
    scene.call("b")
    peer = scene.peer()
    peer.take_calls(account="a")
    scene.call("a")
    for port in scene.ports.values():
        port.close()
    scene.call("a")
    assert scene.outcomes == []  # never before the method has returned
    eventually(lambda: len(scene.outcomes) == 3)
    assert sorted(outcome.kind for outcome in scene.outcomes) == ["transient", "transient", "unknown"]


@pytest.mark.parametrize(
    ("source", "code", "field"),
    [
        ({"account": "c"}, "unknown_account", "account"),
        ({"conversation": "5"}, "bad_value", "conversation"),
    ],
)
def test_calls_that_cannot_be_had_are_refused(scene: Scene, source: dict[str, Any], code: str, field: str) -> None:
    reply = scene.peer().take_calls(**source)
    assert isinstance(reply, Rejected)
    assert (reply.code, reply.field) == (code, field)


def test_an_executor_needs_the_grant_and_the_role(scene: Scene) -> None:
    foreign = scene.peer(accounts=frozenset({"b"}))
    reply = foreign.take_calls(account="a")
    assert isinstance(reply, Rejected)
    assert reply.code == "unauthorized"
    foreign.take_calls()
    scene.call("a")
    assert foreign.calls == []
    sender = Dialogue(scene.shared, "peer", Grant("local"), foreign.replies.append)
    sender.take(normalise({"type": "subscribe", "what": "calls"}))
    last = foreign.replies[-1]
    assert isinstance(last, Rejected)
    assert (last.code, last.field) == ("unauthorized", "what")
    executor = scene.peer()
    refused = executor.say({"type": "thinking", "account": "a", "conversation": "c", "message": "m"})
    assert isinstance(refused, Rejected)


def test_an_outcome_that_there_is_not_is_rejected_and_the_call_goes_on(scene: Scene) -> None:
    peer = scene.peer()
    peer.take_calls()
    scene.call()
    reply = peer.answer(peer.calls[0], "splendid")
    assert isinstance(reply, Rejected)
    assert (reply.code, reply.field) == ("bad_value", "outcome")
    peer.answer(peer.calls[0])
    assert len(scene.outcomes) == 1


def test_what_needs_no_call_is_not_handed_over() -> None:
    executors = Executors()
    port = RemotePort(load(REMOTE).accounts["a"], executors)
    outcomes: list[Outcome] = []
    port.call(Command(Op.TYPING_STOP, "5"), 1_000, outcomes.append)  # Telegram's typing fades by itself
    eventually(lambda: [outcome.kind for outcome in outcomes] == [OutcomeKind.OK])


# --- with real clients -------------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving(tmp_path: Path, **more: Any) -> Iterator[str]:
    config: Config = load(
        {
            **REMOTE,
            "server": {"unix": str(tmp_path / "l.sock")},
            "status": {"debounce_ms": 5, "min_change_ms": 0, "done_hold_ms": 20},
            "shutdown": {"budget_ms": 200},
            "limits": {"conversation": {"per_ms": 1, "count": 1_000}},
            **more,
        }
    )
    daemon = Daemon(config)
    daemon.start()
    try:
        yield str(config.server.unix)
    finally:
        daemon.stop()


def test_the_blocking_client_makes_the_calls(tmp_path: Path) -> None:
    calls: list[Call] = []
    threads: set[str] = set()

    def make(call: Call) -> object:
        calls.append(call)
        threads.add(threading.current_thread().name)
        return CallOutcome("ok")

    def play(address: str) -> Any:
        with Client(address, follow=True) as client:
            client.execute(Callbacks(make, start_typing=make)).wait_ready()
            with client.run(conversation=5, message=7) as run:
                run.thinking()
                while "🤔" not in [call.emoji for call in calls]:
                    time.sleep(0.001)
            return run.outcome()

    with serving(tmp_path) as address:
        outcome = elsewhere(lambda: play(address))
    assert (outcome.outcome, outcome.mark, outcome.final) == ("done", "👍", True)
    assert [call.emoji for call in calls if call.op == "set"] == ["🤔", "👍"]
    assert all(name.startswith("livesign-calls") for name in threads)


def test_the_asyncio_client_makes_the_calls(tmp_path: Path) -> None:
    calls: list[Call] = []

    async def make(call: Call) -> object:
        await asyncio.sleep(0)
        calls.append(call)
        return True

    async def play(address: str) -> Any:
        async with AsyncClient(address, follow=True) as client:
            await client.execute(Callbacks(make, start_typing=make)).wait_ready()
            async with client.run(conversation=5, message=7) as run:
                run.thinking()
                while "🤔" not in [call.emoji for call in calls]:
                    await asyncio.sleep(0.001)
            outcome = await run.aoutcome()
        return outcome

    with serving(tmp_path) as address:
        outcome = elsewhere(lambda: asyncio.run(play(address)))
    assert (outcome.outcome, outcome.mark, outcome.final) == ("done", "👍", True)
    assert [call.emoji for call in calls if call.op == "set"] == ["🤔", "👍"]


def test_a_stop_of_the_daemon_is_carried_out_by_the_executor(tmp_path: Path) -> None:
    made: list[str | None] = []
    with contextlib.ExitStack() as stack:
        with serving(tmp_path) as address:
            client = elsewhere(lambda: Client(address))
            stack.callback(lambda: elsewhere(lambda: client.close(0)))
            callbacks = Callbacks(lambda call: made.append(call.emoji), start_typing=lambda call: None)
            elsewhere(client.execute(callbacks).wait_ready)
            run = client.run(conversation=5, message=7).begin()
            run.thinking()
            eventually(lambda: made == ["🤔"])
        assert made == ["🤔", None]
        run.done()


def test_an_executor_comes_back_and_is_given_what_waits(tmp_path: Path) -> None:
    made: list[str] = []

    def play(address: str) -> None:
        first = Client(address)
        first.execute(Callbacks(lambda call: made.append("first"), start_typing=lambda call: None)).wait_ready()
        first.close()
        with Client(address) as client, client.run(conversation=5, message=7) as run:
            run.thinking()
            client.flush()
            client.execute(Callbacks(lambda call: made.append("second"), start_typing=lambda call: None)).wait_ready()
            while "second" not in made:
                pass

    with serving(tmp_path) as address:
        elsewhere(lambda: play(address))
    assert set(made) == {"second"}


def test_a_call_that_backs_off_is_made_at_once_when_its_executor_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actors.application.RetryRules", lambda: RetryRules(first_delay_ms=60_000))
    made: list[str | None] = []

    def play(address: str) -> None:
        with Client(address) as client:
            client.run(conversation=5, message=7).begin().done()
            while not client.stats().get("outcome_transient"):
                pass
            client.execute(Callbacks(lambda call: made.append(call.emoji))).wait_ready()
            while "👍" not in made:
                pass

    with serving(tmp_path, calls={"deadline_ms": 50}, typing={"mode": "never"}) as address:
        elsewhere(lambda: play(address))


def test_coroutine_functions_need_the_loop_they_belong_to(tmp_path: Path) -> None:
    async def make(call: Call) -> None: ...

    with (
        contextlib.closing(Client(str(tmp_path / "nobody"), backoff_s=(0.01, 0.05))) as client,
        pytest.raises(ValueError, match="use the asyncio client"),
    ):
        client.execute(Callbacks(make))


def test_an_executor_that_is_not_wanted_is_told_why(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with Client(address, backoff_s=(0.01, 0.05)) as client:
            client.execute(Callbacks(print), account="a").wait_ready(0.3)

    plain = {"a": {"platform": "sandbox"}}
    with serving(tmp_path, accounts=plain) as address, pytest.raises(ConnectionError, match="'a' is not remote"):
        elsewhere(lambda: play(address))
