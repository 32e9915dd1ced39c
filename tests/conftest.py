"""Small data that many tests start from."""

import os
from datetime import UTC, datetime, timedelta

# Two processes test at a time, beside others: threads that wait for each other only get in their
# way. Read when numpy is loaded, and by the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from hypothesis import settings
from scipy.stats import binom

from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.kernels.rows import group_by_row

# Compiling a kernel, or a busy machine, must not fail a test. The same examples each time, so that
# a change is tested and not luck.
settings.register_profile("small", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("full", deadline=None, derandomize=True, max_examples=150)


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="whole searches, studies and simulations")


def pytest_configure(config):
    settings.load_profile("full" if config.getoption("--full") else "small")


def pytest_collection_modifyitems(config, items):
    """Leave out what only `make test-all` runs; begin with what takes long."""
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def full(pytestconfig):
    """Whether everything is tried, and not only a part of it."""
    return pytestconfig.getoption("--full")


@pytest.fixture(scope="session", autouse=True)
def few_people_to_look_at():
    """Let a closer look be at 30 people instead of 400, for most of an audit's time goes there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("whosthere.game.leaks.PEOPLE_TO_LOOK_AT", 30)
        yield


@pytest.fixture(scope="session")
def simulations(full):
    """Say how often to simulate, and the share of times that what has a chance may happen then.

    A tenth of what is asked for, or all with --full. If the chance is as stated, fewer than one
    seed in 10,000 goes beyond that share.
    """

    def of(whole, chance):
        n = whole if full else whole // 10
        return n, float(binom.isf(1e-4, n, chance)) / n

    return of


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
