"""Reading a file that somebody has named: it may be anything, a device without an end included."""

from __future__ import annotations

import errno
import os
from pathlib import Path

FILE_MAX_BYTES = 64 * 2**20


def read_text(path: str | Path) -> str:
    """All of it; a byte order mark is no part of it. Raises OSError and UnicodeDecodeError."""
    with open(path, "rb") as file:
        data = file.read(FILE_MAX_BYTES + 1)
    if len(data) > FILE_MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data.decode("utf-8-sig")
