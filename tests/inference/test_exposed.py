"""How risk is spread over people: known answers, a slow implementation, and simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import ndtri, softmax
from scipy.stats import binomtest

from whosthere.inference import exposed as people
from whosthere.inference.exposed import risk_percentile, share_exposed
from whosthere.inference.looks import Errors, Look

ENDS = ("low", "high")


def measured(true_aucs, n_in, n_out, rng):
    """AUCs of normal scores over so many releases."""
    shifts = np.sqrt(2) * ndtri(true_aucs)[:, None, None]
    in_ = rng.normal(size=(len(true_aucs), n_in, 1)) + shifts
    return (in_ > rng.normal(size=(len(true_aucs), 1, n_out))).mean(axis=(1, 2))


def chances_of(aucs, grid):
    """The chance of each different measurement over 10 + 10 releases by true AUC, and how many."""
    distinct, repeats = np.unique(people.bin_of(aucs), return_counts=True)
    return people._noise(10, 10, tuple(grid.tolist()))[:, distinct].T, repeats


class TestNoise:
    @pytest.mark.parametrize(("n_in", "n_out"), [(10, 10), (50, 50), (4, 7), (1, 1), (200, 200)])
    def test_equals_fresh_draws(self, n_in, n_out, rng):
        """Against fresh draws, at every edge of a bin."""
        grid = (0.0, 0.5, 0.7, 0.9, 1.0)
        law = people._noise(n_in, n_out, grid)
        assert law.sum(axis=1) == pytest.approx(1)
        for chances, auc in list(zip(law, grid, strict=True))[1:-1]:
            drawn = measured(np.full(3000 if n_in < 200 else 300, auc), n_in, n_out, rng)
            counts = np.bincount(people.bin_of(drawn), minlength=people.N_BINS)
            expected = counts / drawn.size
            gap = np.abs(np.cumsum(chances) - np.cumsum(expected)).max()
            assert gap < 2.2 / np.sqrt(drawn.size) + 0.02

    def test_certain_people(self):
        law = people._noise(10, 10, (0.0, 0.5, 1.0))
        assert law[0, 0] > 0.99
        assert law[-1, -1] > 0.99
        assert law.min() > 0


class TestBestLikelihoods:
    @pytest.mark.parametrize("share", [0.05, 0.3, 0.8])
    def test_equals_a_general_optimiser(self, share, rng):
        """The same maximum, from scipy, over the same constrained mixtures on a coarser grid."""
        grid = np.array([0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97, 1.0])
        aucs = measured(rng.choice([0.55, 0.75, 0.95], 40), 10, 10, rng)
        chances, repeats = chances_of(aucs, grid)

        def loss(logits):
            mixture = np.zeros(8)
            mixture[:6] = (1 - share) * softmax(logits[:6])
            mixture[5:] += share * softmax(logits[6:])
            return -np.log(chances @ mixture) @ repeats

        expected = -minimize(loss, np.zeros(9), method="BFGS").fun
        (found,) = people._best_likelihoods(
            chances, repeats, np.array([5]), np.array([5]), np.array([share])
        )
        assert found == pytest.approx(expected, abs=0.1)

    def test_no_share_is_better_than_the_best_mixture(self, rng):
        aucs = measured(rng.uniform(0.5, 0.99, 55), 10, 10, rng)
        chances, repeats = chances_of(aucs, people.TRUE_AUCS)
        best = np.log(chances @ people._best_mixture(chances, repeats)) @ repeats
        places = np.full(people._SHARES.size, 25)
        likely = people._best_likelihoods(chances, repeats, places, places, people._SHARES)
        # The test allows for a drop of 2.67, of which 0.75 are leeway.
        assert likely.max() == pytest.approx(best, abs=0.15)


class TestShareExposed:
    @pytest.mark.parametrize("exposed", [0, 5, 20, 40])
    def test_clear_cases_are_counted(self, exposed):
        """With 100 releases, nobody at 0.5 can be taken for exposed: exact, as for known AUCs."""
        found = share_exposed([1.0] * exposed + [0.5] * (40 - exposed), 100, 100)
        expected = binomtest(exposed, 40).proportion_ci(0.95, "exact")
        assert found.value == pytest.approx(exposed / 40, abs=0.01)
        assert found.low == pytest.approx(expected.low, abs=0.02)
        assert found.high == pytest.approx(expected.high, abs=0.02)
        assert found.low_to_decide <= found.low <= found.high <= found.high_to_decide
        assert found.note is None

    def test_people_at_the_limit_cannot_be_told(self, rng):
        found = share_exposed(measured(np.full(55, 0.9), 10, 10, rng), 10, 10)
        assert found.low < 0.05
        assert found.high > 0.95
        assert found.note.startswith(
            "wide because each AUC rests on only 10 IN and 10 OUT releases"
        )

    def test_more_releases_are_narrower(self, rng):
        true = np.where(np.arange(50) < 10, 0.97, 0.75)
        widths = [
            found.high - found.low
            for found in (share_exposed(measured(true, n, n, rng), n, n) for n in (5, 20, 100))
        ]
        assert widths == sorted(widths, reverse=True)

    def test_properties(self, rng):
        aucs = measured(rng.uniform(0.5, 0.99, 30), 10, 10, rng)
        found = share_exposed(aucs, 10, 10)
        assert share_exposed(rng.permutation(aucs), 10, 10) == found
        assert 0 <= found.low <= found.value <= found.high <= 1
        shares = [share_exposed(aucs, 10, 10, limit).high for limit in (0.6, 0.75, 0.9, 0.97)]
        assert shares == sorted(shares, reverse=True)
        looks = [share_exposed(aucs, 10, 10, 0.7, errors=Errors.at(Look(n))) for n in (1, 2, 5)]
        lows, highs = ([getattr(one, f"{end}_to_decide") for one in looks] for end in ENDS)
        assert lows == sorted(lows, reverse=True)
        assert highs == sorted(highs)
        assert lows[0] > lows[-1]
        usual = share_exposed(aucs, 10, 10, 0.7, errors=Errors(0.025, 0.025))
        ends = usual.low_to_decide, usual.high_to_decide
        assert ends == pytest.approx((usual.low, usual.high))

    def test_one_target(self):
        found = share_exposed([1.0], 10, 10)
        assert found.low < 0.03
        assert found.high == 1

    def test_noise_is_not_taken_for_exposure(self, rng, simulations):
        """Everybody has a true AUC of 0.8: the share is 0, and a limit of 0.1 holds.

        The limit may be broken in 2.5 %. Counting breaks it in 36 %.
        """
        n, most = simulations(1000, 0.025)
        drawn = [measured(np.full(55, 0.8), 10, 10, rng) for _ in range(n)]
        found = [share_exposed(aucs, 10, 10) for aucs in drawn]
        assert np.mean([one.low > 0.1 for one in found]) <= most
        assert np.mean([one.low > 0 for one in found]) <= most
        counted = [
            binomtest(int((aucs >= 0.9).sum()), aucs.size).proportion_ci(0.95, "exact")
            for aucs in drawn
        ]
        assert np.mean([one.low > 0.1 for one in counted]) > 0.2


class TestRiskPercentile:
    def test_clear_cases(self):
        """8 of 40 are exposed: the 50th percentile is not among them, and the 90th is."""
        aucs = [1.0] * 8 + [0.5] * 32
        half = risk_percentile(aucs, 100, 100, 0.5)
        assert (half.value, half.low, half.high) == pytest.approx((0.5, 0.5, 0.5), abs=0.05)
        most = risk_percentile(aucs, 100, 100, 0.9)
        assert most.value > 0.99
        assert most.high == 1

    def test_says_how_many_targets_are_needed(self):
        """The chance that none of n targets is above the percentile is q^n."""
        found = risk_percentile([0.5] * 55, 50, 50, 0.99)
        assert found.high == 1
        assert found.note == "no upper end with 55 targets: at least 437 are needed"
        assert 0.99**437 < 0.0125 < 0.99**436
        enough = risk_percentile([0.5] * 55, 50, 50, 0.9)
        assert enough.note is None
        assert enough.high < 0.7

    def test_properties(self, rng):
        aucs = measured(rng.uniform(0.5, 0.99, 50), 20, 20, rng)
        found = [risk_percentile(aucs, 20, 20, q) for q in (0.3, 0.6, 0.9)]
        for one in found:
            assert 0 <= one.low <= one.value <= one.high <= 1
            assert one.low_to_decide <= one.low <= one.high <= one.high_to_decide
        for end in ("low", "value", "high"):
            ends = [getattr(one, end) for one in found]
            assert ends == sorted(ends)
        assert risk_percentile(rng.permutation(aucs), 20, 20, 0.9) == found[-1]
        later = risk_percentile(aucs, 20, 20, 0.9, errors=Errors.at(Look(5)))
        assert later.low_to_decide < found[-1].low
        later = risk_percentile(aucs, 20, 20, 0.3, errors=Errors.at(Look(5)))
        assert later.high_to_decide > found[0].high

    @pytest.mark.slow
    @pytest.mark.parametrize("each", [10, 50])
    def test_covers(self, rng, simulations, each):
        """True AUCs are uniform from 0.5 to 0.95, so the 90th percentile is 0.905."""
        n, most = simulations(1000, 0.05)
        drawn = [measured(rng.uniform(0.5, 0.95, 55), each, each, rng) for _ in range(n)]
        found = [risk_percentile(aucs, each, each, 0.9) for aucs in drawn]
        assert np.mean([not one.low <= 0.905 <= one.high for one in found]) <= most
