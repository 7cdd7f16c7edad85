"""livesign in the process of a bot: start, stop, telling, and what shows of it."""

from __future__ import annotations

import asyncio
import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors import (
    AccountError,
    ConfigError,
    DecodeError,
    PresenceSupervisor,
    RunHandle,
    RunOutcome,
    current_run,
    load_config,
)
from tests.end_to_end.processes import ROOT, ChatService, eventually

pytestmark = pytest.mark.real

QUICK: dict[str, Any] = {
    "ledger": {"path": ":memory:"},
    "ack": {"scope": "all"},
    "status": {"debounce_ms": 5, "done_hold_ms": 40, "error_hold_ms": 40},
}


@pytest.fixture
def presence() -> Iterator[PresenceSupervisor]:
    with PresenceSupervisor.start(QUICK) as made:
        yield made
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("livesign")]


@pytest.fixture
def chat(presence: PresenceSupervisor) -> ChatService:
    return ChatService(presence.addresses["sandbox"])


def test_a_run_shows_what_happens_and_leaves_nothing(presence: PresenceSupervisor, chat: ChatService) -> None:
    with presence.run(conversation="c", message=817, direct=True) as run:
        eventually(lambda: chat.marks() == ["👀"] and chat.left() == (1, 1), "the ack and typing show")
        run.thinking()
        eventually(lambda: chat.marks() == ["🤔"], "thinking shows")
        with run.tool("web_search"):
            eventually(lambda: chat.marks() == ["⚡"], "the tool shows")
    assert run.outcome() == RunOutcome("done", mark="👍")
    eventually(lambda: chat.left() == (0, 0), "nothing is left")


def test_an_exception_goes_on_and_shows(presence: PresenceSupervisor, chat: ChatService) -> None:
    with pytest.raises(KeyError), presence.run(conversation="c", message="m") as run:
        raise KeyError
    assert run.outcome() == RunOutcome("error", "KeyError", mark="😱")


def test_a_run_that_was_called_off_leaves_no_mark(presence: PresenceSupervisor, chat: ChatService) -> None:
    with pytest.raises(KeyboardInterrupt), presence.run(conversation="c", message="m") as run:
        run.thinking()
        eventually(lambda: chat.marks() == ["🤔"], "thinking shows")
        raise KeyboardInterrupt
    assert run.outcome() == RunOutcome("cancelled", "KeyboardInterrupt")
    eventually(lambda: chat.left() == (0, 0), "nothing is left")


def test_why_nothing_showed_is_told(presence: PresenceSupervisor, chat: ChatService) -> None:
    with presence.run(conversation="c", run="r") as without_message:
        pass
    chat.rules({"op": "set", "outcome": "forbidden"})
    with presence.run(conversation="c2", message="m") as refused:
        refused.thinking()
    assert (refused.outcome().outcome, refused.outcome().problem) == ("done", "forbidden")
    chat.rules()
    with presence.run(conversation="c", message="bot", direct=True, from_bot=True) as not_allowed:
        pass
    assert without_message.outcome() == RunOutcome("done", problem="no_message")
    assert not_allowed.outcome() == RunOutcome("done", problem="not_allowed")
    open_run = presence.run(conversation="c", message="open").begin()
    assert open_run.outcome(timeout_s=0.01) == RunOutcome("open", final=False)
    open_run.silent()
    assert open_run.outcome() == RunOutcome("silent")


def test_a_mark_that_cannot_be_shown_yet_makes_the_outcome_uncertain(
    presence: PresenceSupervisor, chat: ChatService
) -> None:
    chat.rules({"op": "set", "outcome": "rate_limited", "retry_after_ms": 500})
    with presence.run(conversation="c", message="m") as run:
        pass
    assert run.outcome(timeout_s=0.1) == RunOutcome("done", final=False)
    chat.rules()
    assert run.outcome() == RunOutcome("done", mark="👍")


# --- telling -----------------------------------------------------------------------------------------------------


def test_events_can_be_told_from_many_threads(presence: PresenceSupervisor) -> None:
    def bot(number: int) -> None:
        for message in range(20):
            with presence.run(conversation=number, message=message, direct=True) as run:
                assert current_run() is run
                run.thinking()

    threads = [threading.Thread(target=bot, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: presence.stats()["runs_ended"] == 160, "all runs have ended")
    assert presence.stats()["handles"] == 0


def test_mappings_and_events_are_taken_alike(presence: PresenceSupervisor, chat: ChatService) -> None:
    presence.tell({"type": "thinking", "conversation": -5, "message": 7})
    eventually(lambda: chat.marks() == ["🤔"], "it shows")
    presence.tell({"type": "silent", "conversation": "-5", "message": "7", "id": "e1"})
    eventually(lambda: chat.left() == (0, 0), "it is gone")
    presence.tell({"type": "thinking", "conversation": "c", "message": "m", "id": "e1"})
    assert presence.stats()["events"] == 2


@pytest.mark.parametrize(
    ("event", "what"),
    [
        ({"type": "thinking", "conversation": "c"}, "message or run"),
        ({"type": "thinking", "conversation": "c", "message": "m", "account": "nobody"}, "no account 'nobody'"),
        ({"type": "ping"}, "only events of runs"),
        ({"type": "nonsense"}, "unknown type"),
        ("text", "a map"),
    ],
)
def test_bad_input_gets_a_clear_error(presence: PresenceSupervisor, event: Any, what: str) -> None:
    with pytest.raises(DecodeError, match=what):
        presence.tell(event)
    assert issubclass(DecodeError, ValueError)


def test_of_several_accounts_one_has_to_be_named() -> None:
    two = {"a": {"platform": "sandbox"}, "b": {"platform": "sandbox"}}
    with PresenceSupervisor.start({**QUICK, "accounts": two}) as presence:
        with pytest.raises(DecodeError, match="name one of a, b"):
            presence.run(conversation="c", message="m")
        with presence.run(account="b", conversation="c", message="m") as run:
            pass
        assert run.outcome().mark == "👍"
        assert ChatService(presence.addresses["a"]).left() == (0, 0)


def test_after_the_end_telling_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    presence = PresenceSupervisor.start(QUICK)
    run = presence.run(conversation="c", message="m").begin()
    assert presence.stop() is True
    assert presence.stop() is True
    run.thinking()
    presence.tell({"type": "done", "conversation": "c", "message": "m"})
    with presence.run(conversation="c", message="m2") as late:
        pass
    assert late.outcome().final is False
    assert caplog.text.count("livesign takes no events any more: it has been stopped") == 1
    with pytest.raises(RuntimeError, match="start a new one"), presence:
        pass
    with pytest.raises(RuntimeError, match="start a new one"):
        presence.reload(QUICK)


def test_a_flood_costs_phases_and_never_an_end(presence: PresenceSupervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("actors.telling.BACKLOG_MAX", -1)
    with presence.run(conversation="c", message="m", direct=True) as run:
        for _ in range(10):
            run.progress()
    assert run.outcome().outcome == "done"
    assert presence.stats()["dropped"] == 10


# --- start and stop ----------------------------------------------------------------------------------------------


def test_it_starts_from_a_file_a_tree_and_an_object(tmp_path: Path) -> None:
    file = tmp_path / "livesign.toml"
    file.write_text('[ledger]\npath = ":memory:"\n[accounts.bot]\nplatform = "sandbox"\n')
    for source in (file, str(file), {"ledger": {"path": ":memory:"}}, load_config(file)):
        with PresenceSupervisor.start(source) as presence, presence.run(conversation="c", message="m"):
            pass


def test_what_cannot_be_used_is_refused_and_nothing_is_left_running(tmp_path: Path) -> None:
    before = threading.active_count()
    callback = {**QUICK, "accounts": {"bot": {"platform": "callback"}}}
    remote = {**QUICK, "accounts": {"bot": {"platform": "remote"}}}
    for config, error, what in (
        ({"acc": 1}, ConfigError, "unknown key"),
        (tmp_path / "none.toml", ConfigError, "cannot be read"),
        (callback, AccountError, "no callbacks were given"),
        (remote, AccountError, "in the bot's own process use callback"),
    ):
        with pytest.raises(error, match=what):
            PresenceSupervisor.start(config)
    with pytest.raises(ValueError, match="hub must be"):
        PresenceSupervisor.start(QUICK, hub="moon")  # type: ignore[arg-type]
    assert threading.active_count() == before


def test_two_in_one_process_do_not_disturb_each_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = {**QUICK, "ledger": {"path": str(tmp_path)}}
    with PresenceSupervisor.start(config) as one, PresenceSupervisor.start(config) as two:
        assert "another PresenceSupervisor serves sandbox in this process" in caplog.text
        for presence in (one, two):
            with presence.run(conversation="c", message="m") as run:
                pass
            assert run.outcome().mark == "👍"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ledger-0", "ledger-1"]


def test_a_stop_is_bounded_and_takes_back_what_shows() -> None:
    presence = PresenceSupervisor.start(QUICK)
    chat = ChatService(presence.addresses["sandbox"])
    run = presence.run(conversation="c", message="m").begin()
    run.thinking()
    eventually(lambda: chat.left() == (1, 1), "it shows")
    chat.rules({"outcome": "hang"})
    began_s = time.monotonic()
    assert presence.stop(timeout_s=0.2) is False
    assert time.monotonic() - began_s < 1.5


def test_a_reload_holds_for_runs_that_open_from_then_on(presence: PresenceSupervisor, chat: ChatService) -> None:
    emoji = {"status": {**QUICK["status"], "emoji": {"thinking": "🐳"}}}
    change = presence.reload(
        {**QUICK, **emoji, "accounts": {"sandbox": {"platform": "sandbox"}, "new": {"platform": "sandbox"}}}
    )
    assert change.added == ("new",)
    with presence.run(account="sandbox", conversation="c", message="m") as run:
        run.thinking()
        eventually(lambda: chat.marks() == ["🐳"], "the new mark shows")
    with presence.run(account="new", conversation="c", message="m") as other:
        pass
    assert other.outcome().mark == "👍"
    with pytest.raises(ConfigError):
        presence.reload({"accounts": {"sandbox": {"platform": "nonsense"}}})
    with pytest.raises(ValueError, match="no configuration file"):
        presence.reload()


def test_a_file_can_be_read_again(tmp_path: Path) -> None:
    file = tmp_path / "livesign.toml"
    file.write_text('[ledger]\npath = ":memory:"\n[accounts.bot]\nplatform = "sandbox"\n')
    with PresenceSupervisor.start(file) as presence:
        file.write_text(file.read_text() + '[accounts.second]\nplatform = "sandbox"\n')
        assert presence.reload().added == ("second",)
        assert list(presence.config.accounts) == ["bot", "second"]


def test_what_a_reload_mends_is_told_like_at_the_start(
    presence: PresenceSupervisor, caplog: pytest.LogCaptureFixture
) -> None:
    telegram = {"platform": "telegram", "token": "1:abc", "status": {"emoji": {"done": "✅"}}}
    presence.reload({**QUICK, "accounts": {"sandbox": {"platform": "sandbox"}, "tg": telegram}})
    told = "accounts.tg.status.emoji.done: ✅ cannot be shown on telegram; 👍 is shown instead"
    assert told in [record.getMessage() for record in caplog.records]


def test_what_a_killed_process_has_left_is_taken_back_by_the_next(tmp_path: Path) -> None:
    service = subprocess.Popen(
        [sys.executable, "-m", "actors.sandbox", "--port", "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert service.stdout is not None
        chat = ChatService(service.stdout.readline().split()[-1].rstrip("/"))
        config = {
            **QUICK,
            "ledger": {"path": str(tmp_path)},
            "lease": {"adopt_ms": 50},
            "accounts": {"bot": {"platform": "sandbox", "base_url": chat.base_url}},
        }
        bot = subprocess.Popen([sys.executable, "-c", _DYING, repr(config)], cwd=ROOT)
        assert bot.wait(20) == 9
        assert chat.left() == (1, 1)
        with PresenceSupervisor.start(config):
            eventually(lambda: chat.left() == (0, 0), "nothing is left")
    finally:
        service.terminate()
        service.communicate()


_DYING = """
import ast, os, sys, time
from actors import PresenceSupervisor
from tests.end_to_end.processes import ChatService, eventually
presence = PresenceSupervisor.start(ast.literal_eval(sys.argv[1]))
chat = ChatService(presence.config.accounts["bot"].credentials.base_url)
run = presence.run(conversation="c", message="m").begin()
run.thinking()
eventually(lambda: chat.left() == (1, 1), "it shows")
time.sleep(0.3)  # the ledger is written meanwhile
os._exit(9)
"""


def test_a_fork_gets_a_clear_error_and_can_start_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", _FORKING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "ForkedError",
        "ForkedError: start one after the fork",
        "child done 👍",
        "parent done 👍",
    ]


_FORKING = """
import os, tempfile
from actors import ForkedError, PresenceSupervisor
config = {"ledger": {"path": tempfile.mkdtemp()}}
before = PresenceSupervisor.start(config)
child = os.fork()
if child == 0:
    try:
        before.tell({"type": "thinking", "conversation": "c", "message": "m"})
    except ForkedError as error:
        print(type(error).__name__, flush=True)
    try:
        before.run(conversation="c", message="m")
    except ForkedError as error:
        print("ForkedError: start one after the fork" if "start one after the fork" in str(error) else error, flush=True)
    with PresenceSupervisor.start(config) as own:
        with own.run(conversation="c", message="child") as run:
            pass
        print("child", run.outcome().outcome, run.outcome().mark, flush=True)
    before.stop()
    raise SystemExit(0)
assert os.waitpid(child, 0)[1] == 0
with before:
    with before.run(conversation="c", message="parent") as run:
        pass
    print("parent", run.outcome().outcome, run.outcome().mark, flush=True)
"""


def test_a_bot_that_just_ends_takes_back_what_shows(tmp_path: Path) -> None:
    code = """
import sys
from actors import PresenceSupervisor
presence = PresenceSupervisor.start({"ledger": {"path": sys.argv[1]}})
run = presence.run(conversation="c", message="m").begin()
run.thinking()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code, str(tmp_path)], cwd=ROOT, check=True, timeout=30)


# --- gevent and asyncio ------------------------------------------------------------------------------------------


def run_in_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_in_a_gevent_process_it_shares_the_hub() -> None:
    assert run_in_python("""
from gevent import monkey
monkey.patch_all()
import gevent, threading
from actors import PresenceSupervisor
with PresenceSupervisor.start({"ledger": {"path": ":memory:"}}) as presence:
    def bot(number):
        with presence.run(conversation=number, message="m") as run:
            run.thinking()
            gevent.sleep(0.01)
        return run.outcome().mark
    print({job.get() for job in [gevent.spawn(bot, number) for number in range(20)]})
    victim = gevent.spawn(lambda: presence.run(conversation="c", message="killed").__enter__() and gevent.sleep(9))
    gevent.sleep(0.01)
    with_block = presence.run(conversation="c", message="block")
    def inside():
        with with_block:
            gevent.sleep(9)
    killed = gevent.spawn(inside)
    gevent.sleep(0.01)
    killed.kill()
    print(with_block.outcome().outcome, with_block.outcome().reason)
    victim.kill()
from actors.homes import CallersHub
assert isinstance(presence._home, CallersHub)
""").splitlines() == ["{'👍'}", "cancelled GreenletExit"]


def test_the_callers_hub_can_be_asked_for() -> None:
    assert (
        run_in_python("""
import gevent
from actors import PresenceSupervisor
with PresenceSupervisor.start({"ledger": {"path": ":memory:"}}, hub="caller") as presence:
    with presence.run(conversation="c", message="m") as run:
        gevent.sleep(0.05)
    print(run.outcome().mark)
""")
        == "👍\n"
    )


def test_the_asyncio_way() -> None:
    async def bot() -> list[RunOutcome]:
        async with PresenceSupervisor.start(QUICK) as presence:

            async def answer(number: int) -> RunOutcome:
                async with presence.run(conversation=number, message="m", direct=True) as run:
                    run.thinking()
                    await asyncio.sleep(0.02)
                assert run.outcome().outcome in ("open", "done")  # never waits here
                return await run.aoutcome()

            outcomes = list(await asyncio.gather(*map(answer, range(50))))
            task = asyncio.create_task(answer(99))
            await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return outcomes

    assert asyncio.run(bot()) == [RunOutcome("done", mark="👍")] * 50


def test_a_task_that_is_cancelled_cancels_its_run() -> None:
    async def bot() -> RunOutcome:
        async with PresenceSupervisor.start(QUICK) as presence:
            handles: list[RunHandle] = []

            async def answer() -> None:
                async with presence.run(conversation="c", message="m") as run:
                    handles.append(run)
                    await asyncio.sleep(9)

            task = asyncio.create_task(answer())
            await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            return await handles[0].aoutcome()

    assert asyncio.run(bot()) == RunOutcome("cancelled", "CancelledError")


def test_a_bot_that_blocks_its_loop_is_told_once_and_typing_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    typing = {"accounts": {"bot": {"platform": "sandbox", "typing_lifetime_ms": 400}}}

    async def bot() -> tuple[list[float], int]:
        async with PresenceSupervisor.start({**QUICK, **typing}) as presence:
            chat = ChatService(presence.addresses["bot"])
            async with presence.run(conversation="c", message="m"):
                await asyncio.sleep(0.02)
                time.sleep(2.5)  # what a careless bot does
                calls = [call for call in chat.get("/v1/calls?last=100")["last"] if call["op"] == "typing_start"]
                return [call["t_ms"] for call in calls], (await asyncio.to_thread(presence.stats))["host_lags"]

    times_ms, lags = asyncio.run(bot())
    gaps = [later - earlier for earlier, later in itertools.pairwise(times_ms)]
    assert len(times_ms) >= 8
    assert max(gaps) < 400
    assert lags == 1
    assert caplog.text.count("something in it blocks") == 1


def test_a_handle_that_was_dropped_is_torn_down(presence: PresenceSupervisor, chat: ChatService) -> None:
    presence.run(conversation="c", message="m").begin().thinking()
    eventually(lambda: chat.left() == (1, 1), "it shows")
    gc.collect()
    eventually(lambda: chat.left() == (0, 0), "it was torn down")
    assert presence.stats()["handles_abandoned"] == 1


def test_many_short_threads_leave_nothing_behind(presence: PresenceSupervisor) -> None:
    def short() -> None:
        with presence.run(conversation="c", message="m"):
            pass

    def round_of_threads(count: int) -> tuple[int, int]:
        for _ in range(count):
            thread = threading.Thread(target=short)
            thread.start()
            thread.join()
        eventually(lambda: presence.stats()["backlog"] == 0, "all is handled")
        gc.collect()
        return len(gc.get_objects()), len(list(Path("/proc/self/fd").iterdir())) if Path(
            "/proc/self/fd"
        ).exists() else 0

    objects, files = round_of_threads(200)
    more_objects, more_files = round_of_threads(1_000)
    assert more_objects - objects < 500
    assert more_files - files < 10
