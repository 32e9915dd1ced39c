"""The control: exact where labels mean nothing, and sharp where they mean something."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from whosthere.inference.control import FALSE_ALARMS, above_ceiling, control_auc
from whosthere.inference.metrics import auc

# The documentation promises it, so a change must be noticed here.
PROMISED = 0.01
N_OUT, N_STAND_IN = 10, 4
LABELS = np.arange(N_OUT + N_STAND_IN) < N_STAND_IN


def audit_of(scores):
    """Return scores, stand_in and targets of one attack, from scores by target and release."""
    n_targets = len(scores)
    return np.ravel(scores), np.tile(LABELS, n_targets), np.repeat(np.arange(n_targets), 14)


def holds(estimate):
    return estimate.low <= 0.5 <= estimate.high


def test_the_promise():
    assert FALSE_ALARMS == PROMISED


class TestVariance:
    @pytest.mark.parametrize(
        ("scores", "n_stand_in"),
        [
            ([1, 2, 3, 4, 5, 6], 2),
            ([1, 2, 3, 4, 5, 6, 7], 3),
            ([1, 1, 1, 2, 2, 3, 4], 3),
            ([0, 0, 0, 0, 0, 1], 1),
            ([0, 0, 0, 1, 1, 1, 2, 2], 4),
            ([-1e9, -1e9, 0.3, 0.5, -1e9, 0.3, 2.5, 7, 7], 4),
            ([3, 5], 1),
        ],
    )
    def test_is_that_over_all_orders_of_the_labels(self, scores, n_stand_in):
        scores = np.array(scores, dtype=float)
        n = scores.size
        aucs = []
        for chosen in combinations(range(n), n_stand_in):
            aucs.append(auc(scores, np.isin(np.arange(n), chosen)))
        assert np.mean(aucs) == pytest.approx(0.5)
        # So many targets of the same scores that the interval does not reach 0 or 1; half of
        # them have the opposite AUC.
        n_targets = 400
        labels = np.arange(n) < n_stand_in
        targets = np.repeat(np.arange(n_targets), n)
        both = np.concatenate([scores, -scores])
        estimate = control_auc(np.tile(both, n_targets // 2), np.tile(labels, n_targets), targets)
        assert estimate.value == pytest.approx(0.5)
        reach = -ndtri(PROMISED / 2) * np.sqrt(np.var(aucs) / n_targets)
        assert estimate.high - estimate.value == pytest.approx(reach)
        assert estimate.value - estimate.low == pytest.approx(reach)

    def test_all_controls_together_share_the_false_alarms(self, rng):
        arguments = audit_of(rng.normal(size=(20, 14)))
        one, many = (control_auc(*arguments, n_controls=n) for n in (1, 30))
        assert many.value == one.value
        ratio = ndtri(PROMISED / 30 / 2) / ndtri(PROMISED / 2)
        assert many.high - many.value == pytest.approx(ratio * (one.high - one.value))
        assert many.value - many.low == pytest.approx(ratio * (one.value - one.low))


class TestCoverage:
    """Sound audits: stand-ins and others score alike, in whatever way."""

    N_AUDITS = 2000

    def alarms(self, draw, n_attacks):
        alarms = 0
        for seed in range(self.N_AUDITS):
            by_attack = draw(np.random.default_rng([20240603, seed]))
            alarms += not all(
                holds(control_auc(*audit_of(scores), n_controls=n_attacks)) for scores in by_attack
            )
        return alarms

    # More alarms than that have a chance of 1e-4 where each audit has one of PROMISED.
    MOST = int(binom.isf(1e-4, N_AUDITS, PROMISED))

    def test_attacks_that_share_releases(self):
        def draw(rng):
            shared = rng.normal(size=(3, 14))
            return [0.7 * shared + 0.7 * rng.normal(size=(3, 14)) for _ in range(3)]

        assert self.alarms(draw, 3) <= self.MOST

    def test_ties_and_outliers(self):
        def draw(rng):
            scores = rng.poisson(0.7, size=(3, 14)).astype(float)
            scores[rng.random((3, 14)) < 0.3] = -1e9
            return [scores, np.round(rng.standard_cauchy((3, 14)))]

        assert self.alarms(draw, 2) <= self.MOST

    def test_targets_whose_scores_lie_apart(self):
        def draw(rng):
            return [rng.normal(size=(3, 14)) * [[1], [100], [1e-3]] + [[0], [1e6], [-5]]]

        assert self.alarms(draw, 1) <= self.MOST

    def test_a_single_target(self):
        assert self.alarms(lambda rng: [rng.normal(size=(1, 14))], 1) <= self.MOST


class TestPower:
    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_leak_of_one_standard_deviation_is_found(self, rng, sign):
        # The mean AUC is 0.76 with a standard error of 0.04: it hides in 1 of 10,000 seeds.
        scores = rng.normal(size=(20, 14))
        scores[:, LABELS] += sign
        estimate = control_auc(*audit_of(scores), n_controls=3)
        assert not holds(estimate)
        assert (estimate.value - 0.5) * sign > 0.1

    def test_targets_are_compared_with_themselves(self, rng):
        """Scores of different targets on different scales are no leak."""
        offsets = rng.normal(scale=100, size=(20, 1))
        scores = rng.normal(size=(20, 14))
        assert control_auc(*audit_of(scores + offsets)) == control_auc(*audit_of(scores))


class TestSmall:
    def test_one_target(self, rng):
        estimate = control_auc(*audit_of(rng.normal(size=(1, 14))))
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1

    def test_one_stand_in(self):
        estimate = control_auc(np.array([2.0, 1.0]), np.array([True, False]), np.zeros(2, int))
        assert (estimate.value, estimate.low, estimate.high) == (1, pytest.approx(0), 1)
        assert holds(estimate)

    @pytest.mark.parametrize("n_targets", [1, 3, 7])
    @pytest.mark.parametrize("score", [0.0, -1e9, 0.1])
    def test_all_ties_are_exactly_chance(self, n_targets, score):
        estimate = control_auc(*audit_of(np.full((n_targets, 14), score)))
        assert (estimate.low, estimate.value, estimate.high) == (0.5, 0.5, 0.5)

    def test_order_of_rows_does_not_matter(self, rng):
        arguments = audit_of(rng.normal(size=(4, 14)))
        order = rng.permutation(4 * 14)
        assert control_auc(*(one[order] for one in arguments)) == control_auc(*arguments)


class TestAboveTheCeiling:
    """Pairs of a release with the target and one without, shape (n_pairs, 2)."""

    N_AUDITS = 4000
    MOST = int(binom.isf(1e-4, N_AUDITS, PROMISED))

    @pytest.mark.parametrize("n_pairs", [3, 30, 200])
    def test_equally_good_tests(self, n_pairs):
        """The worst case: there is nothing to find, so that every test is the best."""
        alarms = 0
        for seed in range(self.N_AUDITS):
            rng = np.random.default_rng([20240612, seed])
            attack, best = rng.normal(size=(2, n_pairs, 2))
            alarms += above_ceiling(attack, best, rng).low > 0
        assert alarms <= self.MOST

    def test_several_attacks_that_see_a_part_share_the_false_alarms(self):
        alarms = 0
        for seed in range(self.N_AUDITS):
            rng = np.random.default_rng([20240611, seed])
            shown, known = rng.normal(size=(2, 30, 2)) + np.array([0.1, 0.0])
            best = shown + known
            attacks = (shown, best.round(), best + 0.1 * rng.normal(size=best.shape))
            alarms += any(above_ceiling(one, best, rng, n_controls=3).low > 0 for one in attacks)
        assert alarms <= self.MOST

    def test_ties_of_either_side(self):
        """Guesses that are often tied, against others that never or always are."""
        alarms = 0
        for seed in range(self.N_AUDITS):
            rng = np.random.default_rng([20240613, seed])
            tied, never = rng.poisson(0.3, (40, 2)).astype(float), rng.normal(size=(40, 2))
            pairs = [(tied, never), (never, tied), (np.zeros((40, 2)), never)]
            alarms += any(above_ceiling(*one, rng, n_controls=3).low > 0 for one in pairs)
        assert alarms <= self.MOST

    def test_a_leak_is_found(self, rng):
        """The attack sees the label besides: an AUC of 0.92 against one of 0.76."""
        shown, best = rng.normal(size=(2, 200, 2))
        best[:, 0] += 1
        shown[:, 0] += 2
        found = above_ceiling(shown, best, rng, n_controls=10)
        assert 0 < found.low < found.value < found.high

    def test_the_same_scores_differ_by_nothing(self, rng):
        scores = rng.poisson(1.0, (50, 2)).astype(float)
        found = above_ceiling(scores, scores, rng)
        assert (found.value, found.low) == (0, 0)

    @pytest.mark.parametrize("seed", range(3))
    def test_the_value_is_the_difference_of_the_aucs(self, seed):
        rng = np.random.default_rng(seed)
        attack, best = rng.normal(size=(2, 4000, 2)) + np.array([[[0.5, 0.0]], [[1.0, 0.0]]])
        labels = np.tile([True, False], 4000)
        expected = auc(attack.ravel(), labels) - auc(best.ravel(), labels)
        assert above_ceiling(attack, best, rng).value == pytest.approx(expected, abs=0.03)
