"""Planned crashes for simulations: an actor raises in its next user message, as if it had a bug."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.conversation import ConversationSupervisor, ReactionActor, TypingActor
from actors.conversation_state import Deliver
from actors.messages import FromClient
from actors.platform_io import PlatformIOActor
from actors.platform_messages import CallEnded, ShowMark, TypeStart, TypeStop
from actors.presence.terms import MarkReport, TypingReport
from actors.router import RouterActor
from actors.runtime import Actor, ActorRef
from actors.witness import Witness

ACTORS: Mapping[str, type[Actor]] = {
    "reaction": ReactionActor,
    "typing": TypingActor,
    "conversation": ConversationSupervisor,
    "platform_io": PlatformIOActor,
    "router": RouterActor,
}


class PlannedCrashError(Exception):
    """Raised on purpose."""


@dataclass(slots=True)
class Crash:
    """One plan; ``times`` counts down."""

    cls: type[Actor] | None
    account: str | None
    conversation: str | None
    on: str | None
    times: int

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Crash:
        """The plan of a ``@crash`` step."""
        return cls(
            ACTORS.get(args["actor"]),
            args.get("account"),
            args.get("conversation"),
            args.get("on"),
            args.get("times", 1),
        )

    def fits(self, ref: ActorRef[Any], message: Any) -> bool:
        """Whether this message, in this actor, is the one."""
        if self.cls is None or not issubclass(ref.actor_class, self.cls) or not self.times:
            return False
        account, conversation = _place(ref, message)
        return (
            self.account in (None, account)
            and self.conversation in (None, conversation)
            and (self.on is None or self.on == _kind(message))
        )


class Saboteur:
    """A runtime's tap that carries out the plans."""

    def __init__(self, witness: Witness) -> None:
        self._plans: list[Crash] = []
        self._witness = witness

    def plan(self, crash: Crash) -> None:
        self._plans.append(crash)

    def forget(self) -> None:
        """Drop the plans that were not carried out."""
        self._plans.clear()

    def __call__(self, ref: ActorRef[Any], message: Any) -> None:
        self._witness.handling(ref.key, message)
        for crash in self._plans:
            if crash.fits(ref, message):
                crash.times -= 1
                self._plans = [plan for plan in self._plans if plan.times]
                self._witness.crashed(ref.key, message)
                raise PlannedCrashError(f"planned crash of {ref}")


def _place(ref: ActorRef[Any], message: Any) -> tuple[str | None, str | None]:
    """Account and conversation that a message to this actor is about."""
    key = ref.key
    if isinstance(message, FromClient):
        return getattr(message.event, "account", None), getattr(message.event, "conversation", None)
    if isinstance(key, tuple) and len(key) == 3:
        return key[1], key[2]
    if isinstance(key, tuple) and len(key) == 2:
        return key[1], getattr(message, "conversation", None)
    return None, None


def _kind(message: Any) -> str | None:
    """The event type, what is asked of the platform, or ``answer``: the platform's."""
    if isinstance(message, Deliver | FromClient):
        return str(message.event.__struct_config__.tag)
    if isinstance(message, ShowMark):
        return "set" if message.chain else "clear"
    if isinstance(message, TypeStart):
        return "typing_start"
    if isinstance(message, TypeStop):
        return "typing_stop"
    if isinstance(message, MarkReport | TypingReport | CallEnded):
        return "answer"
    return None
