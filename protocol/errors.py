"""The one decode error: what is wrong with an event, in words, and whether its connection can go on."""

from __future__ import annotations

from protocol.events import Code, Rejected

__all__ = ["DecodeError"]


class DecodeError(ValueError):
    """An event that changes nothing.

    ``code`` is one of the codes of `Rejected`, ``field`` the offending field if one can be named, ``detail``
    the reason in words (it never repeats a secret), ``event_id`` the event's own id where that could be read.
    A ``fatal`` error broke the stream's framing: nothing after it can be trusted, so the connection is closed
    with ``detail`` as reason.
    """

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        field: str | None = None,
        event_id: str | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(code, detail, field)
        self.code: Code = code
        self.detail = detail
        self.field = field
        self.event_id = event_id
        self.fatal = fatal

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    def reply(self) -> Rejected:
        """The answer the client gets."""
        return Rejected(code=self.code, detail=self.detail, field=self.field, id=self.event_id)
