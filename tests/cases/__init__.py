"""Faults that real users met, as tests: one JSON file per case, and the language they are written in.

``python -m tests.cases FILE…`` runs files of this form (without any: those of this folder) and ends with ``N passed, M
failed``; the exit code is 0, 1 if any failed, 2 if a file is not of this form. `excluded.json` lists the cases that are out
of scope or decided otherwise, with the words that decide it.

A file holds one case, or a list of them::

    {"id": "C018", "title": "…", "kind": ["…"], "source": "https://…", "note": "what was adapted, and why",
     "platform": {"like": "telegram", "latency_ms": 0, "options": {…}, "rules": [{…}]},
     "settings": {"typing_ttl": 120000, "status.debounce_ms": 700},
     "script": [[t_ms, "word", {arguments}], …],
     "until_ms": 200000,
     "expect": [{…}, …],
     "variants": [{"name": "…", "settings": {…}, "script": […], "platform": {…}, "until_ms": …, "expect": […]}]}

Only ``id`` and ``title`` are needed, and a script with expectations or ``proved_by`` (or both): pytest node ids of the tests
that prove what no script can (bytes on a socket, a second process, memory); the runner looks whether they exist.

platform
    ``like`` names a preset (`platforms`), or one for each account; ``options`` go into the accounts' configuration.
    ``rules`` are those of a scenario; an emoji may be ``E.state``, an op may be one of the words below.
settings
    A case's own words or dotted keys of the configuration (`words.SETTINGS`); the step ``reload`` takes the same.
    A limit of typing of 300000 ms is set where nothing else is said.
script
    Words of `words.EVENTS`, `words.CONTROLS`, `words.QUESTIONS`, or of `crowds` for many steps at once. ``m`` or
    ``turn`` names the turn; its chat, thread and account are those it was opened with. Any word may be followed by
    ``_all`` (for every open turn), and have ``repeat`` and ``until``. ``client`` says who sends (default ``c1``). A
    script that begins with ``actor`` is about bare actors (`bare`).
until_ms
    When the run ends: by default two minutes after the last step.
variants
    The same case with something changed; each has to pass as well.

Expectations
------------

Each is an object whose first word says what it is about. All may have a window: ``from`` and ``to`` (included),
``after`` and ``before`` (not included); and ``why``. Bounds are ``count``, ``min``, ``max``; where none is given, at least
one is expected. Times are met within ``within`` ms (default 250).

calls
    ``{"calls": {"op", "emoji", "chat", "message", "thread", "account", "outcome"}, …}``: calls that must be made in the
    window. A filter's values may be lists. Ops: ``typing``, ``typing_stop``, ``react_add``, ``react_set``,
    ``react_remove``, ``status_set``, ``status_clear``, ``reaction`` (any of marks), ``any``, or the wire's own. Emojis:
    ``E.queued``, ``E.thinking``, ``E.tool``, ``E.coding``, ``E.web``, ``E.compact``, ``E.soft``, ``E.hard``,
    ``E.waiting``, ``E.waiting_user``, ``E.done``, ``E.error``, a category of the user's own, or the emoji itself; ``[]``
    is a clear. Bounds; ``at`` (one near each of these times, and no others unless there is a bound); ``first`` and
    ``last`` (when); ``gap_min`` and ``gap_max`` (between two of them; ``gap_max`` also to the window's ends);
    ``per_ms`` with ``at_most`` (in any window of that length); ``in_flight`` (at most so many at once).
no_calls
    A filter: none of these is made in the window.
order
    A list of filters: calls that come one after the other, whatever comes between.
marks
    A message (or ``{"message", "chat", "account"}``), as users see it. ``are`` with ``at`` (times; default the end):
    exactly these marks. For a window: ``min``, ``max`` (how many at any moment), ``always``, ``never``, ``only``,
    ``once`` (each of these at some moment). What lasts no time at all is not seen.
typing
    A chat (or ``{"chat", "thread", "account"}``): the indicator is on, or with ``"on": false`` off, at times ``at`` or
    all through the window but for gaps of at most ``gap_max`` ms.
run, runs
    One turn: ``outcome``, ``reason``, ``ended`` (when), or ``"open": true``. ``runs``: how many with these fields.
answer, replies
    ``answer``: to a step of the script, counted from 0: its ``result`` or the ``code`` of its refusal. ``replies``: how
    many replies have these fields, to this ``client``.
counter, sum
    A counter ``is`` so much or has bounds; numbers that add up to ``is``. Besides the counters of a simulation there
    are runs, open_runs, dead_letters and saved_calls.
exit
    The code that the process ended with, in the window.
rest
    ``true``: at the end no mark, indicator, open run, timer, actor or ledger row is left; or a list of some of
    ``shown``, ``typing``, ``open_runs``, ``timers``, ``actors``, ``ledger_rows``, and ``tree`` (after ``stop_actor``).
warning
    Warnings of the configuration that hold this text.

For bare actors: ``answered`` (callers of these words, or ``all``), ``pending`` (callers without an answer at the end),
``handled``, ``starts``, ``ticks`` (of an actor), ``returned`` (a way to wait for a stop, or ``each``: with everything over by
then), ``registered`` with ``is``, ``runtime`` (``armed_timers``, ``actor_count``, ``backlog`` or a counter), ``depth`` (of a
mailbox, when looked at), ``logged`` (warnings that hold this text).

Whatever a case expects: no invariant of the simulation may be broken, and no actor may fail that was not told to.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def own_files() -> list[Path]:
    """The files of this folder's cases."""
    return sorted(FOLDER.glob("C*.json"))
