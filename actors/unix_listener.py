"""The Unix socket: private to its user, never left in the way, never taken from a process that lives.

Whoever listens holds a lock on ``PATH.lock`` for as long as it lives. Under that lock an existing socket is
tried:

| found at the path | done |
| --- | --- |
| nothing | bind |
| a socket that refuses | left by a dead process: removed, then bind |
| a socket that accepts | somebody listens there (without our lock): refused |
| a socket that does not answer, or no permission | left alone: refused |
| anything else | left alone: refused |

The socket has mode 0600 from its first moment, whatever the umask; a directory that has to be made gets 0700,
and one that is there is refused if others could put a socket of their own in its place. The peer's user is
checked as well, because a mode can be changed behind our back.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from typing import Any

_PROBE_S = 1.0
BACKLOG = 512


class ListenError(Exception):
    """Cannot listen; the text says where and why."""


class UnixListener:
    """A bound and listening Unix socket with its lock."""

    def __init__(self, path: str, socket_class: Any = socket.socket) -> None:
        """Raises `ListenError`. ``socket_class`` makes the socket (gevent's own, in the server)."""
        self.path = path
        _make_private_directory(os.path.dirname(os.path.abspath(path)))
        self._lock = _lock(path)
        try:
            self.replaced = _clear_the_way(path)
            """Whether a dead process had left its socket."""
            self.socket = socket_class(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._bind()
            except BaseException:
                self.socket.close()
                raise
        except OSError as error:
            os.close(self._lock)
            raise ListenError(f"cannot listen on {path}: {error.strerror or error}") from error
        except BaseException:
            os.close(self._lock)
            raise

    def _bind(self) -> None:
        with contextlib.suppress(OSError):  # where the system allows it, the file is born with this mode
            os.fchmod(self.socket.fileno(), 0o600)
        self.socket.bind(self.path)
        os.chmod(self.path, 0o600)
        self._inode = os.stat(self.path).st_ino
        self.socket.listen(BACKLOG)

    def close(self) -> None:
        """Stop listening, take the socket file away if it is still ours, and let the lock go."""
        self.socket.close()
        with contextlib.suppress(OSError):
            if os.stat(self.path).st_ino == self._inode:
                os.unlink(self.path)
        os.close(self._lock)


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end; None where the system does not tell."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return int(uid)


def _make_private_directory(directory: str) -> None:
    try:
        os.makedirs(os.path.dirname(directory), exist_ok=True)
        os.mkdir(directory, 0o700)
        os.chmod(directory, 0o700)  # a strict umask may have taken away too much
    except FileExistsError:
        found = os.stat(directory)
        open_to_all = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
        if found.st_uid not in (os.geteuid(), 0) or open_to_all:
            raise ListenError(f"others could replace a socket in {directory}: use a private directory") from None
    except OSError as error:
        raise ListenError(f"cannot make the directory {directory}: {error.strerror}") from error


def _lock(path: str) -> int:
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ListenError(f"cannot lock {path}.lock: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise ListenError(f"{path} is in use by another process") from error
        raise ListenError(f"cannot lock {path}.lock: {error.strerror}") from error
    return lock


def _clear_the_way(path: str) -> bool:
    """Whether there was something to take away."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(mode):
        raise ListenError(f"{path} is there and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return True
        except OSError as error:
            reason = error.strerror or "no answer"
            raise ListenError(f"{path} is there and cannot be tried: {reason}") from error
        raise ListenError(f"{path} is in use by another process")
