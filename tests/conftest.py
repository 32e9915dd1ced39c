"""Small data that many tests start from."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import settings

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.kernels.rows import group_by_row

# Compiling a kernel, or a busy machine, must not fail a test.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture
def rng():
    return np.random.default_rng(20240601)


@pytest.fixture
def epochs():
    """Three days of hours in Rome."""
    start = datetime(2013, 10, 31, 23, tzinfo=UTC)
    return Epochs(start, timedelta(hours=1), 72, "Europe/Rome")


@pytest.fixture
def regions(rng):
    return Regions([f"r{i}" for i in range(7)], rng.uniform(9, 9.3, 7), rng.uniform(45, 45.3, 7))


@pytest.fixture
def traces(rng, regions, epochs):
    """Forty users with 0 to about 100 visits each."""
    users = rng.integers(0, 40, 1500).astype(np.int32)
    users = users[rng.random(1500) < (users + 1) / 40]
    cells = rng.integers(0, 7 * 72, users.size).astype(np.int32)
    indptr, cells = group_by_row(users, cells, 40)
    return Traces(tuple(f"u{i:02d}" for i in range(40)), indptr, cells, regions, epochs)
