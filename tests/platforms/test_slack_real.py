"""The Slack adapter over HTTP: against the emulator, if there is one, and side by side with slack_sdk."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from actors.platforms.port import HttpPlatform
from actors.platforms.registry import adapter
from actors.platforms.spec import Credentials
from actors.presence.terms import OK, Command, Op, OutcomeKind
from tests.platforms.fakes import outcome_of
from tests.platforms.recorder import Answer, Recorded, Recorder
from tests.platforms.slack_emulator import CHANNEL, TOKEN, Emulator, emulator
from tests.platforms.whole_tree import run_and_watch

pytestmark = pytest.mark.real

K = OutcomeKind


def platform_at(url: str, token: str = TOKEN) -> HttpPlatform:
    return HttpPlatform(adapter("slack"), Credentials(token=token, base_url=url))


# --- the emulator -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with emulator(tmp_path_factory.mktemp("slack")) as running:
        yield running


@pytest.fixture
def platform(slack: Emulator) -> Iterator[HttpPlatform]:
    made = platform_at(slack.url)
    yield made
    made.close()


def test_marks_are_set_swapped_and_taken_away(slack: Emulator, platform: HttpPlatform) -> None:
    ts = slack.say("please work on this")
    eyes = Command(Op.SET, CHANNEL, None, ts, "👀")
    assert outcome_of(platform, eyes) == OK
    assert outcome_of(platform, eyes).kind is K.ALREADY_DONE
    assert outcome_of(platform, replace(eyes, emoji="👨\u200d💻")) == OK
    assert slack.marks(ts) == ["eyes", "male-technologist"]
    assert outcome_of(platform, replace(eyes, op=Op.REMOVE)) == OK
    assert outcome_of(platform, replace(eyes, op=Op.REMOVE)).kind is K.ALREADY_DONE
    assert slack.marks(ts) == ["male-technologist"]


def test_a_message_that_is_not_there_is_gone(slack: Emulator, platform: HttpPlatform) -> None:
    assert outcome_of(platform, Command(Op.SET, CHANNEL, None, "1600000000.000100", "👀")).kind is K.GONE


def test_without_a_thread_nothing_is_asked(slack: Emulator, platform: HttpPlatform) -> None:
    assert outcome_of(platform, Command(Op.TYPING_START, CHANNEL)) == OK


def test_a_run_ends_with_nothing_left_although_the_method_is_limited(slack: Emulator) -> None:
    ts = slack.say("please work on this")
    removals: list[float] = []

    def limiting(request: Recorded) -> Answer:
        if request.path.endswith("/reactions.remove"):
            early = bool(removals) and time.monotonic() - removals[-1] < 1
            removals.append(time.monotonic())
            if early:
                return (
                    429,
                    {"Content-Type": "application/json", "Retry-After": "1"},
                    b'{"ok":false,"error":"ratelimited"}',
                )
        return 200, {"Content-Type": "application/json"}, slack.forward(request)

    with Recorder(limiting) as proxy:
        account = {"platform": "slack", "token": TOKEN, "base_url": f"{proxy.url}/api"}
        seen = run_and_watch(account, {"conversation": CHANNEL, "message": ts}, lambda: slack.marks(ts))
    assert ["+1"] in seen
    assert len(removals) <= 4


# --- slack_sdk --------------------------------------------------------------------------

C, TS, THREAD = "C0123456789", "1700000000.000100", "1699999999.123400"
STATUS = "is thinking..."
OPERATIONS = [
    Command(Op.SET, C, None, TS, "⏳"),
    Command(Op.REMOVE, C, None, TS, "⏳"),
    Command(Op.TYPING_START, C, THREAD),
    Command(Op.TYPING_STOP, C, THREAD),
]


def yes(request: Recorded) -> Answer:
    return 200, {"Content-Type": "application/json"}, b'{"ok":true}'


def client_at(url: str) -> Any:
    sdk = pytest.importorskip("slack_sdk", reason="slack_sdk is in the extra sdk")
    return sdk.WebClient(token=TOKEN, base_url=f"{url}/api/")


def meaning(requests: list[Recorded]) -> list[tuple[str, str, Any, str]]:
    return [(each.method, each.path, each.values, each.headers["authorization"]) for each in requests]


def test_slack_sdk_means_what_we_mean() -> None:
    with Recorder(yes) as server:
        client = client_at(server.url)
        client.reactions_add(channel=C, timestamp=TS, name="hourglass_flowing_sand")
        client.reactions_remove(channel=C, timestamp=TS, name="hourglass_flowing_sand")
        client.assistant_threads_setStatus(channel_id=C, thread_ts=THREAD, status=STATUS, loading_messages=[STATUS])
        client.assistant_threads_setStatus(channel_id=C, thread_ts=THREAD, status="")
        theirs = meaning(server.take())
        platform = platform_at(f"{server.url}/api")
        for command in OPERATIONS:
            assert outcome_of(platform, command) == OK
        platform.close()
        assert meaning(server.take()) == theirs
    assert len(theirs) == len(OPERATIONS)


def test_slack_sdk_and_we_understand_the_same_refusals() -> None:
    errors = pytest.importorskip("slack_sdk.errors", reason="slack_sdk is in the extra sdk")
    answers: list[Answer] = [
        (200, {"Content-Type": "application/json"}, b'{"ok":false,"error":"invalid_name"}'),
        (429, {"Content-Type": "application/json", "Retry-After": "7"}, b'{"ok":false,"error":"ratelimited"}'),
    ]
    for answer, kind in zip(answers, (K.INVALID_REACTION, K.RATE_LIMITED), strict=True):
        with Recorder(lambda request, answer=answer: answer) as server:  # type: ignore[misc]
            with pytest.raises(errors.SlackApiError) as refused:
                client_at(server.url).reactions_add(channel=C, timestamp=TS, name="eyes")
            platform = platform_at(f"{server.url}/api")
            outcome = outcome_of(platform, OPERATIONS[0])
            platform.close()
        assert outcome.kind is kind
        assert refused.value.response["error"] == outcome.detail
        if kind is K.RATE_LIMITED:
            assert int(refused.value.response.headers["Retry-After"]) * 1_000 == outcome.retry_after_ms
