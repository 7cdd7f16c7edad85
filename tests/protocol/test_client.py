"""The blocking client against a scripted server: answers, lost connections, refusals."""

from __future__ import annotations

import contextlib
import pathlib
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from protocol.client import link
from protocol.client.blocking import Client, OutboxFullError
from protocol.codec import DecodeError
from protocol.events import (
    Ack,
    Closing,
    Done,
    Ping,
    Pong,
    Rejected,
    Reply,
    Stats,
    StatsReply,
    Thinking,
    Welcome,
)
from tests.protocol.scripted_server import ScriptedServer

pytestmark = pytest.mark.real

EVENT = Thinking(conversation="c", message="m")
QUICK = (0.01, 0.05)


def wait_until(condition: Callable[[], object]) -> None:
    """Wait (5 s at most) until ``condition()`` holds."""
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[ScriptedServer]:
    server = ScriptedServer(str(tmp_path / "l.sock"))
    yield server
    server.close()


@pytest.fixture
def client(server: ScriptedServer) -> Iterator[Client]:
    client = Client(server.path, session="bot", token="t0ken", backoff_s=QUICK)
    yield client
    client.close(timeout_s=0)


def test_it_says_hello_and_then_sends(server: ScriptedServer, client: Client) -> None:
    event_id = client.send(EVENT)
    hello = server.accept()
    assert (hello.session, hello.token, hello.role) == ("bot", "t0ken", "send")
    got = server.receive()
    assert got == Thinking(conversation="c", message="m", id=event_id)
    assert client.unacknowledged == 1
    server.ack(got)
    assert client.flush()


def test_nothing_is_sent_before_the_welcome(server: ScriptedServer, client: Client) -> None:
    client.send(EVENT)
    server.accept(welcome=False)
    with pytest.raises(TimeoutError):
        server.receive(timeout_s=0.05)


def test_a_request_waits_for_its_answer(server: ScriptedServer, client: Client) -> None:
    def play() -> None:
        server.accept()
        first, second = server.receive(), server.receive()
        server.say(Rejected(code="bad_value", detail="no", id=second.id))
        server.ack(first)

    client.send(EVENT)
    with playing(play):
        answer = client.request(Thinking(conversation="c", message="m", id="e2"))
    assert answer == Rejected(code="bad_value", detail="no", id="e2")
    assert client.flush()


@contextlib.contextmanager
def playing(script: Callable[[], None]) -> Iterator[None]:
    """Run the server's part beside the test's."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            script()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(10)
        assert errors == []


def test_a_request_gives_up_in_words(server: ScriptedServer, client: Client) -> None:
    server.accept()
    with pytest.raises(TimeoutError, match=r"no answer within 0\.02 s"):
        client.request(EVENT, timeout_s=0.02)
    assert client.unacknowledged == 1


def test_what_was_not_acknowledged_is_sent_again_over_a_new_connection(server: ScriptedServer, client: Client) -> None:
    for message in "abc":
        client.send(Thinking(conversation="c", message=message, id=message))
    server.accept()
    first = [server.receive() for _ in range(3)]
    server.ack(first[0])
    wait_until(lambda: client.unacknowledged == 2)
    hello = server.accept()
    assert hello.session == "bot"
    assert server.receive() == Thinking(
        conversation="c", message="a"
    )  # what still holds, told without asking for an ack
    assert [server.receive().id for _ in range(2)] == ["b", "c"]


def test_it_survives_a_server_that_is_away(server: ScriptedServer, client: Client) -> None:
    server.accept()
    client.wait_connected()
    server.close()
    client.send(EVENT)
    wait_until(lambda: "refused" in str(client.last_error))
    assert server.path in str(client.last_error), "it says whom it cannot reach"
    with pytest.raises(ConnectionError, match="refused"):
        client.wait_connected(timeout_s=0.01)
    server.listen()
    server.accept()
    assert isinstance(server.receive(), Thinking)
    client.wait_connected()
    assert client.last_error is None


def test_a_refusal_is_told_to_who_waits_for_the_connection(
    server: ScriptedServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def play() -> None:
        for _ in range(3):
            server.accept(welcome=False)
            server.say(
                Rejected(code="unauthorized", detail="unknown token", field="token"),
                Closing(reason="unknown token"),
            )

    with playing(play), pytest.raises(ConnectionError, match="unknown token"):
        client.wait_connected(timeout_s=0.3)
    assert [record.message for record in caplog.records] == ["no connection to livesign: unknown token"], "said once"
    assert "t0ken" not in caplog.text


def test_a_rejected_event_is_not_sent_again_and_is_logged(
    server: ScriptedServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(EVENT)
    server.accept()
    server.say(Rejected(code="unknown_account", detail="there is no account", id=server.receive().id))
    assert client.flush()
    assert "unknown_account: there is no account" in caplog.text


def test_a_bad_event_is_refused_at_once(client: Client) -> None:
    with pytest.raises(DecodeError, match="conversation"):
        client.send({"type": "thinking", "message": "m"})
    assert client.unacknowledged == 0


def test_mappings_are_events_too(server: ScriptedServer, client: Client) -> None:
    client.send({"type": "thinking", "conversation": -5, "message": 7})
    server.accept()
    got = server.receive()
    assert got == Thinking(conversation="-5", message="7", id=got.id)


def test_a_full_buffer_refuses_a_terminal_and_forgets_a_phase(tmp_path: pathlib.Path) -> None:
    with contextlib.closing(Client(str(tmp_path / "nobody"), capacity=1, backoff_s=QUICK)) as client:
        client.send(Done(conversation="c", message="m"))
        client.send(EVENT)
        assert client.dropped == 1
        with pytest.raises(OutboxFullError):
            client.send(Done(conversation="c", message="m2"))
        assert client.close(timeout_s=0) is False


def test_a_run_ends_with_its_block(server: ScriptedServer, client: Client) -> None:
    with pytest.raises(KeyboardInterrupt), client.run(conversation="c", message="m", direct=True) as run:
        run.thinking()
        raise KeyboardInterrupt
    server.accept()
    assert [type(server.receive()).__name__ for _ in range(3)] == ["Received", "Thinking", "Cancelled"]


def test_stats_are_asked_for(server: ScriptedServer, client: Client) -> None:
    def play() -> None:
        server.accept()
        event = server.receive()
        assert isinstance(event, Stats)
        server.say(StatsReply(counters={"events": 5}))
        server.ack(event)

    with playing(play):
        assert client.stats() == {"events": 5}


def test_it_pings_and_notices_silence(server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PING_S", 0.02)
    monkeypatch.setattr(link, "SILENCE_S", 0.1)
    server.accept()
    for _ in range(8):
        assert isinstance(server.receive(), Ping)
        server.say(Pong())
    client.wait_connected()
    wait_until(lambda: client.last_error)
    assert client.last_error == "livesign has said nothing for 0.1 s"
    server.accept()


def test_on_reply_hears_everything_but_pongs_and_may_fail(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Reply] = []

    def hear(reply: Reply) -> None:
        heard.append(reply)
        raise ValueError("not ours")

    client = Client(server.path, role="subscribe", on_reply=hear, backoff_s=QUICK)
    assert server.accept().role == "subscribe"
    server.say(Pong())
    client.send(EVENT)
    server.ack(server.receive())
    assert client.close()
    wait_until(lambda: len(heard) == 2)
    assert [type(reply) for reply in heard] == [Welcome, Ack]
    assert "hear failed" in caplog.text


def test_what_is_no_livesign_is_told(server: ScriptedServer, client: Client) -> None:
    server.accept(welcome=False)
    server.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    wait_until(lambda: client.last_error)
    assert "no livesign" in str(client.last_error)


def test_a_closed_client_takes_nothing_and_its_thread_is_gone(server: ScriptedServer) -> None:
    before = threading.active_count()
    client = Client(server.path, backoff_s=QUICK)
    assert client.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="closed"):
        client.send(EVENT)


def test_many_threads_may_send(server: ScriptedServer, client: Client) -> None:
    def send() -> None:
        for _ in range(100):
            client.send(EVENT)

    def play() -> None:
        server.accept()
        for _ in range(800):
            server.ack(server.receive())

    with playing(play):
        threads = [threading.Thread(target=send) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert client.flush(timeout_s=10)
