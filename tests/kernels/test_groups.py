"""What compiled code publishes in groups side by side."""

import numpy as np
import pytest
from scipy import stats

from whosthere import kernels
from whosthere.adversary.groups import GroupSampler
from whosthere.privacy.mechanism import Mechanism

M, KEY = 23, np.uint64(7)
every_mechanism = pytest.mark.parametrize(
    "spec",
    [
        "raw",
        "suppress(k=2)",
        "round(to=4)",
        "random-round(to=3)",
        "laplace(eps=1, unit=event)",
        "laplace(eps=0.05, unit=event) | suppress(k=1)",
        "discrete-laplace(eps=0.5, unit=event) | round(to=5)",
        "gaussian(eps=1, delta=1e-6, unit=event)",
    ],
)


@pytest.fixture
def noise_of(traces):
    """Return the tables of a mechanism, for groups of M people."""
    return lambda spec: GroupSampler(traces, traces.trace(0), M, Mechanism.parse(spec)).noise()


@every_mechanism
def test_what_is_published_follows_the_exact_chances(noise_of, spec):
    """Chi-square of 60,000 cells for each of five counts; a false alarm in 1e-5 of fresh seeds.

    Noise is drawn to 1 in 65,536, so that the rarest values may be missing.
    """
    for count in (0, 1, 2, 11, M):
        counts = np.full((2000, 30), count, np.uint8)
        kernels.publish_counts(counts, noise_of(spec), KEY)
        found = np.bincount(counts.reshape(-1), minlength=M + 1)
        expected = 60_000 * Mechanism.parse(spec).pmf(np.arange(M + 1), count, M)
        assert not found[expected == 0].any()
        rare = expected < 5
        found = np.append(found[~rare], found[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        used = expected > 0.1
        if used.sum() > 1:
            statistic = ((found[used] - expected[used]) ** 2 / expected[used]).sum()
            assert stats.chi2.sf(statistic, used.sum() - 1) > 1e-5 / 8 / 5


@every_mechanism
def test_a_count_alone_is_published_as_among_others(noise_of, spec):
    rng = np.random.default_rng(0)
    true = rng.integers(0, M + 1, (90, 37)).astype(np.uint8)
    together, alone = true.copy(), np.empty(true.size, np.int32)
    kernels.publish_counts(together, noise_of(spec), KEY)
    cells, groups = (at.reshape(-1) for at in np.indices(true.shape))
    kernels.publish_at(true.reshape(-1).astype(np.int32), cells, groups, noise_of(spec), KEY, alone)
    assert np.array_equal(alone, together.reshape(-1))


@every_mechanism
def test_the_same_numbers_keep_the_order_of_counts(noise_of, spec):
    counts = np.random.default_rng(0).integers(0, M, (50, 100)).astype(np.uint8)
    more = counts + np.uint8(1)
    for one in (counts, more):
        kernels.publish_counts(one, noise_of(spec), KEY)
    assert (counts <= more).all()


def test_cells_and_groups_draw_independently(noise_of):
    """Neighbours share random words, and further counts do not; 4.5 sigma."""
    counts = np.full((400, 100), 9, np.uint8)
    kernels.publish_counts(counts, noise_of("laplace(eps=1, unit=event)"), KEY)
    values = counts.reshape(-1).astype(float)
    for lag in (1, 2, 3, 4, 100, 1024):
        assert abs(np.corrcoef(values[:-lag], values[lag:])[0, 1]) < 4.5 / 200
