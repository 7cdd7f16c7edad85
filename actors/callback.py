"""The bot's own functions as a platform port: they make the calls of an account on platform ``callback``.

- A coroutine function runs as a task of the bot's asyncio loop; any other in a few threads, or, where livesign shares the
  hub of a gevent process, in a greenlet. Never on livesign's own hub.
- What livesign knows to be impossible on the platform that the account is like, or to need no call, is not called.
- A call ends at its deadline whatever the function does: a task is cancelled, a thread is left to itself.
"""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import gevent

from actors.config import Account
from actors.platforms.like import LikeAdapter
from actors.platforms.port import Done
from actors.platforms.spec import Credentials
from actors.presence.terms import Command, Outcome, OutcomeKind
from actors.runtime import Runtime, RuntimeClosedError
from actors.sdk import sdk_outcome, to_outcome
from protocol.client.execution import Callbacks, CallOutcome, Function, is_async
from protocol.events import Call

__all__ = ["BotLoop", "CallbackPort", "Submit", "call_of", "missing_functions", "needless_call"]

log = logging.getLogger("livesign")

_TOKEN: Final = re.compile(
    r"\d{6,}:[\w-]{30,}|xox[a-z]-[\w-]{10,}|syt_\w{10,}|(?i:bearer|basic|bot) +[\w.~+/=-]{16,}|[\w-]{20,}\.[\w-]{6,7}\.[\w-]{25,}"
)
"""What tokens of platforms look like: the bot's own clients know them, and some put them into their errors."""

Submit = Callable[[Callable[[], object]], object]
"""Runs a blocking job somewhere else than on the hub."""


class BotLoop:
    """The asyncio loop of the bot: the one that was given, or the last one that livesign was used in."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop

    def see(self) -> None:
        """Livesign is being used here: remember the loop that runs, unless one is known."""
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio._get_running_loop()


@dataclass(slots=True)
class _Call:
    """A call under way."""

    done: Done
    timer: Any
    begun: bool = False
    """Whether the function was called."""
    task: asyncio.Task[None] | None = None


class CallbackPort:
    """See the module; a `PlatformPort`."""

    def __init__(self, account: Account, callbacks: Callbacks, runtime: Runtime, bot: BotLoop, submit: Submit) -> None:
        """Raises ValueError where a function is missing that the account's settings need."""
        missing = missing_functions(account, callbacks)
        if missing:
            hint = " (not with typing.mode never)" if missing[-1].endswith("typing") else ""
            raise ValueError(f"it is like {_like(account)}, so its callbacks need {' and '.join(missing)}{hint}")
        self._account = account
        self._callbacks = callbacks
        self._runtime = runtime
        self._bot = bot
        self._submit = submit
        self._calls: dict[int, _Call] = {}
        self._count = 0
        self._closed = False
        self._complained: set[str] = set()

    # --- the runtime's thread ------------------------------------------------------------------------------------

    def call(self, command: Command, deadline_ms: int, done: Done) -> None:
        """See `PlatformPort`."""
        self._count += 1
        number = self._count
        timer = gevent.get_hub().loop.timer(deadline_ms / 1_000)
        self._calls[number] = _Call(done, timer)
        timer.start(self._expired, number)
        needless = needless_call(self._account, command)
        if self._closed:
            needless = Outcome(OutcomeKind.TRANSIENT, detail="closed")
        if needless is not None:
            gevent.get_hub().loop.run_callback(self._end, number, needless)
            return
        call = call_of(self._account, command, deadline_ms, str(number))
        function = self._callbacks.function_for(call.op)
        if function is None:
            nothing = Outcome(OutcomeKind.BAD_REQUEST, detail=f"there is no function for {call.op}")
            gevent.get_hub().loop.run_callback(self._end, number, nothing)
        elif is_async(function):
            self._start_task(number, function, call)
        else:
            self._submit(partial(self._work, number, function, call))

    def close(self) -> None:
        """See `PlatformPort`."""
        self._closed = True
        for number in list(self._calls):
            self._cancel(self._calls[number])
            gevent.get_hub().loop.run_callback(self._end, number, Outcome(OutcomeKind.UNKNOWN, detail="closed"))

    def _start_task(self, number: int, function: Function, call: Call) -> None:
        loop = self._bot.loop
        try:
            if loop is None:
                raise RuntimeError
            loop.call_soon_threadsafe(self._begin_task, number, function, call)
        except RuntimeError:
            away = Outcome(OutcomeKind.TRANSIENT, detail="the bot's asyncio loop does not run")
            gevent.get_hub().loop.run_callback(self._end, number, away)

    def _expired(self, number: int) -> None:
        call = self._calls.get(number)
        if call is not None:
            self._cancel(call)
            kind = OutcomeKind.UNKNOWN if call.begun else OutcomeKind.TRANSIENT
            self._end(number, Outcome(kind, detail="deadline"))

    def _cancel(self, call: _Call) -> None:
        task, loop = call.task, self._bot.loop
        if task is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    def _end(self, number: int, outcome: Outcome) -> None:
        call = self._calls.pop(number, None)
        if call is not None:
            call.timer.close()
            call.done(outcome)

    # --- the bot's thread or loop --------------------------------------------------------------------------------

    def _begin_task(self, number: int, function: Function, call: Call) -> None:
        waiting = self._calls.get(number)
        if waiting is not None:  # else its deadline is over
            waiting.task = asyncio.get_running_loop().create_task(self._run(number, function, call))

    async def _run(self, number: int, function: Function, call: Call) -> None:
        result: object
        self._mark_begun(number)
        try:
            running: Any = function(call)
            result = await running
        except asyncio.CancelledError as error:
            self._answer(number, call, error)
            raise
        except Exception as error:
            result = error
        self._answer(number, call, result)

    def _work(self, number: int, function: Function, call: Call) -> None:
        if number not in self._calls:
            return
        self._mark_begun(number)
        result: object
        try:
            result = function(call)
        except Exception as error:
            result = error
        self._answer(number, call, result)

    def _mark_begun(self, number: int) -> None:
        waiting = self._calls.get(number)
        if waiting is not None:
            waiting.begun = True

    def _answer(self, number: int, call: Call, result: object) -> None:
        outcome = self._judge(call, result)
        try:
            self._runtime.call_soon(partial(self._end, number, to_outcome(outcome)))
        except RuntimeClosedError:
            pass  # livesign has stopped meanwhile

    def _judge(self, call: Call, result: object) -> CallOutcome:
        outcome = None if self._callbacks.outcome_of is not None else sdk_outcome(call, result)
        if outcome is None:
            outcome = self._callbacks.judge(call, result)
        if outcome.outcome == "bad_request" and isinstance(result, Exception):
            self._complain(call.op, result)
        return outcome

    def _complain(self, op: str, error: Exception) -> None:
        """A mistake in the bot's function should be seen: once for each kind of call and error."""
        what = f"{op} {type(error).__name__}"
        if what not in self._complained:
            self._complained.add(what)
            text = "".join(traceback.format_exception(error)).rstrip()
            log.warning("accounts.%s: the function for %s failed\n%s", self._account.name, op, _TOKEN.sub("***", text))


def call_of(account: Account, command: Command, deadline_ms: int, call_id: str) -> Call:
    """What is handed over of a command: the emoji in the platform's own form, and nothing that only livesign needs."""
    emoji = None if command.emoji is None else account.adapter.normalise(command.emoji) or command.emoji
    return Call(
        call_id=call_id,
        account=account.name,
        conversation=command.conversation,
        op=command.op.value,
        deadline_ms=deadline_ms,
        thread=command.thread,
        message=command.message,
        emoji=emoji,
        handle=command.handle,
    )


def needless_call(account: Account, command: Command) -> Outcome | None:
    """The outcome of a command that needs no call, or that the platform cannot take (say, typing that fades by itself)."""
    assert isinstance(account.adapter, LikeAdapter)
    try:
        request = account.adapter.request(command, _NOBODY)
    except Exception:
        return None  # it misses something that only the real adapter has
    return request if isinstance(request, Outcome) else None


_NOBODY = Credentials("-", options={"user_id": "@nobody:localhost"})


def missing_functions(account: Account, callbacks: Callbacks) -> list[str]:
    """What the account's settings need and the bot does not give, in words."""
    rules, policy = account.spec.rules, account.policy
    marks = rules.reactions != "none" and (policy.ack.scope not in ("off", "none") or policy.status.enabled)
    typing = rules.typing and policy.typing.mode != "never"
    needs = {
        "set_reaction": marks,
        "remove_reaction": marks and rules.reactions == "add_remove",
        "start_typing": typing,
        "stop_typing": typing and rules.typing_stop,
    }
    return [name for name, needed in needs.items() if needed and getattr(callbacks, name) is None]


def _like(account: Account) -> str:
    assert isinstance(account.adapter, LikeAdapter)
    return account.adapter.like.spec.name
