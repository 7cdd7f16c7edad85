"""The demo's screen: the chats as their users see them, beside them what it took, below them what the marks mean."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from actors.demo_canvas import Canvas
from actors.demo_picture import REFUSALS, Picture
from actors.demo_script import ACCOUNTS, LENGTH_MS, Chat
from actors.demo_stage import Note
from actors.sandbox.views import ChatView, MessageView

MIN_WIDTH, MIN_HEIGHT = 72, 20
"""A smaller terminal gets plain lines."""
_WITH_SIDE = 108
_SIDE_WIDTH = 38
_FLASH_MS = 700
_LEGEND = (
    ("👀", "seen"), ("🤔", "thinking"), ("🔥", "tool"), ("👨\u200d💻", "coding"), ("⚡", "web"), ("✍", "compacting"),
    ("🥱", "quiet"), ("😨", "stuck?"), ("👍", "done"), ("😱", "failed"),
)  # fmt: skip
_COLOURS = dict(zip(ACCOUNTS, ("magenta", "cyan"), strict=True))
_Cells = list[Text]


def screen(picture: Picture, chats: Sequence[Chat], console: Console, speed: float) -> Canvas:
    """The whole screen at this moment."""
    width, height = console.size
    canvas = Canvas(width, height)
    side = width >= _WITH_SIDE
    chats_width = width - _SIDE_WIDTH - 1 if side else width
    top, bottom = 2, height - (2 if side else 3)
    _header(canvas, picture, speed)
    columns = 2
    rows = -(-len(chats) // columns)
    for number, chat in enumerate(chats):
        row, column = divmod(number, columns)
        x, next_x = (chats_width * step // columns for step in (column, column + 1))
        y, next_y = (top + (bottom - top) * step // rows for step in (row, row + 1))
        _card(canvas, console, picture, chat, (x, y, next_x - x, next_y - y))
    if side:
        _side(canvas, picture, chats_width + 2, top, bottom)
    else:
        _strip(canvas, picture, height - 3)
    _legend(canvas, height - 1)
    return canvas


def _header(canvas: Canvas, picture: Picture, speed: float) -> None:
    title = Text.assemble((" livesign ", "bold reverse"), "  what people see while bots work")
    canvas.put(0, 0, title)
    share = min(1.0, picture.t_ms / LENGTH_MS)
    bar = "━" * round(20 * share)
    pace = "" if speed == 1 else f"  {speed:g}×"
    clock = Text.assemble((bar, "green"), ("━" * (20 - len(bar)), "dim"), f"  {picture.t_ms / 1_000:4.1f} s{pace} ")
    canvas.put(max(0, canvas.width - clock.cell_len), 0, clock)


# --- chats -----------------------------------------------------------------------------------------------------------


def _card(canvas: Canvas, console: Console, picture: Picture, chat: Chat, place: tuple[int, int, int, int]) -> None:
    x, y, width, height = place
    view = picture.chat(chat)
    busy = view is not None and (bool(view.typing) or any(message.marks for message in view.messages))
    title = Text.assemble((f" {chat.title} ", "bold"), ("direct " if chat.direct else "group ", "dim"))
    canvas.box(x, y, width, height, title, "default" if busy else "dim")
    if view is None:
        return
    inner = width - 4
    room = height - 4
    lines: _Cells = []
    for message in view.messages:
        lines += _message(console, message, inner, picture.state.now_ms)
    canvas.put_lines(x + 2, y + 1, lines[-room:], inner)
    canvas.put(x + 2, y + height - 2, _typing(view, picture.t_ms), width=inner)


def _message(console: Console, message: MessageView, width: int, now_ms: int) -> _Cells:
    colour = _COLOURS.get(message.sender)
    text = Text.assemble((message.sender, f"bold {colour}" if colour else "bold"), "  ", message.text)
    for mark in message.marks:
        fresh = now_ms - mark.at_ms < _FLASH_MS
        text.append("  ")
        text.append(f"\u00a0{mark.emoji}\u00a0", "on blue" if fresh else "on bright_black")
    indent = len(message.sender) + 2
    first, *rest = text.wrap(console, width - indent) or [text]
    return [first, *(Text(" " * indent).append_text(line) for line in rest)]


def _typing(view: ChatView, t_ms: int) -> Text:
    who = list(dict.fromkeys(typing.account for typing in view.typing))
    if not who:
        return Text()
    step = t_ms // 350 % 3
    line = Text("".join("●" if number == step else "·" for number in range(3)) + " ", style="italic")
    names = [Text(name, style=_COLOURS.get(name, "")) for name in who]
    return line.append_text(Text(" and ").join(names)).append(" is typing" if len(who) == 1 else " are typing")


# --- figures ---------------------------------------------------------------------------------------------------------


def _side(canvas: Canvas, picture: Picture, x: int, top: int, bottom: int) -> None:
    width = _SIDE_WIDTH - 1
    y = top
    for label, value, style in _figures(picture):
        canvas.put(x, y, label, style)
        canvas.put(x + width - 8, y, f"{value:>7}", style)
        y += 1
    y += 1
    canvas.put(x, y, "what the agents say", "bold")
    room = max(0, bottom - y - 1)
    notes = list(picture.notes)[-room:] if room else []
    canvas.put_lines(x, y + 1, (_note(note) for note in notes), width)


def _figures(picture: Picture) -> list[tuple[str, int, str]]:
    rows = [
        ("events from the agents", picture.events, "bold"),
        ("calls made", picture.calls.total, "bold"),
        ("  marks", picture.made("set", "remove", "clear"), ""),
        ("  typing", picture.made("typing_start", "typing_stop"), ""),
    ]
    for outcome, words in REFUSALS.items():
        count = picture.answered(outcome)
        rows.append((f"  answered “{words}”", count, "yellow" if count else "dim"))
    rows.append(("calls saved", picture.saved, "bold green"))
    return rows


def _note(note: Note) -> Text:
    return Text.assemble(
        (f"{note.t_ms / 1_000:4.1f}  ", "dim"),
        (f"{note.chat:8} ", "dim"),
        (f"{note.who} ", _COLOURS.get(note.who, "")),
        note.what,
    )


def _strip(canvas: Canvas, picture: Picture, y: int) -> None:
    refused = sum(picture.answered(outcome) for outcome in REFUSALS)
    figures = Text.assemble(
        ("events ", "dim"), f"{picture.events}  ",
        ("calls ", "dim"), f"{picture.calls.total}  ",
        ("refused ", "dim"), (f"{refused}  ", "yellow" if refused else ""),
        ("saved ", "dim"), (f"{picture.saved}", "green"),
    )  # fmt: skip
    canvas.put(1, y, figures)
    if picture.notes:
        canvas.put(max(canvas.width // 2, figures.cell_len + 4), y, _note(picture.notes[-1]))


def _legend(canvas: Canvas, bottom: int) -> None:
    """In as many lines as it takes, the last one at ``bottom``."""
    rows: list[list[tuple[int, str, str]]] = [[]]
    x = 1
    for emoji, word in _LEGEND:
        if x + 3 + len(word) > canvas.width:
            rows.append([])
            x = 1
        rows[-1].append((x, emoji, word))
        x += len(word) + 5
    for number, row in enumerate(rows):
        y = bottom - len(rows) + 1 + number
        for x, emoji, word in row:
            canvas.put(x, y, emoji)
            canvas.put(x + 3, y, word, "dim")
