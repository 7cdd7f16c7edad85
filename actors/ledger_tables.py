"""The ledger's tables: what each row looks like in SQLite, and the file's version."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from actors.ledger import USED_IDS_MAX, Contents, LearnedRow, Place, RefusedRow, RestRow, RunRow
from actors.presence.lesson import Learned
from actors.presence.marks import Mark
from actors.presence.policy import Policy
from actors.presence.terms import RunInfo, RunKey

__all__ = ["Row", "commit", "connect", "contents", "forget", "rows_of"]

SCHEMA_VERSION = 2
"""1: a mark is its handle alone, and there are no rests."""
ENDED_KEPT_MS = 24 * 3_600_000
_KEYS = {
    "runs": ("account", "conversation", "run"),
    "marks": ("account", "conversation", "message"),
    "rests": ("account", "conversation", "message"),
    "typing": ("account", "conversation", "thread"),
    "ended": ("account", "conversation", "run"),
    "used": ("session", "event"),
    "learned": ("account", "scope", "ops", "conversation"),
    "refused": ("account",),
}
"""The key columns of each table; the rest of a row is one blob."""
_WIDTH = max(map(len, _KEYS.values()))
_FILL = (None,) * _WIDTH
_ROWS_MAX = 1_024
"""Of one statement; a power of two."""
_MARKS = msgspec.msgpack.Decoder(dict[str, Mark | str | None])
_REST = msgspec.msgpack.Decoder(RestRow)
Row = tuple[str, tuple[Any, ...]]
"""Table and key."""


def connect(path: Path, busy_s: float) -> sqlite3.Connection:
    """Open the file and make the tables that are missing; ``busy_s``: how long a lock of another program is waited for."""
    connection = sqlite3.connect(path, timeout=busy_s, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in range(SCHEMA_VERSION + 1):
            raise sqlite3.DatabaseError(f"it is of version {version}, this livesign knows {SCHEMA_VERSION}")
        for table, keys in _KEYS.items():
            columns = ", ".join([*(f"{name} TEXT" for name in keys), "row BLOB", f"PRIMARY KEY ({', '.join(keys)})"])
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")
        if version != SCHEMA_VERSION:
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        for statement in _one_statement():
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def _one_statement() -> Iterator[str]:
    """What lets one statement write rows of all tables: a view of this connection that hands each row to its table.

    A statement needs the interpreter's lock twice, and a hub that is never idle gives it away every 5 ms only."""
    keys = [f"k{number}" for number in range(_WIDTH)]
    yield f"CREATE TEMP VIEW batch (name, {', '.join(keys)}, row) AS SELECT {', '.join(['NULL'] * (_WIDTH + 2))}"
    for table, names in _KEYS.items():
        new = [f"NEW.{key}" for key, _ in zip(keys, names, strict=False)]
        where = " AND ".join(f"{name}={value}" for name, value in zip(names, new, strict=True))
        begin = f"INSTEAD OF INSERT ON batch WHEN NEW.name='{table}' AND NEW.row IS"
        yield (
            f"CREATE TEMP TRIGGER new_{table} {begin} NOT NULL "
            f"BEGIN REPLACE INTO {table} VALUES ({', '.join(new)}, NEW.row); END"
        )
        yield f"CREATE TEMP TRIGGER no_{table} {begin} NULL BEGIN DELETE FROM {table} WHERE {where}; END"


def commit(connection: sqlite3.Connection, batch: Mapping[Row, Any], *, anew: bool = False) -> None:
    """Write new rows, and drop those that are None, in one transaction; ``anew``: drop all the others too."""
    most = min(_ROWS_MAX, connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // (_WIDTH + 2))
    rows = iter(batch.items())
    parts = [_values(list(islice(rows, most))) for _ in range(-(-len(batch) // most))]
    if len(parts) == 1 and not anew:
        connection.execute(*parts[0])  # a transaction by itself
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for table in _KEYS if anew else ():
            connection.execute(f"DELETE FROM {table}")
        for part in parts:
            connection.execute(*part)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has ended it by itself
            connection.execute("ROLLBACK")
        raise


def _values(rows: list[tuple[Row, Any]]) -> tuple[str, list[Any]]:
    """The statement for these rows and its values; filled up to a power of two, so that there are few statements."""
    values: list[Any] = []
    for (table, key), row in rows:
        data = None if row is None else _encode_run(row) if isinstance(row, RunRow) else msgspec.msgpack.encode(row)
        values += (table, *key, *_FILL[len(key) :], data)
    count = 1 << (len(rows) - 1).bit_length()
    values += (None,) * ((count - len(rows)) * (_WIDTH + 2))
    one = f"({', '.join('?' * (_WIDTH + 2))})"
    return f"INSERT INTO batch VALUES {', '.join([one] * count)}", values


def rows_of(held: Contents, number: int) -> Iterator[tuple[Row, Any]]:
    """Everything as rows; used ids get the numbers from ``number`` on."""
    for key, run in held.runs.items():
        yield ("runs", key), run
    for place, marks in held.marks.items():
        yield ("marks", place), marks
    for place, rest in held.rests.items():
        yield ("rests", place), rest
    for place in held.typing:
        yield ("typing", (place.account, place.conversation, place.target or "")), True
    for key, ended in held.ended.items():
        yield ("ended", key), ended
    for session, ids in held.used.items():
        for event in ids:
            yield ("used", (session, event)), number
            number += 1
    for scope, lesson in held.learned.items():
        yield ("learned", scope), lesson
    for account, refused in held.refused.items():
        yield ("refused", (account,)), refused


def _encode_run(row: RunRow) -> bytes:
    info = row.info
    flags = (info.ack_allowed, info.status_allowed, info.forum, row.events_only, row.direct, row.mentioned)
    return msgspec.msgpack.encode((info.message, info.thread, row.lease_ms, row.kind, flags, row.opened_wall_ms))


def _decode_run(key: RunKey, data: bytes) -> RunRow:
    message, thread, lease_ms, kind, flags, opened_wall_ms = msgspec.msgpack.decode(data)
    ack, status, forum, events_only, direct, mentioned = flags
    info = RunInfo(key, message, thread, Policy(), ack, status, forum)
    return RunRow(info, lease_ms, events_only, direct, mentioned, kind, opened_wall_ms)


def contents(connection: sqlite3.Connection) -> Contents:
    """All that is in the file. Anything may be raised where it makes no sense."""
    held = Contents()
    for account, conversation, run, data in connection.execute("SELECT * FROM runs"):
        key = RunKey(account, conversation, run)
        held.runs[key] = _decode_run(key, data)
    for account, conversation, message, data in connection.execute("SELECT * FROM marks"):
        marks = {emoji: row if isinstance(row, Mark) else Mark(row) for emoji, row in _MARKS.decode(data).items()}
        held.marks[Place(account, conversation, message)] = marks
    for account, conversation, message, data in connection.execute("SELECT * FROM rests"):
        held.rests[Place(account, conversation, message)] = _REST.decode(data)
    for account, conversation, thread, _ in connection.execute("SELECT * FROM typing"):
        held.typing.add(Place(account, conversation, thread or None))
    ended = []
    for account, conversation, run, data in connection.execute("SELECT * FROM ended"):
        ended.append((RunKey(account, conversation, run), tuple(msgspec.msgpack.decode(data))))
    for key, row in sorted(ended, key=lambda item: item[1][2]):
        held.ended[key] = row
    rows = connection.execute("SELECT session, event, row FROM used")
    for session, event, _ in sorted(rows, key=lambda row: int(msgspec.msgpack.decode(row[2]))):
        held.used.setdefault(session, {})[event] = None
    for *scope, data in connection.execute("SELECT * FROM learned"):
        learned, wall_ms = msgspec.msgpack.decode(data)
        held.learned[tuple(scope)] = LearnedRow(Learned(*learned), wall_ms)
    for account, data in connection.execute("SELECT * FROM refused"):
        refused, wall_ms = msgspec.msgpack.decode(data)
        held.refused[account] = RefusedRow(tuple((int(ago_ms), int(seen)) for ago_ms, seen in refused), wall_ms)
    return held


def forget(connection: sqlite3.Connection, held: Contents) -> None:
    """Drop what is too old or too much, in the file and in ``held``."""
    if held.ended:
        newest_ms = max(row[2] for row in held.ended.values())
        old = [key for key, row in held.ended.items() if row[2] < newest_ms - ENDED_KEPT_MS]
        for key in old:
            del held.ended[key]
        connection.executemany("DELETE FROM ended WHERE account=? AND conversation=? AND run=?", old)
    for session, ids in held.used.items():
        for event in list(ids)[:-USED_IDS_MAX]:
            del ids[event]
            connection.execute("DELETE FROM used WHERE session=? AND event=?", (session, event))
