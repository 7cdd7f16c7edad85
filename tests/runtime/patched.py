"""The runtime's tests once more, in a process patched by gevent: ``python -m tests.runtime.patched``."""

import sys

if __name__ == "__main__":
    from gevent import monkey

    monkey.patch_all()

    import pytest

    sys.exit(pytest.main(["tests/runtime", "-p", "no:cacheprovider", *sys.argv[1:]]))
