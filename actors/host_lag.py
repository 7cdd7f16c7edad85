"""Notices a bot whose asyncio loop is held: livesign itself goes on, but whoever waits for the bot should know why."""

from __future__ import annotations

import logging
import time

from actors.callback import BotLoop

__all__ = ["HostLag"]

log = logging.getLogger("livesign")

LAG_S = 1.0


class HostLag:
    """`look` is called every now and then in livesign's own thread; it asks the loop for a sign of life."""

    def __init__(self, bot: BotLoop) -> None:
        self._bot = bot
        self._asked_s = 0.0
        """When the loop was asked and has not answered yet; 0: it was not."""
        self._complained = False
        self.count = 0
        """How often the loop was held for longer than a second."""

    def look(self) -> None:
        """Ask, or see that there is no answer yet."""
        loop = self._bot.loop
        if loop is None or not loop.is_running():
            self._asked_s = 0.0
            return
        now_s = time.monotonic()
        if self._asked_s:
            if now_s - self._asked_s > LAG_S and not self._complained:
                self._complained = True
                self.count += 1
                log.warning("the bot's asyncio loop has been held for more than %g s: something in it blocks", LAG_S)
            return
        self._asked_s = now_s
        try:
            loop.call_soon_threadsafe(self._answer)
        except RuntimeError:
            self._asked_s = 0.0

    def _answer(self) -> None:
        self._asked_s = 0.0
        self._complained = False
