"""What a connection says and hears, without its socket.

- First map: `Hello` with a token on TCP; on a Unix socket the user is known, so `Hello` is optional, and a
  token too.
- A bad event is answered with `Rejected` and changes nothing. Broken framing, a refused `Hello`, and anything
  but a good `Hello` from a stranger end the connection.
- An id that the session has used before is acknowledged as duplicate and not applied. An event that was
  refused has not used its id.
- What a client may do is its grant; which accounts there are is the router's business.
- A connection with the role to execute asks for calls by ``subscribe``; it then gets those of its account, or of all
  remote accounts it may use, and answers each with `CallResult`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from actors.grants import Grant
from actors.messages import FromClient, Subscription, SubscriptionEnded
from actors.presence.terms import OutcomeKind
from actors.server_context import ServerContext
from actors.sessions import Session
from protocol import events
from protocol.errors import DecodeError
from protocol.events import Ack, Code, Event, Hello, Pong, Rejected, Reply, StatsReply, Welcome

log = logging.getLogger("livesign.server")


class Dialogue:
    """One connection's side of the protocol; ``put`` takes the replies.

    ``grant`` None: a stranger, who has to show a token first.
    """

    def __init__(self, context: ServerContext, peer: str, grant: Grant | None, put: Callable[[Reply], None]) -> None:
        self._context = context
        self._peer = peer
        self._put = put
        self.grant = grant
        self.session: Session | None = None
        self._refused = False
        """Whether an event was refused: the first one of a connection is a warning, the rest is for debugging."""
        self.owed = 0
        """Events with an id that the router has not answered yet."""
        self.pings = False
        """Whether the peer pings, and so wants to be watched."""
        self._role = "send"
        self._subscribed = False

    @property
    def executes(self) -> bool:
        """Whether it makes calls for us."""
        return self._role == "execute"

    @property
    def session_key(self) -> str:
        """Whose answers are its own."""
        return "" if self.session is None else self.session.key

    def put(self, reply: Reply) -> None:
        """A call for it. Never blocks."""
        self._put(reply)

    def take(self, item: Event | DecodeError) -> str | None:
        """Handle what the decoder gave. Returns the reason to close the connection, if there is one."""
        if isinstance(item, DecodeError):
            self._context.counters["events_rejected"] += 1
            self._context.counters["streams_broken"] += item.fatal
            self._refuse(item.reply())
            return item.detail if item.fatal or self.grant is None else None
        session = self.session
        if session is None:
            if isinstance(item, Hello):
                return self._hello(item)
            if self.grant is None:
                self._context.counters["tokens_refused"] += 1
                return self._turn_away(item, "unauthorized", "type", "the first map on TCP is a hello with a token")
            session = self.session = self._context.sessions.join(self.grant.principal, None, told=False)
        self._context.counters["events"] += 1
        if isinstance(item, (events.RunEvent, events.Alive)):
            self._forward(session, item)
        elif isinstance(item, events.Ping):
            self.pings = True
            self._answer(item, Pong())
        elif isinstance(item, events.Stats):
            self._answer(item, StatsReply(counters=self._context.stats()))
        elif isinstance(item, events.Subscribe):
            self._subscribe(session, item)
        elif isinstance(item, Hello):
            self._reject(item, "bad_value", "type", "hello is the first map of a connection")
        else:
            assert isinstance(item, events.CallResult)
            self._result(item)
        return None

    def reply(self, reply: Reply) -> None:
        """The router's answer, or a state for a subscriber. Never blocks."""
        if isinstance(reply, (Ack, Rejected)) and reply.id is not None:
            self.owed -= 1
        if isinstance(reply, Rejected):
            self._refuse(reply)
        else:
            self._put(reply)

    def leave(self) -> None:
        """The connection is gone."""
        if self.session is None:
            return
        if self._subscribed:
            self._context.router.tell(SubscriptionEnded(self.session.key, self.reply))
        if self.executes:
            self._context.executors.leave(self)
        self._context.sessions.leave(self.session)

    # --- the kinds of event --------------------------------------------------------------------------------

    def _hello(self, hello: Hello) -> str | None:
        context = self._context
        if hello.protocol != events.PROTOCOL_VERSION:
            detail = f"this server speaks protocol {events.PROTOCOL_VERSION}"
            return self._turn_away(hello, "bad_value", "protocol", detail)
        if hello.token is not None:
            self.grant = context.grant_of(hello.token)
            if self.grant is None:
                context.counters["tokens_refused"] += 1
                log.warning("%s: refused, unknown token", self._peer)
                return self._turn_away(hello, "unauthorized", "token", "unknown token")
        if self.grant is None:
            context.counters["tokens_refused"] += 1
            return self._turn_away(hello, "missing_field", "token", "hello needs a token here")
        if hello.role not in self.grant.may:
            return self._turn_away(hello, "unauthorized", "role", f"no grant to {hello.role}")
        self._role = hello.role
        session = self.session = context.sessions.join(self.grant.principal, hello.session, told=True)
        log.info("%s: session %s, client %.40r", self._peer, session.key, hello.client)
        welcome = Welcome(
            protocol=events.PROTOCOL_VERSION,
            server=context.name,
            session=session.name,
            accounts=[name for name in context.accounts() if self.grant.allows(name)],
            limits=context.limits(),
        )
        self._answer(hello, welcome)
        return None

    def _forward(self, session: Session, event: events.RunEvent | events.Alive) -> None:
        grant = self.grant
        assert grant is not None
        if self._role != "send":
            self._reject(event, "unauthorized", "type", f"this connection's role is {self._role}")
        elif "send" not in grant.may:
            self._reject(event, "unauthorized", "type", "no grant to send")
        elif event.account is not None and not grant.allows(event.account):
            self._reject(event, "unauthorized", "account", f"no grant for account {event.account!r}")
        else:
            repeated = event.id is not None and session.is_repeat(event.id)
            self._context.counters["events_repeated"] += repeated
            if event.id is not None:
                self.owed += 1
            self._context.router.tell(FromClient(session.key, event, self.reply, grant.accounts, repeated))

    def _subscribe(self, session: Session, event: events.Subscribe) -> None:
        grant = self.grant
        assert grant is not None
        if event.what == "calls":
            self._take_calls(grant, event)
        elif "subscribe" not in grant.may:
            self._reject(event, "unauthorized", "type", "no grant to subscribe")
        elif event.account is not None and not grant.allows(event.account):
            self._reject(event, "unauthorized", "account", f"no grant for account {event.account!r}")
        else:
            self._subscribed = True
            if event.id is not None:
                self.owed += 1
            self._context.router.tell(Subscription(session.key, event, self.reply, grant.accounts))

    def _take_calls(self, grant: Grant, event: events.Subscribe) -> None:
        executors, account = self._context.executors, event.account
        if not self.executes:
            self._reject(event, "unauthorized", "what", "calls are for a connection whose hello has the role execute")
        elif account is not None and not grant.allows(account):
            self._reject(event, "unauthorized", "account", f"no grant for account {account!r}")
        elif event.conversation is not None:
            self._reject(event, "bad_value", "conversation", "an executor makes all calls of an account")
        elif account is not None and account not in executors.accounts:
            known = account in self._context.accounts()
            detail = f"account {account!r} is not remote" if known else f"there is no account {account!r}"
            self._reject(event, "bad_value" if known else "unknown_account", "account", detail)
        elif not any(map(grant.allows, executors.accounts)):
            self._reject(event, "bad_value", "what", "there is no remote account")
        else:
            if event.id is not None:
                self._put(Ack(id=event.id, result="applied"))
            executors.join(self, grant.allows if account is None else account.__eq__)

    def _result(self, event: events.CallResult) -> None:
        if not self.executes:
            self._reject(event, "unauthorized", "type", "only the executor of an account answers calls")
            return
        try:
            taken = self._context.executors.result(self, event)
        except ValueError:
            known = ", ".join(kind.value for kind in OutcomeKind)
            self._reject(event, "bad_value", "outcome", f"outcome: expected {known}")
            return
        if event.id is not None:
            self._put(Ack(id=event.id, result="applied" if taken else "late"))

    # --- answers -------------------------------------------------------------------------------------------

    def _answer(self, event: Event, reply: Reply) -> None:
        self._put(reply)
        if event.id is not None:
            self._put(Ack(id=event.id, result="applied"))

    def _reject(self, event: Event, code: Code, field: str, detail: str) -> None:
        self._context.counters["events_rejected"] += 1
        self._refuse(Rejected(code=code, field=field, detail=detail, id=event.id))

    def _refuse(self, rejected: Rejected) -> None:
        """Say it to the client, and to the operator: a client that never reads does not know."""
        level = logging.DEBUG if self._refused else logging.WARNING
        self._refused = True
        where = f" {rejected.field}" if rejected.field else ""
        log.log(level, "%s: event refused: %s%s: %s", self._peer, rejected.code, where, rejected.detail)
        self._put(rejected)

    def _turn_away(self, event: Event, code: Code, field: str, detail: str) -> str:
        self._reject(event, code, field, detail)
        return detail
