"""The runtime's tests once more, in a process patched by gevent: ``python -m tests.runtime.patched``."""

import sys

from gevent import monkey

monkey.patch_all()

import pytest  # noqa: E402  # after patching: that is the point

if __name__ == "__main__":
    sys.exit(pytest.main(["tests/runtime", "-p", "no:cacheprovider", *sys.argv[1:]]))
