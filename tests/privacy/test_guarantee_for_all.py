"""Guarantees over everybody: never below what the best attacker reaches, and hardly above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from whosthere.data.cities import simulate
from whosthere.data.floor import class_ends
from whosthere.privacy.guarantees import game_guarantee, guarantee_for_all
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.trade_off import Budget, NormalShift, PooledCurve, Walk, walk

FPR = (0.0, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0)


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=2000).traces()


def for_all(mechanism, traces, least=1):
    asked = traces.visits_per_user() >= least
    return guarantee_for_all(Mechanism.parse(mechanism), traces, asked)


class TestOneCurve:
    @pytest.mark.parametrize(
        "curve",
        [
            *(Budget(0.5), Budget(1, 0.05), Budget(60), Budget(0)),
            *(NormalShift(0), NormalShift(0.05), NormalShift(0.7), NormalShift(3)),
            *(Walk(0.3, 0, 7), Walk(1, 0.2, 4), Walk(0.02, 0, 500), Walk(1e-3, 0.1, 3000)),
            *(Walk(1, 0, 2000), Walk(1, 0, 0), walk(1e-7, 0, (1 << 20) + 1)),
        ],
    )
    def test_is_its_own_pool(self, curve):
        pooled = PooledCurve.of({curve: 17})
        assert pooled.mean_auc == pytest.approx(curve.auc)
        assert curve.auc <= pooled.auc <= curve.auc + 1e-5
        for fpr in FPR[1:]:
            assert curve.tpr(fpr) <= pooled.tpr(fpr) <= curve.tpr(fpr) + 1e-5

    @pytest.mark.parametrize(
        "curve", [Budget(1.3, 0.01), NormalShift(0.9), Walk(0.3, 0.1, 9), Walk(0.05, 0, 400)]
    )
    def test_delta_is_the_largest_gap_between_curve_and_line(self, curve):
        fpr = np.linspace(0, 1, 100_001)
        eps = np.array([0.0, 0.2, 0.77, 1.3, 2.0, 5.0])
        gaps = [np.max(curve.tpr(fpr) - math.exp(one) * fpr) for one in eps]
        assert curve.delta_at(eps) == pytest.approx(gaps, abs=2e-4)
        assert np.all(curve.delta_at(eps) >= np.array(gaps) - 1e-12)


class TestPool:
    def test_false_alarms_are_spent_on_people_who_are_easy_to_find(self):
        """The same rate of false alarms for each finds fewer than the best common threshold."""
        curves = {NormalShift(0.2): 3, NormalShift(1.6): 1}
        each = (3 * NormalShift(0.2).tpr(0.01) + NormalShift(1.6).tpr(0.01)) / 4
        best = PooledCurve.of(curves).tpr(0.01)
        assert each == pytest.approx(0.0710, abs=1e-4)
        assert best == pytest.approx(0.1100, abs=1e-4)
        assert best == pytest.approx(self.spent_best([0.2] * 3 + [1.6], 0.01), rel=1e-4)

    @staticmethod
    def spent_best(shifts, fpr):
        """Rates of the likelihood ratio at the threshold that gives the mean rate of alarms."""
        mu = np.array(shifts)

        def rates(t, sign):
            return ndtr((sign * mu**2 / 2 - t) / mu).mean()

        t = brentq(lambda t: rates(t, -1) - fpr, -50, 50)
        return rates(t, 1)

    @settings(deadline=None, max_examples=40)
    @given(
        st.lists(st.floats(0.02, 4), min_size=1, max_size=5),
        st.floats(0.001, 0.5),
    )
    def test_normal_curves(self, shifts, fpr):
        pooled = PooledCurve.of({NormalShift(mu): shifts.count(mu) for mu in shifts})
        best = self.spent_best(shifts, fpr)
        assert best - 1e-9 <= pooled.tpr(fpr) <= best + 1e-4
        # A draw with person i is above one without person j if a normal variable is above 0.
        mu = np.array(shifts)
        area = ndtr(np.sqrt(mu[:, None] ** 2 + mu**2) / 2).mean()
        assert area - 1e-9 <= pooled.auc <= area + 1e-4
        assert pooled.mean_auc == pytest.approx(ndtr(mu / math.sqrt(2)).mean())

    @settings(deadline=None, max_examples=40)
    @given(
        st.floats(0.01, 3),
        st.floats(0, 0.4),
        st.dictionaries(st.integers(0, 30), st.integers(1, 9), min_size=1, max_size=5),
    )
    def test_walks(self, eps, still, people):
        """All sums lie on one grid, so that the pooled test can be gone through point by point."""
        up, down = (1 - still) / (1 + math.exp(-eps)), (1 - still) / (1 + math.exp(eps))
        most, total = max(people), sum(people.values())
        law = np.zeros(2 * most + 1)
        for n, many in people.items():
            one = np.array([1.0])
            for _ in range(n):
                one = np.convolve(one, [down, still, up])
            law[most - n : most + n + 1] += many / total * one
        tpr, fpr = (np.append(0, np.cumsum(side)) for side in (law[::-1], law))
        pooled = PooledCurve.of({Walk(eps, still, n): many for n, many in people.items()})
        for rate in FPR:
            best = np.interp(rate, fpr, tpr)
            assert best - 1e-9 <= pooled.tpr(rate) <= best + 1e-4 + (rate == 0)
        area = np.trapezoid(tpr, fpr)
        assert area - 1e-9 <= pooled.auc <= area + 1e-4


class TestChanceOfMore:
    """Approximate differential privacy does not say how often the odds rise by more than e^eps."""

    GAUSSIAN = Mechanism.parse("gaussian(eps=1, delta=1e-6, unit=event)")

    def test_it_is_not_delta(self):
        found = game_guarantee(self.GAUSSIAN, units_of_target=1, units_of_other=0)
        mu = found.curve.mu
        before_rounding = norm.sf(1 / mu - mu / 2)
        assert before_rounding == pytest.approx(2.0e-5, abs=0.05e-5)
        assert before_rounding < found.chance_of_more < 3 * before_rounding

    def test_rounding_can_make_it_more_frequent(self):
        """One count of 40 people, or of 41 with the person, in a group of 100."""
        published = np.arange(101)
        with_person, without = (self.GAUSSIAN.log_pmf(published, n, 100) for n in (41, 40))
        chance = np.exp(with_person[with_person - without > 1]).sum()
        assert chance == pytest.approx(2.86e-5, abs=0.01e-5)
        found = game_guarantee(self.GAUSSIAN, units_of_target=1, units_of_other=0)
        assert chance <= found.chance_of_more

    @settings(deadline=None, max_examples=60)
    @given(st.floats(0.05, 3), st.floats(0.05, 4))
    def test_it_is_a_bound(self, mu, eps):
        """For normal noise, and for normal noise of which only the steps of a stair are seen."""
        bound = NormalShift(mu).chance_of_more(eps)
        assert norm.sf(eps / mu - mu / 2) <= bound + 1e-12
        for width in (0.3, 1.0, 2.5):
            edges = np.arange(-12, 16, width)
            cells = np.concatenate([[-np.inf], edges, [np.inf]])
            out, with_person = np.diff(norm.cdf(cells)), np.diff(norm.cdf(cells - mu))
            # Chances too small for their ratio to be known are left out.
            known = (out > 1e-13) & (with_person > 1e-13)
            above = with_person[known] > math.exp(eps) * out[known]
            assert with_person[known][above].sum() <= bound + 1e-9

    @pytest.mark.parametrize("text", ["laplace(eps=1)", "discrete-laplace(eps=1)"])
    def test_pure_differential_privacy_has_none(self, text):
        found = game_guarantee(Mechanism.parse(text), units_of_target=2, units_of_other=1)
        assert found.chance_of_more == 0

    def test_is_said(self):
        text = self.GAUSSIAN.describe()
        assert "by a factor of at most e^1 = 2.7, except with a chance of at most 5.2e-05" in text
        assert text.count("delta") == text.count("with eps 1 and delta 1e-6 for") == 1


class TestEverybody:
    def test_the_one_with_most_visits_decides(self, city):
        """A sample of people hardly ever holds that one, and understates the odds."""
        visits = city.visits_per_user()
        most, next_most = np.sort(visits)[::-1][:2]
        found = for_all("laplace(eps=0.02, unit=event)", city)
        odds = math.exp(0.02 * (most + next_most))
        assert odds == pytest.approx(20.1, abs=0.05)
        # Said for a round number of visits, which does not tell how many that one made.
        assert odds < math.exp(found.worst.pure_eps) <= odds**1.25
        assert found.worst.pure_eps / 0.04 == pytest.approx(80)
        rng = np.random.default_rng(0)
        sampled = [rng.choice(visits, 55, replace=False).max() for _ in range(400)]
        # The largest of the targets, in half of all audits of the quick scale.
        assert math.exp(0.02 * (most + np.median(sampled))) < 10

    @pytest.mark.parametrize(
        "text",
        [
            "laplace(eps=0.1, unit=event)",
            "laplace(eps=1, unit=user-day, max_visits=3)",
            "discrete-laplace(eps=2, unit=user, max_visits=10)",
            "gaussian(eps=0.5, unit=event) | suppress(k=2)",
        ],
    )
    def test_means_are_over_each_of_those_who_are_asked_about(self, city, text):
        mechanism, least = Mechanism.parse(text), 5
        counted = mechanism.guarantee.unit.contributions(city)[1]
        order = np.sort(counted)
        asked = np.flatnonzero(city.visits_per_user() >= least)
        curves = [
            mechanism.steps[0].trade_off(
                int(counted[row] + (order[-2] if counted[row] == order[-1] else order[-1]))
            )
            for row in asked
        ]
        found = for_all(text, city, least)
        assert found.asked == asked.size
        assert found.everybody == city.n_users
        assert found.pooled.mean_auc == pytest.approx(np.mean([one.auc for one in curves]))
        mean = np.mean([one.tpr(0.01) for one in curves])
        assert mean - 1e-9 <= found.pooled.tpr(0.01) <= mean * 1.2
        assert found.pooled.mean_auc <= found.pooled.auc + 1e-9
        assert found.worst.auc >= found.pooled.mean_auc - 1e-12

    def test_nothing_is_guaranteed_by_suppression(self, city):
        assert for_all("suppress(k=3)", city) is None

    def test_one_person_alone(self, city):
        alone = city.select([0])
        found = for_all("laplace(eps=1)", alone)
        # Nobody can take their place: only their own visits count, rounded up.
        assert found.worst.pure_eps == pytest.approx(class_ends(alone.visits_per_user())[-1])
        assert found.asked == found.everybody == 1
