"""The Node module: run handles, remote execution, and a connection that comes back."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.config import load
from actors.daemon import Daemon
from tests.server.world import elsewhere, eventually

NODE = Path(__file__).resolve().parent.parent / "examples" / "node"
pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(
        shutil.which("node") is None or not (NODE / "node_modules").exists(),
        reason="needs node, and `npm install` in examples/node",
    ),
]


def config(tmp_path: Path) -> Any:
    return load(
        {
            "ledger": {"path": str(tmp_path / "ledger")},
            "server": {"unix": str(tmp_path / "l.sock")},
            "ack": {"scope": "all"},
            "status": {"debounce_ms": 20, "min_change_ms": 0, "done_hold_ms": 50},
            "limits": {"conversation": {"per_ms": 1, "count": 1_000}},
            "accounts": {"bot": {"platform": "remote", "like": "telegram"}},
            "shutdown": {"budget_ms": 200},
        }
    )


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    daemon = Daemon(config(tmp_path))
    daemon.start()
    yield daemon
    daemon.stop()


def node(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["node", *arguments]
    return elsewhere(lambda: subprocess.run(command, cwd=NODE, capture_output=True, text=True, timeout=30, check=False))


def script(code: str, address: str) -> str:
    done = node("--input-type=module", "-e", f'import {{ Livesign }} from "./livesign.mjs";\n{code}', address)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_bot_shows_what_it_does_by_its_own_client(daemon: Daemon) -> None:
    done = node("bot.mjs", str(daemon.config.server.unix))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["set 👀", "set 🤔", "set ⚡", "set 👍", "clear"]
    assert daemon.stats()["runs_ended"] == 1


def test_the_ways_a_block_can_end(daemon: Daemon) -> None:
    told = script(
        """
        const livesign = new Livesign(process.argv.at(-1));
        const ends = { good: () => {}, bad: () => { throw new TypeError("no"); },
                       off: () => { throw new DOMException("no", "AbortError"); }, quiet: (run) => run.silent() };
        for (const [message, work] of Object.entries(ends)) {
          try { await livesign.run({ conversation: "c", message }, work); } catch (error) { console.log(error.name); }
        }
        await livesign.run({ conversation: "c", message: "spans" }, async (run) => {
          await Promise.all([run.tool("a", async () => 1), run.tool("b", async () => run.text())]);
          await run.child("k", async () => {}).catch(() => {});
        });
        await livesign.close();
        """,
        str(daemon.config.server.unix),
    )
    assert told.split() == ["TypeError", "AbortError"]
    ended = {key.run: run.outcome for key, run in daemon.application.parts.router.runs.ended["bot"].items()}
    assert ended == {"good": "done", "bad": "error", "off": "cancelled", "quiet": "silent", "spans": "done"}


def test_it_comes_back_to_a_livesign_that_was_started_anew(tmp_path: Path) -> None:
    first = Daemon(config(tmp_path))
    first.start()
    address = str(first.config.server.unix)
    command = ["node", "--input-type=module", "-e", _SURVIVOR, address]
    bot = subprocess.Popen(command, cwd=NODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert bot.stdin is not None
        eventually(lambda: len(first.application.parts.router.runs.open) == 1)
        first.leave()
        second = Daemon(config(tmp_path))
        second.start()
        bot.stdin.write("go on\n")
        bot.stdin.flush()
        assert elsewhere(lambda: bot.wait(20)) == 0
        [(key, run)] = second.application.parts.router.runs.ended["bot"].items()
        assert (key.run, run.outcome) == ("survivor", "done")
        second.stop()
    finally:
        bot.kill()
        bot.communicate()


_SURVIVOR = """
import { Livesign } from "./livesign.mjs";
const livesign = new Livesign(process.argv.at(-1));
const run = livesign.open({ conversation: "c", message: "survivor" });
await livesign.flush();
await new Promise((resolve) => process.stdin.once("data", resolve));
run.thinking();
run.done();
await livesign.close();
process.exit(0);
"""


def test_what_shows_is_told_to_those_who_want_to_know(daemon: Daemon) -> None:
    told = script(
        """
        const livesign = new Livesign(process.argv.at(-1));
        livesign.subscribe((state) => {
          console.log(JSON.stringify(state));
          if (state.final) livesign.close();
        }, { account: "bot", conversation: 5 });
        livesign.subscribe(() => { throw new Error("a listener's fault is its own"); });
        await livesign.execute("bot", { set() {}, clear() {}, typing_start() {} });
        for (const conversation of [4, 5]) {
          await livesign.run({ conversation, message: 7, direct: true }, async (run) => {
            run.thinking();
            await livesign.flush();
          });
        }
        """,
        str(daemon.config.server.unix),
    )
    states = [json.loads(line) for line in told.splitlines()]
    assert {state["conversation"] for state in states} == {"5"}
    assert states[0] | {"typing": True} == {
        "type": "state", "account": "bot", "conversation": "5", "run": "7", "message": "7",
        "phase": "queued", "shown": [], "typing": True,
    }  # fmt: skip
    assert (states[-1]["phase"], states[-1]["mark"], states[-1]["final"]) == ("done", "👍", True)


def test_it_says_why_nobody_answers_and_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    done = node(
        "--input-type=module",
        "-e",
        """
        import { Livesign } from "./livesign.mjs";
        const livesign = new Livesign(process.argv.at(-1));
        await livesign.run({ conversation: "c", message: 1 }, () => {});
        console.log(await livesign.close(1000));
        """,
        str(tmp_path / "nobody.sock"),
    )
    assert done.returncode == 0
    assert done.stdout == "false\n"
    assert done.stderr.count("nobody.sock") == 1, done.stderr


def test_an_executor_that_is_not_wanted_is_told_why(daemon: Daemon) -> None:
    told = script(
        """
        const livesign = new Livesign(process.argv.at(-1));
        await livesign.execute("nobody", {}).catch((error) => console.log(error.message));
        await livesign.close();
        """,
        str(daemon.config.server.unix),
    )
    assert told == "unknown_account: there is no account 'nobody'\n"
