"""``run`` and ``handler``: the part of the API that an embedded livesign and its clients have in common."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeVar, cast

from protocol.client.keeper import Keeper
from protocol.client.outcome import RunOutcome
from protocol.client.run_handle import RENEW_S, RunHandle
from protocol.codec import normalise
from protocol.events import Event, RunEvent

__all__ = ["Id", "RunMaker"]

P = ParamSpec("P")
T = TypeVar("T")
Id = str | int
"""An id: text, or a whole number, which stands for its decimal text."""
MessageKind = Literal["text", "audio", "command", "interaction", "scheduled"]


class RunMaker(ABC):
    """Makes run handles; see `run`."""

    keeper: Keeper

    @abstractmethod
    def put(self, event: Event) -> object:
        """Take a checked event. Any thread; never waits."""

    @abstractmethod
    def outcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.outcome`."""

    @abstractmethod
    async def aoutcome_of(self, run: RunHandle, timeout_s: float) -> RunOutcome:
        """See `RunHandle.aoutcome`."""

    def _renew_s(self, opening: RunEvent) -> float:
        """How often a run that says nothing is renewed."""
        return RENEW_S

    def run(
        self,
        *,
        conversation: Id,
        account: str | None = None,
        message: Id | None = None,
        run: Id | None = None,
        thread: Id | None = None,
        lease_ms: int | None = None,
        direct: bool | None = None,
        mentioned: bool | None = None,
        mentionable: bool | None = None,
        can_detect_mention: bool | None = None,
        bypass_mention: bool | None = None,
        from_bot: bool | None = None,
        sender: Id | None = None,
        forum: bool | None = None,
        sent_at_ms: int | None = None,
        kind: MessageKind | None = None,
    ) -> RunHandle:
        """A run for a ``with`` or ``async with`` block.

        ``message`` is the message that carries the marks; ``run`` names the run if it is not the message's only one
        (a run without a message has typing and no marks). ``account`` may be left out where there is one.

        With ``direct`` (a private chat, or not) and what else is known of an accepted message, the run opens as
        `Received`: the ack gate decides whether it is marked. Without, it opens as work that is going on.

        Raises `DecodeError` (a ValueError) for ids and values that no event can carry.
        """
        received = {
            "direct": direct,
            "mentioned": mentioned,
            "mentionable": mentionable,
            "can_detect_mention": can_detect_mention,
            "bypass_mention": bypass_mention,
            "from_bot": from_bot,
            "sender": sender,
            "forum": forum,
            "sent_at_ms": sent_at_ms,
            "kind": kind,
        }
        names = {
            "conversation": conversation,
            "account": account,
            "message": message,
            "run": run,
            "thread": thread,
            "lease_ms": lease_ms,
        }
        opening = self._check(_opening(names, received))
        handle = RunHandle(self, opening, self._renew_s(opening))
        self._made(handle)
        return handle

    def _made(self, run: RunHandle) -> None:  # noqa: B027 - nothing is to be done by default
        """A handle was made."""

    def _check(self, opening: RunEvent) -> RunEvent:
        """Refuse what is known to be wrong here already. Raises `DecodeError`."""
        return opening

    def handler(self, fields: Callable[P, Mapping[str, Any] | None]) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """A decorator: each call of the handler, sync or async, is a run.

        ``fields`` gets the handler's arguments and gives those of `run`; None: this call is no run. Inside,
        `current_run` gives the handle::

            @presence.handler(lambda message: {"conversation": message.chat_id, "message": message.id, "direct": True})
            async def answer(message): ...
        """

        def decorate(function: Callable[P, T]) -> Callable[P, T]:
            if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
                raise TypeError("a generator is no handler: use `with presence.run(...)` inside it")
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                    given = fields(*args, **kwargs)
                    if given is None:
                        return await function(*args, **kwargs)
                    async with self.run(**given):
                        return await function(*args, **kwargs)

                return cast("Callable[P, T]", awaited)

            @functools.wraps(function)
            def called(*args: P.args, **kwargs: P.kwargs) -> T:
                given = fields(*args, **kwargs)
                if given is None:
                    return function(*args, **kwargs)
                with self.run(**given):
                    return function(*args, **kwargs)

            return called

        return decorate


def _opening(names: Mapping[str, Any], received: Mapping[str, Any]) -> RunEvent:
    """The event that opens a run: `Received` if any of its own fields is given, else `Progress`."""
    given = {name: value for name, value in received.items() if value is not None}
    kind = "received" if given else "progress"
    event = normalise({"type": kind, **{name: value for name, value in names.items() if value is not None}, **given})
    assert isinstance(event, RunEvent)
    return event
