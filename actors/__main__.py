"""``python -m actors`` and the command ``livesign``. Nothing is monkey patched: all waiting is gevent's own."""

from __future__ import annotations

import errno
import sys


def main() -> None:
    """Run the command line and exit."""
    from actors.cli import app

    try:
        app(prog_name="livesign")
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        sys.exit(f"livesign: cannot write: {error.strerror}")


if __name__ == "__main__":
    main()
