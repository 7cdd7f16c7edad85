"""Fixtures of the runtime's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.stand import DRIVERS, Stand


@pytest.fixture(params=DRIVERS)
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    """A runtime with each driver; at the end it must leave nothing behind."""
    stand = Stand(request.param)
    yield stand
    stand.close()


@pytest.fixture
def manual() -> Iterator[Stand]:
    """A runtime with the manual driver."""
    stand = Stand("manual")
    yield stand
    stand.close()


@pytest.fixture
def hub() -> Iterator[Stand]:
    """A runtime with the hub driver, in this thread."""
    stand = Stand("hub")
    yield stand
    stand.close()
