"""Write ``events.md``, ``configuration.md``, ``platforms.md`` and ``metrics.md`` from the types they document: ``python docs/generate.py``.

A test holds that the files are what this prints.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import typing
from pathlib import Path
from types import ModuleType

import msgspec

from actors.config_keys import KEYS, Key
from actors.meters import ACCOUNT_COUNTERS, ACCOUNT_GAUGES, COUNTERS, GAUGES
from actors.platforms.like import LikeAdapter
from actors.platforms.registry import PLATFORMS
from actors.platforms.spec import NO_OPTIONS, PlatformSpec
from protocol import events, replies

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/generate.py; change the types instead. -->\n"
COMMON = ("conversation", "account", "message", "run", "thread", "lease_ms")


INTRODUCTION = """\
An event says *what happens* to a run; livesign decides what to show. On the wire each event and each reply is one msgpack map,
with nothing around it, whose `type` is the heading here. A field whose default suits can be left out; unknown fields are
ignored. Ids are text of at most 255 bytes, or whole numbers, which stand for their decimal text. Times are whole milliseconds
(`_ms`); `sent_at_ms` is Unix time. On a Unix socket a client can start with any event; on TCP with `hello`."""


def events_page() -> str:
    """Every event and reply with its fields."""
    lines = ["# Events and replies", "", NOTE, INTRODUCTION, ""]
    lines += ["## Events", "", "Every event may carry:", "", *_fields(events.Event, ("id",)), ""]
    lines += ["Every event of a run carries, or may carry:", "", *_fields(events.RunEvent, COMMON), ""]
    bare = ", ".join(f"`{cls.__struct_config__.tag}`" for cls in events.BARE_EVENTS)
    lines += [
        f"At least one of `message` and `run` is given (or the `scope` of a bare indicator). Events of no run are {bare}.",
        "",
    ]
    for cls in _subclasses(events, events.Event):
        if cls is not events.RunEvent:
            skip = COMMON if issubclass(cls, events.RunEvent) else ()
            lines += _section(cls, ("id", *skip))
    lines += ["## Replies", ""]
    for cls in _subclasses(replies, replies.Reply):
        lines += _section(cls, ())
    return "\n".join(lines).rstrip() + "\n"


def configuration_page() -> str:
    """Every key of the configuration."""
    lines = [
        "# Configuration",
        "",
        NOTE,
        "TOML. Levels: `top` of the file; `account`, under `accounts.NAME`, over the top; `match`, in a `[[match]]` block, "
        "over the account, a later block over an earlier one; `own`, under `accounts.NAME` only; `condition`, in a "
        "`[[match]]` block: what it applies to; `token`, in an entry of `server.tokens`. Times are milliseconds, 0 is off "
        "where it is allowed. `NAME`, `STATE` and `CATEGORY` stand for names.",
        "",
        "| key | default | allowed | levels | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [_key_row(key) for key in KEYS]
    return "\n".join(lines) + "\n"


def platforms_page() -> str:
    """Every platform's row."""
    lines = [
        "# Platforms",
        "",
        NOTE,
        "What livesign knows of each platform, and what it does there unless the configuration says otherwise. *Ids* are "
        "those of events, in this order: `conversation`, `thread`, `message`; a dash: not used. Marks: `replace`, one at a "
        "time; `add_remove`, each by itself. Limits are livesign's own, below those of the platform; `limits.account` of the "
        "configuration takes the place of `account` and `account.…` here, the others likewise.",
        "",
        "| platform | ids | marks | typing | limits | options needed |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    specs = [made.spec for make in PLATFORMS.values() if not isinstance(made := make(NO_OPTIONS), LikeAdapter)]
    lines += [_platform_row(spec) for spec in specs]
    lines += ["", "| platform | the bot needs | cannot be shown |", "| --- | --- | --- |"]
    lines += [f"| {spec.name} | {spec.needs} | {spec.cannot} |" for spec in specs if spec.needs]
    lines += ["", "Where the facts come from ((R): chosen, not documented):", ""]
    lines += [f"- {spec.name}: {spec.source}" for spec in specs]
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Everything that is counted or measured."""
    lines = [
        "# Metrics",
        "",
        NOTE,
        "With `metrics.listen`, `livesign serve` answers `/metrics` in Prometheus' text format, and `/health` with 200 while it "
        "works and 503 when it is stopping or has failed. The names there are `livesign_NAME`, those of counters end in "
        "`_total`, those of one account are `livesign_account_NAME` with its name as the label `account`; "
        "`livesign_outcomes_total` has what became of calls, with the labels `account` and `outcome`. `livesign send stats` "
        "prints the same by the names below, of all accounts together. There is no secret among them.",
        "",
    ]
    tables = {"measured": GAUGES, "counted": COUNTERS, "account, measured": ACCOUNT_GAUGES}
    for title, table in {**tables, "account, counted": ACCOUNT_COUNTERS}.items():
        lines += [
            f"| {title} | meaning |",
            "| --- | --- |",
            *(f"| `{name}` | {text} |" for name, text in table.items()),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _platform_row(spec: PlatformSpec) -> str:
    rules = spec.rules
    marks = [rules.reactions, f"at most one change in {spec.min_change_ms} ms" if spec.min_change_ms else ""]
    marks.append("queued, stalls, done and error only" if spec.presentation == "ends" else "")
    typing = "none"
    if rules.typing:
        lives = f"lives {rules.typing_lifetime_ms} ms" if rules.typing_lifetime_ms else "lasts"
        renewed = f"renewed every {spec.keepalive_ms} ms" if spec.keepalive_ms else "not renewed"
        ends = "can be stopped" if rules.typing_stop else ""
        typing = "; ".join(filter(None, (lives, renewed, ends, "per thread" if rules.typing_in_threads else "")))
    limits = "; ".join(f"{name} {limit.count} in {limit.per_ms} ms" for name, limit in spec.limits.items())
    options = [*(["token"] if spec.needs_token else []), *spec.required_options]
    options += [] if spec.base_url or spec.name == "sandbox" else ["base_url"]
    ids = spec.ids.replace("|", "\\|")
    return f"| {spec.name} | {ids} | {'; '.join(filter(None, marks))} | {typing} | {limits} | {', '.join(options)} |"


def _key_row(key: Key) -> str:
    default = key.default_text or ("" if key.default is None else _plain(key.default))
    allowed = str(key.kind.allowed).replace("|", "\\|")
    levels = ", ".join(sorted(level.value for level in key.levels))
    meaning = key.meaning + (f" ({key.platform} only)" if key.platform else "")
    return f"| `{key.name}` | {default} | {allowed} | {levels} | {meaning} |"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list | frozenset):
        return ", ".join(map(str, value))
    return str(value)


def _words(text: str | None) -> str:
    """A docstring as Markdown: structs by their names on the wire."""
    plain = inspect.cleandoc(text or "").replace("``", "`")
    return re.sub(r"`([A-Z][A-Za-z]+)`", lambda found: f"`{replies.snake(found[1])}`", plain)


def _section(cls: type[msgspec.Struct], skip: tuple[str, ...]) -> list[str]:
    fields = _fields(cls, tuple(f.name for f in msgspec.structs.fields(cls) if f.name not in skip))
    return [f"### {cls.__struct_config__.tag}", "", _words(cls.__doc__), "", *([*fields, ""] if fields else [])]


def _fields(cls: type[msgspec.Struct], names: tuple[str, ...]) -> list[str]:
    found = {field.name: field for field in msgspec.structs.fields(cls)}
    meanings = _meanings(cls)
    rows = []
    for name in names:
        field = found[name]
        empty = field.required or field.default in (None, "")
        default = "required" if field.required else "" if empty else f"default {_plain(field.default)}"
        about = ". ".join(filter(None, (default, meanings.get(name))))
        rows.append(f"- `{name}`: {_type(field.type)}{', ' + about if default else '. ' + about if about else ''}")
    return rows


def _meanings(cls: type[msgspec.Struct]) -> dict[str, str]:
    """The docstrings below the fields of a struct and of those it extends."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base.__module__ in (events.__name__, replies.__name__):
            body = ast.parse(inspect.getsource(base)).body[0].body  # type: ignore[attr-defined]
            for field, text in itertools.pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    found[field.target.id] = _words(ast.literal_eval(text.value)).replace("\n", " ")  # type: ignore[union-attr]
    return found


def _type(hint: object) -> str:
    origin = typing.get_origin(hint)
    if origin is typing.Annotated:
        return "text" if typing.get_args(hint)[0] is str else "milliseconds"
    if origin is typing.Literal:
        return " / ".join(str(value) for value in typing.get_args(hint))
    args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if origin is list:
        return f"list of {_type(args[0])}"
    if origin is dict:
        return "map"
    if len(args) == 1:
        return _type(args[0])
    return {str: "text", int: "number", bool: "true / false"}.get(hint, str(hint))  # type: ignore[call-overload, no-any-return]


def _subclasses(module: ModuleType, base: type[msgspec.Struct]) -> list[type[msgspec.Struct]]:
    """In the order of the source."""
    return [cls for cls in vars(module).values() if isinstance(cls, type) and issubclass(cls, base) and cls is not base]


PAGES = {
    "events.md": events_page,
    "configuration.md": configuration_page,
    "platforms.md": platforms_page,
    "metrics.md": metrics_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (HERE / name).write_text(page(), "utf-8")
