"""A screen of fixed cells for the demo: pieces of text at places, robust against emoji of unclear width.

Terminals disagree on how wide some emoji are. Each piece is therefore put at its column by a cursor movement, so that
one wrong guess shifts nothing to its right.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.segment import ControlType, Segment
from rich.text import Text


class Canvas:
    """``width`` times ``height`` cells; what does not fit is cut off. Pieces must not overlap."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._rows: list[list[tuple[int, Text]]] = [[] for _ in range(height)]

    def put(self, x: int, y: int, text: Text | str, style: str = "", width: int | None = None) -> None:
        """Write one line at column ``x`` of row ``y``, at most ``width`` cells of it."""
        if not 0 <= y < self.height or x >= self.width:
            return
        line = Text(text, style=style) if isinstance(text, str) else text.copy()
        line.truncate(min(self.width - x, self.width if width is None else width), overflow="ellipsis")
        self._rows[y].append((x, line))

    def put_lines(self, x: int, y: int, lines: Iterable[Text], width: int) -> None:
        """Write lines below each other."""
        for number, line in enumerate(lines):
            self.put(x, y + number, line, width=width)

    def box(self, x: int, y: int, width: int, height: int, title: Text, style: str) -> None:
        """Draw a frame with a title in its upper edge."""
        name = title.copy()
        name.truncate(width - 5, overflow="ellipsis")
        rest = "─" * (width - 3 - name.cell_len)
        self.put(x, y, Text.assemble(("╭─", style), name, (f"{rest}╮", style)))
        for row in range(y + 1, y + height - 1):
            self.put(x, row, "│", style)
            self.put(x + width - 1, row, "│", style)
        self.put(x, y + height - 1, f"╰{'─' * (width - 2)}╯", style)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, row in enumerate(self._rows):
            yield from self._line(console, row)
            if number < self.height - 1:
                yield Segment.line()

    def _line(self, console: Console, row: list[tuple[int, Text]]) -> Iterable[Segment]:
        at = 0
        for x, text in sorted(row, key=lambda piece: piece[0]):
            if x > at:
                yield Segment(" " * (x - at))
            yield _to_column(x)
            yield from text.render(console)
            at = max(at, x + text.cell_len)


def _to_column(x: int) -> Segment:
    return Control((ControlType.CURSOR_MOVE_TO_COLUMN, x)).segment
