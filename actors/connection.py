"""One client connection: a greenlet that reads, a greenlet that writes, and the limits of both.

- Nothing is dropped on the way in: a reader waits while the runtime has too much to do, or while its peer
  does not read. An executor never has to wait.
- A passed time limit ends the connection: `Closing` with the reason, then the end of the stream.
- Who has pinged once wants to be watched: from then on 20 s of silence count as a lost connection. The
  others, who may say nothing for as long as their work takes, are watched by TCP's own keepalive; a Unix
  socket tells at once.
- At the end of the stream the session is told at once; what is still owed to a peer that only stopped writing
  is sent.
"""

from __future__ import annotations

import logging
import socket
import time
from typing import Any

import gevent
from gevent.event import Event as Signal
from gevent.socket import wait_read

from actors.dialogue import Dialogue
from actors.grants import Grant
from actors.reply_buffer import ReplyBuffer
from actors.server_context import ServerContext
from protocol.codec import Decoder
from protocol.events import Closing, Reply

log = logging.getLogger("livesign.server")

RECV_BYTES = 16_384
"""Read at a time; between two reads everybody else has a turn."""
_POLL_S = 0.002


class Connection:
    """Serves ``sock`` until its end. ``grant`` None: the peer has to show a token first."""

    def __init__(self, context: ServerContext, sock: Any, peer: str, grant: Grant | None) -> None:
        self._context = context
        self._sock = sock
        self.peer = peer
        self.dialogue = Dialogue(context, peer, grant, self._put)
        self._decoder = Decoder(context.settings.limits.event_bytes)
        self._replies = ReplyBuffer()
        self._has_replies = Signal()
        self._has_room = Signal()
        self._reader: Any = None
        self._reason: str | None = None
        """Why we close it."""
        self._ending = False
        self._closed = False
        self._opened_at = self._heard_at = time.monotonic()
        self._half_since: float | None = None
        """When the event began that is not finished yet."""
        self._writing_since: float | None = None
        """When the peer last took something of what it still has to take."""
        self._paused = False

    def close(self, reason: str) -> None:
        """End the connection with a `Closing`. Does not wait for it."""
        if self._ending or self._reason is not None:
            return
        self._reason = reason
        if self._reader is not None:
            self._reader.kill(block=False)

    def overdue(self, now: float) -> str | None:
        """Which time limit has passed, in the words of the `Closing`."""
        timing = self._context.timing
        if self._writing_since is not None and now - self._writing_since > timing.silence_s:
            return "replies are not read"
        if self._paused:
            return None
        if self.dialogue.grant is None and now - self._opened_at > timing.handshake_s:
            return f"no hello within {timing.handshake_s:g} s"
        if self._half_since is not None and now - self._half_since > timing.half_event_s:
            return f"an event was not finished within {timing.half_event_s:g} s"
        silent_s = now - self._heard_at
        if self.dialogue.pings and silent_s > timing.silence_s:
            return f"no ping for {timing.silence_s:g} s"
        idle_ms = self._context.settings.limits.idle_ms
        if idle_ms and silent_s * 1_000 > idle_ms:
            return f"nothing was said for {idle_ms} ms"
        return None

    # --- the reading greenlet ------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve the connection to its end; returns when all is said and the socket is closed."""
        self._reader = gevent.getcurrent()
        writer = gevent.spawn(self._write)
        try:
            if self._reason is None:
                self._reason = self._read()
        except gevent.GreenletExit:
            pass  # close() has left the reason
        except OSError as error:
            log.debug("%s: %s", self.peer, error)
        except Exception:
            log.exception("%s: closed by a fault of ours", self.peer)
            self._context.counters["faults"] += 1
            self._reason = "internal error"
        finally:
            self._ending = True
            self.dialogue.leave()
        try:
            self._finish(writer)
        finally:
            self._closed = True
            writer.kill(block=False)
            self._sock.close()

    def _read(self) -> str | None:
        """The reason to close; None: the peer ended the stream."""
        take = self.dialogue.take
        while True:
            if not self._pending_tls():
                wait_read(self._sock.fileno())
            self._wait_for_room()
            data = self._sock.recv(RECV_BYTES)
            if not data:
                return None
            self._heard_at = time.monotonic()
            self._context.counters["bytes_in"] += len(data)
            finished = False
            for item in self._decoder.feed(data):
                finished = True
                reason = take(item)
                if reason is not None:
                    return reason
            if not self._decoder.pending:
                self._half_since = None
            elif finished or self._half_since is None:
                self._half_since = self._heard_at

    def _pending_tls(self) -> bool:
        """Whether decrypted bytes wait, which no selector would see."""
        pending = getattr(self._sock, "pending", None)
        return pending is not None and pending() > 0

    def _wait_for_room(self) -> None:
        gate = self._context.gate
        if self.dialogue.executes:  # what waits may wait for its results
            return
        if gate.is_open and not self._replies.crowded:
            return
        self._paused = True
        self._context.counters["reads_paused"] += 1
        while self._replies.crowded:
            self._has_room.clear()
            self._has_room.wait()
        gate.wait()
        self._paused = False
        self._heard_at = time.monotonic()
        if self._half_since is not None:
            self._half_since = self._heard_at

    # --- the writing greenlet ------------------------------------------------------------------------------

    def _put(self, reply: Reply) -> None:
        if self._closed:
            return
        dropped = self._replies.dropped
        if not self._replies.put(reply):
            self._context.counters["connections_cut"] += self._reason is None and not self._ending
            self.close("replies are not read")
        self._context.counters["states_dropped"] += self._replies.dropped - dropped
        self._has_replies.set()

    def _write(self) -> None:
        try:
            while True:
                self._has_replies.wait()
                self._has_replies.clear()
                data = memoryview(self._replies.take())
                self._has_room.set()
                while data:
                    self._writing_since = time.monotonic()
                    data = data[self._sock.send(data) :]
                self._writing_since = None
        except OSError as error:
            log.debug("%s: %s", self.peer, error)
            self.close("cannot write")

    # --- the end -------------------------------------------------------------------------------------------

    def _finish(self, writer: Any) -> None:
        """Send what is owed, say why, and let the peer read it before the socket goes."""
        linger_s = self._context.timing.linger_s
        try:
            with gevent.Timeout(linger_s):
                while self._reason is None and self.dialogue.owed > 0 and not writer.dead:
                    gevent.sleep(_POLL_S)
        except gevent.Timeout:
            pass
        if self._reason is not None:
            self._put(Closing(reason=self._reason))
        try:
            with gevent.Timeout(linger_s):
                while (self._replies.size or self._writing_since is not None) and not writer.dead:
                    gevent.sleep(_POLL_S)
                self._sock.shutdown(socket.SHUT_WR)
                # A close with unread bytes would be a reset, which takes the last replies with it.
                while self._reason is not None and self._sock.recv(RECV_BYTES):
                    pass
        except (OSError, gevent.Timeout):
            pass
