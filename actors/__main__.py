"""``python -m actors`` and the command ``livesign``. Nothing is monkey patched: all waiting is gevent's own."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit."""
    from actors.cli import app

    app(prog_name="livesign")


if __name__ == "__main__":
    main()
