"""Guarantees over everybody: never below what the best attacker reaches, and hardly above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from whosthere.data.cities import simulate
from whosthere.data.floor import class_ends
from whosthere.privacy.guarantees import game_guarantee, guarantee_for_all
from whosthere.privacy.lattice import walk
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.trade_off import Budget, NormalShift

FPR = (0.0, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0)


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=2000).traces()


def for_all(mechanism, traces):
    return guarantee_for_all([(Mechanism.parse(mechanism), traces)])


class TestOneCurve:
    @pytest.mark.parametrize(
        "curve", [Budget(1.3, 0.01), NormalShift(0.9), walk(0.3, 0.1, 9), walk(0.05, 0, 400)]
    )
    def test_delta_is_the_largest_gap_between_curve_and_line(self, curve):
        fpr = np.linspace(0, 1, 100_001)
        eps = np.array([0.0, 0.2, 0.77, 1.3, 2.0, 5.0])
        gaps = [np.max(curve.tpr(fpr) - math.exp(one) * fpr) for one in eps]
        assert curve.delta_at(eps) == pytest.approx(gaps, abs=2e-4)
        assert np.all(curve.delta_at(eps) >= np.array(gaps) - 1e-12)


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

    def test_nobody_has_a_better_test_than_the_one_with_most_to_lose(self, city):
        mechanism = Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=3)")
        units, visits = mechanism.guarantee.unit.contributions(city)
        found = for_all(str(mechanism), city).worst
        for row in (0, int(visits.argmax()), int(visits.argmin())):
            spent = {"units_of_target": units[row], "visits_of_target": visits[row]}
            most = {"units_of_other": units.max(), "visits_of_other": visits.max()}
            one = game_guarantee(mechanism, **spent, **most)
            assert one.auc <= found.auc
            assert one.tpr(0.01) <= found.tpr(0.01)

    def test_nothing_is_guaranteed_by_suppression(self, city):
        assert for_all("suppress(k=3)", city) is None

    def test_one_person_alone(self, city):
        alone = city.select([0])
        found = for_all("laplace(eps=1)", alone)
        # Nobody can take their place: only their own visits count, rounded up.
        assert found.worst.pure_eps == pytest.approx(class_ends(alone.visits_per_user())[-1])
        assert found.everybody == 1
