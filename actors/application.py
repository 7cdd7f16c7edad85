"""The supervisor tree, its start and its stop.

    Root (one for one)
      PlatformIOActor, one per account
      ConversationsSupervisor
        ConversationSupervisor, one per live conversation
          ReactionActor, TypingActor
      RouterActor
      ShutdownActor, while stopping

Everything that must outlive an actor is built here and handed to it at each start. The same tree runs on the real hub and
under the manual driver; what differs is the runtime, the ports of the platforms and the ledger.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from actors.config import Account, Config, Reload
from actors.conversation import conversation_spec
from actors.conversation_state import Conversation, ConversationParked, ConversationStarted
from actors.keys import CONVERSATIONS, ROUTER, io_key
from actors.ledger import AccountLedger, Contents, Ledger
from actors.messages import FromClient, SessionDown, SessionUp, Subscription, SubscriptionEnded
from actors.parts import Parts
from actors.platform_io import AccountIO, PlatformIOActor
from actors.platform_messages import WAKE, Revive
from actors.platforms.port import PlatformPort
from actors.presence.breaker import Refusals
from actors.presence.lanes import Lanes
from actors.presence.pacing import Pacing
from actors.presence.run import EndedRun
from actors.presence.runs import RunTable
from actors.presence.terms import RetryRules
from actors.recovery import recover, recover_late
from actors.router import RouterActor
from actors.router_state import (
    AdoptRuns,
    ConversationsLost,
    EndAccount,
    RouterFailedOn,
    RouterState,
    StartConversation,
)
from actors.runtime import ActorRef, Backoff, ChildSpec, DuplicateKeyError, Runtime, Supervisor
from actors.shutdown import ShutdownActor
from actors.subscribers import Subscribers

PortFor = Callable[[Account], PlatformPort]


class ConversationsSupervisor(Supervisor):
    """Parent of all conversations: starts them on request. One that cannot be kept up is given back to the router."""

    many = True

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts

    def on_start(self) -> None:
        router = self.runtime.lookup(ROUTER)
        if router is not None:
            router.tell(ConversationsLost())

    def on_receive(self, message: Any) -> Any:
        if not isinstance(message, StartConversation):
            return super().on_receive(message)
        state = message.state
        try:
            self.start_child(conversation_spec(state, self._parts.intensity, self._parts.period_ms))
        except DuplicateKeyError:  # It is there, and the router may not have heard of it.
            state.router.tell(ConversationStarted((state.account, state.conversation)))
        return None

    def on_child_gave_up(self, child: ChildSpec) -> None:
        state: Conversation = child.args[0]
        state.router.tell(ConversationParked((state.account, state.conversation)))


@dataclass(frozen=True, slots=True)
class StartAccount:
    """A configuration has named a new account."""

    account: AccountIO


@dataclass(frozen=True, slots=True)
class WhoRoutes:
    """To the root: the answer is the router's ref."""


class Root(Supervisor):
    """Top of the tree. Accounts and router come back whatever happens: a fault of one is not the end of the others."""

    intensity = 1_000_000_000
    """Never given up."""
    backoff = Backoff(first_ms=20, max_ms=250, jitter=0.2, reset_ms=10_000)
    """Short, for every account waits for the router: one client's poison must not stall all bots for long. A message that
    failed does not come back, so this is no hot loop."""

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts

    def on_start(self) -> None:
        parts = self._parts
        for account in parts.accounts.values():
            self._start_account(account)
        conversations = self.start_child(
            ChildSpec(id=CONVERSATIONS, cls=ConversationsSupervisor, args=(parts,), key=CONVERSATIONS)
        )
        self.start_child(ChildSpec(id=ROUTER, cls=RouterActor, args=(parts.router, conversations), key=ROUTER))

    def on_receive(self, message: Any) -> Any:
        if isinstance(message, WhoRoutes):
            return self.runtime.lookup(ROUTER)
        if isinstance(message, StartAccount):
            self._start_account(message.account)
            return None
        return super().on_receive(message)

    def _start_account(self, account: AccountIO) -> None:
        key = io_key(account.name)
        self.start_child(ChildSpec(id=key, cls=PlatformIOActor, args=(account,), key=key))

    def on_child_failed(self, child: ChildSpec, message: Any, error: BaseException) -> None:
        ref = self.runtime.lookup(child.id)
        if ref is None:
            return
        if child.id == ROUTER:
            ref.tell(RouterFailedOn(message))
        elif child.cls is PlatformIOActor:
            again = self._parts.accounts[child.args[0].name].retold(message)
            if again is not None:
                ref.tell(again)


class Application:
    """One livesign: its tree on a runtime. `submit` works from any thread."""

    def __init__(self, config: Config, runtime: Runtime, port_for: PortFor, ledger: Ledger) -> None:
        self.config = config
        self.runtime = runtime
        self._port_for = port_for
        self._ledger = ledger
        self.stopping = False
        runs = RunTable(config.policy, config.server.limits.open_runs)
        self._subscribers = Subscribers(self)
        self._refusals: dict[tuple[str, str | None], Refusals] = {}
        """By `Account.egress`."""
        idle_ms = max((account.idle_ms for account in config.accounts.values()), default=60_000)
        self.parts = Parts(
            accounts={account.name: self._account_io(account) for account in config.accounts.values()},
            router=RouterState(runs, config.policy, tuple(config.accounts), ledger, self._subscribers, idle_ms=idle_ms),
            intensity=config.supervision.intensity,
            period_ms=config.supervision.period_ms,
        )
        self._root: ActorRef[Any] | None = None
        self._router: ActorRef[Any] | None = None

    def _account_io(self, account: Account) -> AccountIO:
        lanes = Lanes(
            account.name,
            account.spec.rules,
            Pacing(account.limits, account.reserve),
            RetryRules(),
            account.calls.concurrency,
            key_prefix=f"{self.runtime.clock.wall_ms():x}{self.runtime.random.getrandbits(32):08x}-",
            refusals=self._refusals.setdefault(account.egress, Refusals()),
        )
        return AccountIO(
            account.name,
            lanes,
            self._port_for(account),
            AccountLedger(self._ledger, account.name),
            account.egress,
            account.calls.deadline_ms,
            account.calls.typing_deadline_ms,
            watched=lambda: self._subscribers.any,
        )

    def start(self) -> None:
        """Take over what an earlier process has left, start the tree, and wait until it stands."""
        self._recover(self.config, self.parts.accounts)
        self._ledger.on_found = self._found
        self._root = self.runtime.spawn(Root, self.parts, key="root")
        self._router = self._root.ask(WhoRoutes())

    def _recover(self, config: Config, accounts: Collection[str]) -> None:
        clock = self.runtime.clock
        recover(self._ledger.load(), config, self.parts, accounts, clock.now_ms(), clock.wall_ms())

    def _found(self, held: Contents) -> None:
        """What an earlier process has left could be read only now, in the middle of everything."""
        clock = self.runtime.clock
        recover_late(held, self.config, self.parts, self.parts.accounts, clock.now_ms(), clock.wall_ms())
        self._tell_router(AdoptRuns())
        for name in self.parts.accounts:
            ref = self.runtime.lookup(io_key(name))
            if ref is not None:
                ref.tell(WAKE)

    def submit(self, message: FromClient | SessionUp | SessionDown | Subscription | SubscriptionEnded) -> None:
        """Hand something of a client to the router."""
        self._tell_router(message)

    def _tell_router(self, message: Any) -> None:
        assert self._router is not None
        self._router.tell(message)

    def on_ended(self, told: Callable[[EndedRun], None]) -> None:
        """Call ``told`` in the runtime's thread for every run that ends."""
        self.parts.router.on_ended = told

    def shut_down(self, budget_ms: int, done: Callable[[bool], None]) -> None:
        """Take back all that shows, then call ``done`` with whether that worked within ``budget_ms``.

        It did not, without a wait, where the platform has stopped an account: what shows there stays in the ledger."""
        assert self._router is not None
        self.stopping = True

        def told(rested: bool) -> None:
            done(rested and not self.left)

        self.runtime.spawn(ShutdownActor, self.parts, self._router, budget_ms, told)

    @property
    def left(self) -> str:
        """In words, what may still show on the platforms; empty: nothing."""
        return self._ledger.load().left

    def close(self) -> None:
        """Stop the tree and let go of connections and ledger; what shows is left as it is."""
        self.runtime.shutdown()
        for account in self.parts.accounts.values():
            account.port.close()
        self._ledger.close()

    def reload(self, change: Reload) -> None:
        """Use another configuration: credentials and limits at once, settings for runs that open from now on.

        Accounts that the platform had refused are tried again, also with the credentials that they had."""
        new = [name for name in change.added if name not in self.parts.accounts]
        for name in new:
            self._add(change.config, name)
        self.config = change.config
        self.parts.router.runs.use_policies(change.config.policy)
        self.parts.router.policy_for = change.config.policy
        if new:
            self._tell_router(AdoptRuns())
        for name in {*change.changed, *change.added}.difference(new):
            account, held = change.config.accounts[name], self.parts.accounts[name]
            held.port.close()
            held.port = self._port_for(account)
            held.deadline_ms = account.calls.deadline_ms
            held.typing_deadline_ms = account.calls.typing_deadline_ms
            self._move(held, account)
            held.lanes.change(account.limits, account.reserve, account.calls.concurrency, self.runtime.clock.now_ms())
        stopped = {name for name, held in self.parts.accounts.items() if held.lanes.stopped}
        for name in {*change.changed, *stopped} & change.config.accounts.keys():
            ref = self.runtime.lookup(io_key(name))
            if ref is not None:
                ref.tell(Revive())
        self.parts.router.accounts = tuple(change.config.accounts)
        for name in change.removed:
            self._tell_router(EndAccount(name))

    def _move(self, held: AccountIO, account: Account) -> None:
        """Where its calls go to another server, or from another host, what the old one has counted is not theirs."""
        before, held.egress = held.egress, account.egress
        if held.egress != before:
            held.lanes.share(self._refusals.setdefault(account.egress, Refusals()))
        if held.egress[0] != before[0]:
            forgotten = held.lanes.moved(self.runtime.clock.now_ms())
            held.ledger.learned(forgotten, self.runtime.clock.wall_ms())

    def _add(self, config: Config, name: str) -> None:
        """A new account; its actor is there before anybody may send anything to it."""
        held = self.parts.accounts[name] = self._account_io(config.accounts[name])
        self._recover(config, (name,))
        assert self._root is not None
        self._root.ask(StartAccount(held))

    def shown(self, account: str, conversation: str, message: str) -> list[str]:
        """The marks that are certainly on a message now."""
        return list(self.parts.accounts[account].lanes.shown(conversation, message) or ())

    def typing(self, account: str, conversation: str, thread: str | None) -> bool:
        """Whether typing is wanted or owed there now."""
        return self.parts.accounts[account].lanes.keeps_typing(conversation, thread)

    def counters(self) -> dict[str, int]:
        """Everything that is counted, by name."""
        total: Counter[str] = Counter()
        for account in self.parts.accounts.values():
            total.update(account.lanes.counters)
        total.update(self.parts.router.counters)
        total.update(self.parts.router.runs.counters)
        total.update(self.runtime.counters)
        return dict(total)
