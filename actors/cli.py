"""The command line. Each command says in its ``--help`` what it does, how it is used and how it ends.

Commands import what they need when they run, so that ``version`` and ``--help`` answer at once.
"""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from actors.exits import FAILED, INTERRUPTED, OK, UNAVAILABLE, USAGE

if TYPE_CHECKING:
    from actors.config import ConfigError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Signs of life for chat bots and AI agents: ack marks, status marks and typing indicators that never get "
    "stuck.",
    epilog="New here? livesign demo shows everything in 40 seconds, without any configuration.",
)


class LogLevel(StrEnum):
    """How much the log tells."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _fail(code: int, text: str, hint: str | None = None) -> NoReturn:
    for line in (text, hint):
        if line:
            typer.echo(f"livesign: {line}", err=True)
    raise typer.Exit(code)


def _config_error(error: ConfigError) -> NoReturn:
    for problem in error.problems:
        typer.echo(f"livesign: {problem}", err=True)
    count = len(error.problems)
    _fail(USAGE, f"{count} problem{'s' if count != 1 else ''} in the configuration; nothing was started")


# --- serve -----------------------------------------------------------------------------------------------------------


@app.command(short_help="Run as a server that bots send events to.")
def serve(
    config: Annotated[
        str | None,
        typer.Argument(metavar="CONFIG", show_default=False, help="TOML file; without it: the built-in sandbox."),
    ] = None,
    log_level: Annotated[
        LogLevel, typer.Option(metavar="LEVEL", help="debug, info, warning or error; on stderr.")
    ] = LogLevel.INFO,
    leave: Annotated[
        bool, typer.Option("--leave", help="When stopped, leave what shows to a successor on the same ledger.")
    ] = False,
) -> None:
    """Run livesign as a server that bots in any language send events to.

    \b
    Examples:
      livesign serve                  no configuration: a sandbox chat to watch in the browser
      livesign serve livesign.toml    your accounts

    Says ready on stderr once it listens. SIGTERM and Ctrl-C take back everything that shows, then end;
    a second one ends at once. SIGHUP reads the file again; if that is refused nothing changes.

    \b
    Exit codes:
      0  stopped, nothing of ours shows any more
      1  failed, or stopped before everything could be taken back
      2  the configuration is wrong; every problem is listed
      3  the address or the ledger is in use, or cannot be had
    """
    from actors.config import ConfigError
    from actors.serve import NO_CONFIGURATION
    from actors.serve import serve as run

    logging.basicConfig(
        level=log_level.value.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    if config is None:
        logging.getLogger("livesign").info(NO_CONFIGURATION)
    try:
        code = run(config, leave=leave)
    except ConfigError as error:
        _config_error(error)
    raise typer.Exit(code)


# --- demo ------------------------------------------------------------------------------------------------------------


@app.command(short_help="Watch it work: no configuration, 40 seconds.")
def demo(
    speed: Annotated[float, typer.Option(metavar="N", min=0.25, max=50, help="How much faster than real time.")] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="Show nothing; print only the summary, as JSON.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines, as it does without a terminal.")] = False,
) -> None:
    """Watch livesign work: a chat service, a server and scripted agents, all in this one process.

    Real sockets and real HTTP on loopback, nothing to configure, about 40 seconds. On the left what the people in
    the chats see, on the right the calls that it took.

    \b
    Examples:
      livesign demo
      livesign demo --speed 4
      livesign demo --speed 20 --json

    \b
    Exit codes:
      0    nothing was left over and nothing went wrong
      1    a mark or an indicator was left, or livesign made an error
      130  Ctrl-C (another signal: 128 and its number)
    """
    from actors.demo import run

    try:
        code = run(speed=speed, json=json, plain=plain)
    except KeyboardInterrupt:  # before it has begun
        raise typer.Exit(INTERRUPTED) from None
    raise typer.Exit(code)


# --- send ------------------------------------------------------------------------------------------------------------


@app.command(short_help="Send events to a running livesign.")
def send(
    event: Annotated[
        str | None, typer.Argument(metavar="EVENT", help="Type of the event; without it: JSON, one event a line.")
    ] = None,
    conversation: Annotated[str | None, typer.Option("--conversation", "-c", help="The chat.")] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="The message that carries marks.")] = None,
    run: Annotated[str | None, typer.Option("--run", "-r", help="The run, if it is not the message's.")] = None,
    account: Annotated[str | None, typer.Option("--account", "-a", help="Needed if there are several.")] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option("--set", "-s", metavar="FIELD=VALUE", help="Any other field; may be repeated."),
    ] = None,
    lease_ms: Annotated[
        int,
        typer.Option(metavar="MS", min=0, help="How long an opened run lives without an event; 0: the server's lease."),
    ] = 600_000,
    unix: Annotated[str | None, typer.Option(metavar="PATH", help="The server's Unix socket.")] = None,
    tcp: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="The server's TCP address.")] = None,
    tls_ca: Annotated[
        str | None, typer.Option(metavar="FILE", help="TLS: trust these certificates; 'system' for the system's.")
    ] = None,
    token_env: Annotated[str, typer.Option(metavar="NAME", help="Variable that holds the token.")] = "LIVESIGN_TOKEN",
    timeout_ms: Annotated[int, typer.Option(metavar="MS", min=1, help="Longest wait for the server.")] = 5_000,
    json: Annotated[bool, typer.Option("--json", help="Print each answer as JSON.")] = False,
) -> None:
    """Send events to a running livesign and print each answer.

    The answer to an event is applied, duplicate, late (its run has ended), unknown (there is no such run) or rejected,
    with the reason. A run that is opened here outlives this command: it ends by its own end event, or 10 minutes after
    its last event.

    \b
    Examples:
      livesign send thinking -c chat-7 -m 817
      livesign send received -c chat-7 -m 818 --set direct=false --set mentioned=true
      livesign send tool -c chat-7 -m 817 --set name=web_search --set call=1
      livesign send done -c chat-7 -m 817
      jq -c . events.json | livesign send

    \b
    Events:
      opening    received queued waiting thinking tool compacting text progress
      during     tool_end compacting_end alive child child_end merged moved
                 sending sent restore typing_start typing_stop
      ending     done error cancelled silent clear
      other      ping stats (prints what is counted and measured)

    \b
    Exit codes:
      0  every event was acknowledged
      1  an event was rejected by the server
      2  an event or an option makes no sense
      3  no livesign answers there, or it does not let us in
    """
    from actors import send as sending

    try:
        target = sending.target_of(unix, tcp, tls_ca, token_env, timeout_ms)
        given = sending.fields_given(fields or (), conversation=conversation, message=message, run=run, account=account)
        events = sending.events_to_send(event, given, lease_ms)
        code = sending.send_events(events, target, lambda answer: sending.print_answer(answer, json))
    except sending.UsageError as error:
        _fail(USAGE, error.text, error.hint)
    except sending.UnavailableError as error:
        _fail(UNAVAILABLE, f"no answer from {target.name}: {error}", error.hint)
    raise typer.Exit(code)


# --- simulate --------------------------------------------------------------------------------------------------------


@app.command(short_help="Try a configuration on virtual time.")
def simulate(
    scenario: Annotated[Path, typer.Argument(metavar="SCENARIO.json", help="The scenario.")],
    json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
) -> None:
    """Try a configuration on virtual time: minutes of chat life in milliseconds, with no platform and no network.

    A scenario holds a configuration, what the clients send and when, and how the platform behaves. What comes out is
    a timeline for each conversation, or everything as JSON.

    \b
    Example:
      {"config": {"ack": {"scope": "all"}},
       "events": [[0,    {"type": "received", "conversation": "c", "message": "m", "direct": true}],
                  [500,  {"type": "thinking", "conversation": "c", "message": "m"}],
                  [4000, {"type": "done", "conversation": "c", "message": "m"}]]}

    \b
      livesign simulate scenario.json
      livesign simulate scenario.json --json | jq .calls

    \b
    Exit codes:
      0  it ran
      1  it ran, and livesign broke one of its own rules (listed as violations)
      2  the scenario does not fit; the place is named, nothing was run
    """
    from actors.scenario import ScenarioError
    from actors.simulate import run_file

    try:
        result = run_file(scenario)
        for warning in result.scenario.warnings:
            typer.echo(f"livesign: {warning}", err=True)
    except ScenarioError as error:
        _fail(USAGE, f"{scenario}: {error}")
    if json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(result.to_json())).decode())
    else:
        typer.echo(result.timeline())
    raise typer.Exit(FAILED if result.violations else OK)


# --- version ---------------------------------------------------------------------------------------------------------


@app.command(short_help="Print the version.")
def version() -> None:
    """Print the version of livesign, of Python and of the libraries.

    Exit code: always 0.
    """
    import platform
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        own = installed("livesign")
    except PackageNotFoundError:
        own = "(not installed)"
    parts = ", ".join(f"{name} {installed(name)}" for name in ("gevent", "pykka", "msgspec", "msgpack"))
    typer.echo(f"livesign {own} (Python {platform.python_version()}, {parts})")
