"""``python -m tests.fuzz TARGET… --seconds N``: atheris, guided by coverage, from the corpus on. Needs the extra ``fuzz``.

What fails is written to ``crash-…`` in the working folder; it goes into ``tests/fuzz/corpus/TARGET`` with the correction.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).with_name("corpus")
NAMES = tuple(sorted(folder.name for folder in CORPUS.iterdir()))
INSTRUMENTED = ["actors.config", "actors.scenario", "actors.platforms", "actors.presence", "protocol"]


def main() -> int:
    """Run each target in a process of its own; 1 if one failed, 2 without atheris."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--seconds", type=int, default=10, help="for each target")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.targets) - set(NAMES)
    if unknown:
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    if options.inside:
        return _fuzz(options.targets[0], options.seconds)
    failed = []
    for name in options.targets or NAMES:
        command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(options.seconds), "--inside"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MSGPACK_PUREPYTHON": "1"})
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        print(f"{name}: {last[-1] if done.returncode == 0 and last else done.stderr[-2_000:]}", flush=True)
        if done.returncode == 2:
            return 2
        failed += [name] if done.returncode else []
    print(f"{', '.join(failed)} failed" if failed else "nothing found")
    return 1 if failed else 0


def _fuzz(name: str, seconds: int) -> int:
    try:
        import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        print("atheris is not installed: pip install 'livesign[fuzz]'", file=sys.stderr)
        return 2
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    with tempfile.TemporaryDirectory() as found:
        limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=4096"]
        atheris.Setup([sys.argv[0], *limits, found, str(CORPUS / name)], TARGETS[name])
        atheris.Fuzz()  # ends the process
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
