"""``python -m tests.stubs PLATFORM EXAMPLE.py``: run an example against a stub of its platform, without any account.

The example runs in this process as it is. When the bot has answered and its marks are gone, it is interrupted as by Ctrl-C,
and what showed is printed.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import sys
import tempfile
import threading
import time

PLATFORMS = {"telegram": "Telegram", "discord": "Discord", "slack": "Slack", "matrix": "Matrix"}
LONGEST_S = 60.0


def main(platform: str, example: str) -> int:
    """The exit code: 0 if the bot has answered and left no mark."""
    stub = getattr(importlib.import_module(f"tests.stubs.{platform}"), PLATFORMS[platform])()
    # Every message of a stub is the first there ever was; a ledger of the user's own would know better.
    os.environ.update(stub.env(), XDG_STATE_HOME=tempfile.mkdtemp())
    stub.patch()

    def watch() -> None:
        until = time.monotonic() + LONGEST_S
        while not stub.over and time.monotonic() < until:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch, daemon=True).start()
    sys.argv = [example]
    try:
        runpy.run_path(example, run_name="__main__")
    except KeyboardInterrupt:
        pass
    print(f"marks: {' '.join(stub.seen)}; typing: {bool(stub.typed)}; answer: {' '.join(stub.said)}")
    return 0 if stub.over else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
