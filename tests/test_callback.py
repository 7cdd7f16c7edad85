"""The bot's own functions make the calls: where they run, and what their answers mean."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import gevent
import pytest

from actors import AccountError, Call, Callbacks, CallOutcome, PresenceSupervisor, RunOutcome
from tests.end_to_end.processes import eventually

pytestmark = pytest.mark.real

TELEGRAM = {"like": "telegram", "limits": {"conversation": {"per_ms": 1, "count": 1_000}}}
DISCORD = {"like": "discord", "limits": {"route": {"per_ms": 1, "count": 1_000}}}


def config(**account: Any) -> dict[str, Any]:
    return {
        "ledger": {"path": ":memory:"},
        "status": {"debounce_ms": 5, "done_hold_ms": 20, "min_change_ms": 0},
        "accounts": {"bot": {"platform": "callback", **(account or TELEGRAM)}},
    }


class Bot:
    """A bot's client: what shows, and in which thread it was told."""

    def __init__(self, fault: Callable[[Call], object] | None = None) -> None:
        self.calls: list[Call] = []
        self.threads: set[str] = set()
        self.fault = fault

    def take(self, call: Call) -> object:
        self.calls.append(call)
        self.threads.add(threading.current_thread().name)
        return self.fault(call) if self.fault is not None else None

    async def atake(self, call: Call) -> object:
        await asyncio.sleep(0)
        return self.take(call)

    def sync(self, **more: Any) -> dict[str, Callbacks]:
        take = self.take
        return {"bot": Callbacks(take, take, take, take, **more)}

    def asynchronous(self, **more: Any) -> dict[str, Callbacks]:
        take = self.atake
        return {"bot": Callbacks(take, take, take, take, **more)}

    def marks(self) -> list[str | None]:
        return [call.emoji for call in self.calls if call.op in ("set", "clear")]


def raises(error: BaseException, op: str = "set") -> Callable[[Call], object]:
    def fault(call: Call) -> object:
        if call.op == op and call.emoji == "🤔":
            raise error
        return None

    return fault


def test_blocking_functions_are_called_in_threads() -> None:
    bot = Bot()
    with PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence:
        with presence.run(conversation=5, message=7) as run:
            run.thinking()
            eventually(lambda: "🤔" in bot.marks(), "thinking shows")
        assert run.outcome() == RunOutcome("done", mark="👍")
        eventually(lambda: bot.marks() == ["🤔", "👍", None], "the marks follow the run")
    assert bot.threads
    assert all(name.startswith("livesign-calls") for name in bot.threads)
    first = bot.calls[0]
    assert (first.account, first.conversation) == ("bot", "5")
    assert {call.op for call in bot.calls} == {"typing_start", "set", "clear"}  # Telegram's typing fades by itself


def test_coroutine_functions_are_called_in_the_bots_loop() -> None:
    bot = Bot()

    async def main() -> RunOutcome:
        async with PresenceSupervisor.start(config(), callbacks=bot.asynchronous()) as presence:
            async with presence.run(conversation=5, message=7) as run:
                run.thinking()
                await asyncio.sleep(0.05)
            outcome = await run.aoutcome()
        assert bot.marks()[-1] is None  # the stop has taken the mark off by the same way
        return outcome

    assert asyncio.run(main()) == RunOutcome("done", mark="👍")
    assert bot.threads == {threading.current_thread().name}


def test_a_loop_that_begins_later_is_found_and_its_functions_are_called() -> None:
    bot = Bot()
    presence = PresenceSupervisor.start(config(), callbacks=bot.asynchronous())

    async def main() -> RunOutcome:
        with presence.run(conversation=5, message=7) as run:
            await asyncio.sleep(0.02)
        outcome = await run.aoutcome()
        await presence.astop()
        return outcome

    assert asyncio.run(main()).mark == "👍"


def test_marks_that_are_added_one_by_one_are_removed_with_their_handle() -> None:
    def handle(call: Call) -> object:
        return f"$event-{call.emoji}" if call.op == "set" else None

    bot = Bot(handle)
    settings = config(like="matrix", limits={"account": {"per_ms": 1, "count": 1_000}})
    with PresenceSupervisor.start(settings, callbacks=bot.sync()) as presence:
        with presence.run(conversation="!room:s", message="$m") as run:
            run.queued()
            eventually(lambda: bool(bot.calls), "the first mark shows")
        assert run.outcome().mark == "👍️"  # the form that Matrix clients count together
        eventually(lambda: any(call.op == "remove" and call.emoji == "👍️" for call in bot.calls), "the last one goes")
    removed = [(call.emoji, call.handle) for call in bot.calls if call.op == "remove"]
    assert ("👀", "$event-👀") in removed


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        (ConnectionRefusedError(), "transient"),
        (KeyError("a mistake"), "bad_request"),
        (PermissionError(), "transient"),
        (CallOutcome("forbidden"), "forbidden"),
        (CallOutcome("gone"), "gone"),
        (False, "bad_request"),
    ],
)
def test_what_a_function_says_is_the_calls_outcome(
    fault: object, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(call: Call) -> object:
        if call.op != "set":
            return None
        if isinstance(fault, Exception):
            raise fault
        return fault

    bot = Bot(fail)
    with PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence:
        with presence.run(conversation=5, message=7):
            pass
        counted = f"outcome_{problem}"
        eventually(lambda: presence.stats().get(counted, 0) >= 1, f"{counted} is counted")
        presence.stop(0.1)
    if isinstance(fault, KeyError):
        assert caplog.text.count("the function for set failed") == 1


@pytest.mark.parametrize(
    "text",
    [
        "404 for url: https://api.telegram.org/bot110201543:{}/setMessageReaction",
        "invalid_auth: xoxb-0123456789-{}",
        "GET /_matrix/client/v3/sync?access_token=syt_{}",
        "headers {{'Authorization': 'Bearer {}'}}",
        "Authorization: Bot MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{}",
    ],
)
def test_a_token_in_an_error_of_the_bots_client_is_not_told(text: str, caplog: pytest.LogCaptureFixture) -> None:
    secret = "AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
    bot = Bot(raises(RuntimeError(text.format(secret))))
    with (
        PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence,
        presence.run(conversation=5, message=7) as run,
    ):
        run.thinking()
        eventually(lambda: "the function for set failed" in caplog.text, "the mistake is told")
    assert "RuntimeError: " in caplog.text
    assert secret not in caplog.text


def test_a_mapper_of_the_bots_own_goes_first() -> None:
    class Nope(Exception):
        pass

    bot = Bot(lambda call: (_ for _ in ()).throw(Nope) if call.op == "set" else None)
    mapper = {"outcome_of": lambda call, thing: CallOutcome("gone") if isinstance(thing, Nope) else None}
    with PresenceSupervisor.start(config(), callbacks=bot.sync(**mapper)) as presence:
        with presence.run(conversation=5, message=7) as run:
            pass
        assert run.outcome() == RunOutcome("done", problem="gone")


def test_a_limit_that_the_bots_client_has_met_is_kept() -> None:
    class FloodError(Exception):
        retry_after = 0.3

    began: list[float] = []

    def limited(call: Call) -> object:
        if call.op == "set":
            began.append(time.monotonic())
            if len(began) == 1:
                raise FloodError
        return None

    bot = Bot(limited)
    with PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence:
        with presence.run(conversation=5, message=7) as run:
            pass
        assert run.outcome().mark == "👍"
    assert began[1] - began[0] >= 0.3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_function_that_hangs_costs_its_call_and_nothing_else(asynchronous: bool) -> None:
    settings = {**config(), "calls": {"deadline_ms": 50, "typing_deadline_ms": 50}}
    released = threading.Event()
    cancelled: list[str] = []

    def hang(call: Call) -> object:
        if call.conversation == "5":
            released.wait(10)
        return None

    async def ahang(call: Call) -> object:
        try:
            await asyncio.sleep(10 if call.conversation == "5" else 0)
        except asyncio.CancelledError:
            cancelled.append(call.op)
            raise
        return None

    async def main() -> tuple[RunOutcome, dict[str, int]]:
        function = ahang if asynchronous else hang
        callbacks = {"bot": Callbacks(function, function, function, function)}
        async with PresenceSupervisor.start(settings, callbacks=callbacks) as presence:
            with presence.run(conversation=5, message=7):
                await asyncio.sleep(0.12)
            with presence.run(conversation=6, message=7) as other:
                pass
            outcome = await other.aoutcome()
            stats = await asyncio.to_thread(presence.stats)
            released.set()
            await presence.astop(0.1)
            return outcome, stats

    outcome, stats = asyncio.run(main())
    assert outcome.mark == "👍"
    assert stats["outcome_unknown"] >= 1
    assert bool(cancelled) is asynchronous


def test_without_a_loop_calls_are_tried_again_later() -> None:
    bot = Bot()
    presence = PresenceSupervisor.start(config(), callbacks=bot.asynchronous())
    with presence.run(conversation=5, message=7):
        pass
    eventually(lambda: presence.stats().get("outcome_transient", 0) >= 1, "it counts as transient")
    assert bot.calls == []
    assert presence.stop(0.05) is False


def test_stopping_in_the_loop_that_the_functions_need_does_not_hang(caplog: pytest.LogCaptureFixture) -> None:
    bot = Bot()

    async def main() -> float:
        began_s = time.monotonic()
        with PresenceSupervisor.start(config(), callbacks=bot.asynchronous()) as presence:
            presence.run(conversation=5, message=7).begin().done()
        return time.monotonic() - began_s

    assert asyncio.run(main()) < 2
    assert "use `async with`" in caplog.text


def test_on_a_hub_of_the_bots_own_functions_are_greenlets() -> None:
    bot = Bot()

    def main() -> RunOutcome:
        with PresenceSupervisor.start(config(), callbacks=bot.sync(), hub="caller") as presence:
            with presence.run(conversation=5, message=7) as run:
                gevent.sleep(0.02)
            return run.outcome()

    assert gevent.spawn(main).get().mark == "👍"
    assert bot.threads == {threading.current_thread().name} or all("Dummy" in name for name in bot.threads)


@pytest.mark.parametrize(
    ("account", "callbacks", "what"),
    [
        (TELEGRAM, Callbacks(), "like telegram, so its callbacks need set_reaction and start_typing"),
        (DISCORD, Callbacks(print, None, print), "like discord, so its callbacks need remove_reaction"),
        (
            {},
            Callbacks(print, None, print),
            r"like sandbox, so its callbacks need stop_typing \(not with typing.mode never\)",
        ),
    ],
)
def test_functions_that_are_missing_are_named(account: dict[str, Any], callbacks: Callbacks, what: str) -> None:
    settings = {"ledger": {"path": ":memory:"}, "accounts": {"bot": {"platform": "callback", **account}}}
    with pytest.raises(AccountError, match=what):
        PresenceSupervisor.start(settings, callbacks={"bot": callbacks})


def test_what_is_switched_off_needs_no_function() -> None:
    settings = config() | {"typing": {"mode": "never"}}
    with PresenceSupervisor.start(settings, callbacks={"bot": Callbacks(lambda call: None)}) as presence:
        with presence.run(conversation=5, message=7) as run:
            pass
        assert run.outcome().mark == "👍"


def test_callbacks_for_no_account_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="callbacks for bott: there is no such account"):
        PresenceSupervisor.start(config(), callbacks={"bott": Callbacks()})


def test_a_reload_can_bring_an_account_with_its_functions() -> None:
    bot, other = Bot(), Bot()
    with PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence:
        two = config()
        two["accounts"]["other"] = {"platform": "callback", **TELEGRAM}
        with pytest.raises(AccountError, match="no callbacks were given"):
            presence.reload(two)
        assert presence.reload(two, callbacks={"other": other.sync()["bot"]}).added == ("other",)
        with presence.run(account="other", conversation=5, message=7) as run:
            pass
        assert run.outcome().mark == "👍"
    assert bot.calls == []


def test_what_the_platform_cannot_do_is_not_asked_of_the_function() -> None:
    bot = Bot()
    with PresenceSupervisor.start(config(), callbacks=bot.sync()) as presence:
        with presence.run(conversation=5, message="no number") as run:
            pass
        assert run.outcome() == RunOutcome("done", problem="bad_request")
    assert all(call.op == "typing_start" for call in bot.calls)
