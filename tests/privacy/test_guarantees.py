"""What differential privacy guarantees by itself: curves, the membership game, the ledger."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from whosthere.errors import InputError
from whosthere.privacy.exact_noise import Randomness
from whosthere.privacy.guarantees import game_guarantee
from whosthere.privacy.lattice import walk
from whosthere.privacy.ledger import ADD_OR_REMOVE, REPLACEMENT, GuaranteeLedger, format_factor
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Gaussian, Laplace
from whosthere.privacy.trade_off import Budget, NormalShift, gaussian_eps, log_delta
from whosthere.privacy.units import Event, User, UserDay

FPR = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])


def parse(text):
    return Mechanism.parse(text)


def game(text, target=1, other=1, **visits):
    return game_guarantee(parse(text), units_of_target=target, units_of_other=other, **visits)


def laws_of_the_game(mechanism, others, target, other, m):
    """P(all published counts) with the target, and with the substitute, one by one."""
    sides = []
    for visits in (target, other):
        true = [n + (cell in visits) for cell, n in enumerate(others)]
        laws = [mechanism.pmf(np.arange(m + 1), n, m) for n in true]
        sides.append(np.array([math.prod(chances) for chances in itertools.product(*laws)]))
    return sides


def corners(p_in, p_out):
    """Call outputs in from the largest ratio down; those that prove it cost no false alarm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p_out > 0, p_in / p_out, np.inf)
    order = np.argsort(-ratio)
    x, y = np.cumsum(p_out[order]), np.cumsum(p_in[order])
    return np.append(0, x), np.append(p_in[p_out == 0].sum(), y)


def exact_auc(p_in, p_out):
    x, y = corners(p_in, p_out)
    return np.trapezoid(y, x)


def exact_roc(p_in, p_out, fpr):
    return np.interp(fpr, *corners(p_in, p_out))


class TestBudget:
    def test_pure(self):
        assert Budget(0).auc == 0.5
        assert Budget(1).auc == pytest.approx(math.e / (1 + math.e), rel=1e-15)

    @pytest.mark.parametrize("eps", [0, 0.1, 1, 4])
    @pytest.mark.parametrize("delta", [0, 1e-6, 0.1, 0.9])
    def test_reached_by_the_worst_mechanism(self, eps, delta):
        """Two outputs prove one side with chance delta, two others are a coin of odds e^eps."""
        odd = (1 - delta) / (1 + math.exp(eps))
        p_in = np.array([delta, math.exp(eps) * odd, odd, 0])
        p_out = p_in[::-1]
        assert Budget(eps, delta).auc == pytest.approx(exact_auc(p_in, p_out), rel=1e-14)
        assert Budget(eps, delta).tpr(FPR) == pytest.approx(exact_roc(p_in, p_out, FPR))

    @pytest.mark.parametrize("eps", [200, 900, 1e6, math.inf])
    def test_large_budgets(self, eps):
        assert Budget(eps).auc == 1
        assert Budget(eps, 1e-6).auc == 1
        assert Budget(eps).tpr([0.5, 1]).tolist() == [1, 1]
        assert Budget(eps, 0.25).tpr(0) == 0.25
        assert Budget(200).tpr(math.exp(-202)) == pytest.approx(math.exp(-2))

    def test_rates_outside_of_0_to_1_are_refused(self):
        with pytest.raises(InputError):
            Budget(1).tpr([0.5, 1.5])


class TestCurves:
    @pytest.mark.parametrize(
        "curve",
        [
            Budget(0.5),
            Budget(1, 0.05),
            NormalShift(0.7),
            NormalShift(3),
            walk(0.3, 0, 7),
            walk(1, 0.2, 4),
            walk(0.02, 0, 500),
        ],
    )
    def test_the_area_is_that_under_the_curve(self, curve):
        fpr = np.linspace(0, 1, 200_001)
        tpr = curve.tpr(fpr)
        assert np.trapezoid(tpr, fpr) == pytest.approx(curve.auc, abs=1e-5)
        assert np.all(np.diff(tpr) >= 0)
        assert np.all(np.diff(tpr, 2) <= 1e-9)
        assert tpr[-1] == 1

    def test_one_step_of_a_walk_is_a_budget(self):
        assert walk(0.8, 0, 1).auc == pytest.approx(Budget(0.8).auc)
        assert walk(0.8, 0, 1).tpr(FPR) == pytest.approx(Budget(0.8).tpr(FPR))
        assert walk(0.8, 0, 0).auc == 0.5
        assert walk(0.8, 0, 0).tpr(FPR) == pytest.approx(FPR)

    @pytest.mark.parametrize("n", [2, 30, 3000])
    @pytest.mark.parametrize("still", [0.0, 0.3])
    def test_a_walk_never_exceeds_its_budget_and_nears_the_normal_curve(self, n, still):
        eps = 1 / math.sqrt(n)
        curve = walk(eps, still, n)
        assert curve.auc <= Budget(n * eps).auc
        assert np.all(curve.tpr(FPR) <= Budget(n * eps).tpr(FPR) + 1e-12)
        # The mean of a step is (1 - still) eps tanh(eps / 2), its variance about (1 - still) eps^2.
        if n == 3000:
            mu = math.sqrt(n * (1 - still)) * 2 * math.tanh(eps / 2)
            assert curve.auc == pytest.approx(NormalShift(mu).auc, abs=1e-4)

    def test_long_walks(self):
        assert walk(1, 0, 2000).auc == 1
        assert walk(1e-3, 0, 1 << 20).auc == pytest.approx(norm.cdf(1.024 / math.sqrt(2)), abs=1e-4)
        assert walk(1e-7, 0, 1 << 20) is walk(1e-7, 0, 1 << 20)
        assert walk(1e-7, 0, (1 << 20) + 1) == Budget(((1 << 20) + 1) * 1e-7)

    def test_normal(self):
        assert NormalShift(0).tpr(FPR) == pytest.approx(FPR)
        assert NormalShift(math.inf).tpr(FPR).tolist() == [1] * FPR.size
        assert NormalShift(1).tpr(0.01) == pytest.approx(norm.cdf(norm.ppf(0.01) + 1))

    @pytest.mark.parametrize("distance", [0.01, 0.3, 1, 5])
    @pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
    def test_eps_of_gaussian_noise(self, distance, delta):
        eps = gaussian_eps(delta, distance)
        assert log_delta(eps, 1 / distance) <= math.log(delta)
        if eps:
            assert log_delta(eps * (1 - 1e-9), 1 / distance) > math.log(delta)
            # The three lines of (eps, delta) lie above the normal curve.
            assert np.all(NormalShift(distance).tpr(FPR) <= Budget(eps, delta).tpr(FPR) + 1e-12)

    def test_eps_of_gaussian_noise_at_the_ends(self):
        assert gaussian_eps(1e-6, 0) == 0
        assert gaussian_eps(0, 1) == math.inf
        assert gaussian_eps(0.5, 0.1) == 0
        for step in (Gaussian(1, 1e-6), Gaussian(0.3, 1e-9, User(30))):
            spent = gaussian_eps(step.delta, step.unit.l2_sensitivity / step.scale)
            assert spent == pytest.approx(step.eps, rel=1e-9)


GAMES = [
    ([4, 4], {0}, {1}),
    ([1, 2], {0}, {1}),
    ([0, 0], {0}, {1}),
    ([3, 3, 3], {0, 1}, {2}),
    ([2, 2], {0, 1}, {1}),
    ([2, 2], {0, 1}, set()),
    ([3, 3, 3], {0, 1}, {0, 2}),
]


class TestTheGame:
    """The optimal test by going through all tables of small groups."""

    @pytest.mark.parametrize(
        "text",
        [
            "laplace(eps=1)",
            "discrete-laplace(eps=0.7)",
            "gaussian(eps=2)",
            "laplace(eps=1, unit=user, max_visits=2)",
            "discrete-laplace(eps=1, unit=user, max_visits=2)",
            "gaussian(eps=3, delta=0.01, unit=user-day, max_visits=2)",
            "laplace(eps=2) | suppress(k=1)",
            "laplace(eps=2) | round(to=3)",
        ],
    )
    @pytest.mark.parametrize(("others", "target", "other"), GAMES)
    def test_no_attacker_exceeds_the_guarantee(self, text, others, target, other):
        mechanism = parse(text)
        unit = mechanism.guarantee.unit
        units = [len(visits) if unit == Event() else 1 for visits in (target, other)]
        found = game(text, *units)
        laws = laws_of_the_game(mechanism, others, target, other, 9)
        assert exact_auc(*laws) <= found.auc + 1e-12
        assert np.all(exact_roc(*laws, FPR) <= found.tpr(FPR) + 1e-12)
        assert np.all(found.tpr(FPR) <= Budget(found.eps, found.delta).tpr(FPR) + 1e-12)

    @pytest.mark.parametrize("name", ["laplace", "discrete-laplace"])
    @pytest.mark.parametrize("visits", [1, 2])
    def test_the_guarantee_is_reached(self, name, visits):
        """Far from 0 and m, with disjoint visits, it is what the best attacker does reach."""
        text = f"{name}(eps=2, unit=user, max_visits={visits})"
        cells = range(2 * visits)
        laws = laws_of_the_game(
            parse(text), [6] * len(cells), set(cells[:visits]), set(cells[visits:]), 14
        )
        found = game(text)
        # The noise that leaves 0..14 is put together, which loses nothing.
        assert exact_auc(*laws) == pytest.approx(found.auc, abs=1e-9)

    def test_adding_or_removing_is_not_the_game(self):
        """At user level with eps = 1, the old bound of 0.731 is beaten by a real attacker."""
        best = {
            text: exact_auc(*laws_of_the_game(parse(text), [9, 9], {0}, {1}, 19))
            for text in (
                "laplace(eps=1, unit=user, max_visits=1)",
                "discrete-laplace(eps=1, unit=user, max_visits=1)",
            )
        }
        assert list(best.values()) == pytest.approx([0.785383, 0.821916], abs=1e-6)
        for text, auc in best.items():
            assert auc > Budget(1).auc
            assert auc <= game(text).auc
            assert game(text).auc < Budget(2).auc == pytest.approx(0.880797, abs=1e-6)

    def test_gaussian_noise_is_not_judged_by_delta(self):
        """10 visits at event level: 0.702 if they are added, 0.773 if they replace 10 others."""
        assert game("gaussian(eps=1)", 10, 0).auc == pytest.approx(0.701697, abs=1e-6)
        assert game("gaussian(eps=1)", 10, 10).auc == pytest.approx(0.772928, abs=1e-6)

    def test_numbers(self):
        found = game("laplace(eps=1, unit=user, max_visits=50)")
        assert (found.pure_eps, found.delta) == (2, 1e-6)
        assert found.odds_factor == pytest.approx(math.exp(0.81743), rel=1e-4)
        assert found.auc == pytest.approx(0.55595, abs=1e-5)
        found = game("laplace(eps=0.5)", 12, 3)
        assert (found.eps, found.delta) == (7.5, 0)
        found = game("laplace(eps=0.5, unit=user-day, max_visits=4)", 3, 2)
        assert found.pure_eps == 2.5
        found = game("gaussian(eps=1, unit=user, max_visits=50)")
        assert 1 < found.eps < 2
        assert found.delta == 1e-6
        assert game("laplace(eps=1000)", 10, 10).odds_factor == math.inf
        assert game("laplace(eps=1)", 0, 0).auc == 0.5

    def test_all_noise_is_told_with_one_delta(self):
        """6 visits a week for 16 weeks: e^19.2 = 2.2e8, where far less is hardly ever exceeded."""
        weeks = game("laplace(eps=0.1)", 96, 96)
        assert weeks.curve.eps_at(1e-9) == pytest.approx(8.48, abs=0.005)
        assert weeks.odds_factor == pytest.approx(923, abs=1)
        assert weeks.chance_of_more < 1.2e-5
        normal = game("gaussian(eps=0.1, delta=1e-9)", 96, 96)
        assert weeks.delta == normal.delta == 1e-6
        assert (weeks.pure_eps, normal.pure_eps) == (pytest.approx(19.2), math.inf)

    @pytest.mark.parametrize(("n", "pure"), [(0, True), (1, True), (3, True), (40, False)])
    def test_what_hardly_any_release_stays_below_is_told_without_delta(self, n, pure):
        found = game("laplace(eps=1)", n, 0)
        assert (found.eps == found.pure_eps == n) == (found.delta == 0) == pure
        assert (found.chance_of_more == 0) == pure

    @pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-3, 0.2])
    @pytest.mark.parametrize("given", [(0.1, 0.05, 192), (1, 0, 30), (2, 0.4, 2000)])
    def test_eps_holds_with_its_delta(self, given, delta):
        curve, whole = walk(*given), given[0] * given[2]
        eps = curve.eps_at(delta)
        assert curve.delta_at(np.array([eps])) <= delta
        assert curve.delta_at(np.array([eps * (1 - 1e-6)])) > delta or eps == whole

    def test_few_visits_spend_less(self):
        text = "laplace(eps=1, unit=user, max_visits=50)"
        less = game(text, visits_of_target=5, visits_of_other=10)
        assert less.pure_eps == pytest.approx(0.3)
        assert less.auc < game(text, visits_of_target=5).auc < game(text).auc
        assert game(text, visits_of_target=500, visits_of_other=500) == game(text)

    def test_nothing_is_guaranteed_by_a_mechanism_without_a_guarantee(self):
        for text in ("raw", "suppress(k=1) | laplace(eps=1)", "random-round(to=3)"):
            assert game(text) is None

    def test_a_person_cannot_have_fewer_than_no_units(self):
        with pytest.raises(InputError):
            game("laplace(eps=1)", -1, 1)

    @settings(deadline=None, max_examples=50)
    @given(
        st.sampled_from(["laplace", "discrete-laplace", "gaussian"]),
        st.floats(0.01, 5),
        st.integers(0, 40),
        st.integers(0, 40),
    )
    def test_more_visits_and_more_budget_are_more_telling(self, name, eps, target, other):
        text = f"{name}(eps={eps!r})"
        found = game(text, target, other)
        assert 0.5 <= found.auc <= 1
        assert found.auc <= game(text, target + 1, other).auc + 1e-9
        assert found.auc <= game(f"{name}(eps={2 * eps!r})", target, other).auc + 1e-9
        swapped = game(text, other, target)
        assert (swapped.auc, swapped.eps) == (found.auc, found.eps)

    def test_a_step_that_only_states_eps_and_delta(self):
        @dataclass(frozen=True)
        class Plain(Gaussian):
            name: ClassVar[str] = "plain"

            def trade_off(self, differing):
                return None

        plain = Mechanism((Plain(0.5, 1e-6, UserDay(4)),))
        found = game_guarantee(plain, units_of_target=2, units_of_other=1)
        assert (found.eps, found.delta) == (1.5, pytest.approx(3 * math.e * 1e-6))
        assert found.curve == Budget(found.eps, found.delta)
        found = game_guarantee(plain, units_of_target=900, units_of_other=100)
        assert (found.eps, found.delta) == (500, 1)
        assert game_guarantee(plain, units_of_target=0, units_of_other=0).delta == 0


class TestLedger:
    def test_of_a_release(self):
        ledger = GuaranteeLedger.of(parse("laplace(eps=1, unit=user, max_visits=9)"), seeded=False)
        pure = {"chance_of_more": 0.0}
        assert ledger == GuaranteeLedger(Randomness.EXACT, REPLACEMENT, "user", 2.0, 0.0, **pure)
        assert ledger.states_guarantee
        assert ledger.odds_factor == pytest.approx(7.389, abs=1e-3)
        ledger = GuaranteeLedger.of(parse("laplace(eps=1) | round(to=3)"), seeded=False)
        assert ledger == GuaranteeLedger(Randomness.EXACT, ADD_OR_REMOVE, "event", 1.0, 0.0, **pure)

    def test_gaussian_noise_has_a_chance_of_more(self):
        """It is in the table and in files."""
        ledger = GuaranteeLedger.of(parse("discrete-gaussian(rho=0.1)"), seeded=False)
        assert dict(ledger.rows())["chance of more, at most"] == "1.8e-05"
        assert GuaranteeLedger.from_json(ledger.to_json()) == ledger

    @pytest.mark.parametrize("text", ["laplace(eps=1)", "gaussian(eps=1)", "random-round(to=3)"])
    def test_a_seed_guarantees_nothing(self, text):
        ledger = GuaranteeLedger.of(parse(text), seeded=True)
        assert ledger == GuaranteeLedger(Randomness.SEEDED)
        assert ledger.seeded
        assert not ledger.states_guarantee
        assert ledger.odds_factor is None

    @pytest.mark.parametrize(
        ("text", "randomness"),
        [
            ("raw", Randomness.NONE),
            ("flowkit", Randomness.NONE),
            ("random-round(to=3)", Randomness.SYSTEM),
            # Its noise is not drawn exactly: who publishes has discrete-gaussian.
            ("gaussian(eps=1)", Randomness.SYSTEM),
            ("suppress(k=1) | laplace(eps=1)", Randomness.EXACT),
        ],
    )
    def test_no_guarantee(self, text, randomness):
        ledger = GuaranteeLedger.of(parse(text), seeded=False)
        assert ledger == GuaranteeLedger(randomness)
        assert dict(ledger.rows())["guarantee"] == "none"

    def test_noise_that_an_attacker_may_predict_guarantees_nothing(self):
        @dataclass(frozen=True)
        class Ordinary(Laplace):
            name: ClassVar[str] = "ordinary"
            randomness: ClassVar[Randomness] = Randomness.SYSTEM

        ledger = GuaranteeLedger.of(Mechanism((Ordinary(1.0, Event()),)), seeded=False)
        assert ledger == GuaranteeLedger(Randomness.SYSTEM)

    @pytest.mark.parametrize("seeded", [True, False])
    @pytest.mark.parametrize("text", ["raw", "laplace(eps=1)", "laplace(eps=1000)"])
    def test_round_trip(self, text, seeded):
        ledger = GuaranteeLedger.of(parse(text), seeded=seeded)
        assert GuaranteeLedger.from_json(ledger.to_json()) == ledger

    def test_damage(self):
        data = GuaranteeLedger(Randomness.EXACT).to_json()
        with pytest.raises(KeyError):
            GuaranteeLedger.from_json({**data, "randomness": "dice"})
        with pytest.raises(KeyError):
            GuaranteeLedger.from_json({})


def test_factors_in_words():
    assert format_factor(0.1) == "e^0.1 = 1.1"
    assert format_factor(2) == "e^2 = 7.4"
    assert format_factor(7) == "e^7 = 1,097"
    assert format_factor(140) == "e^140 = 6.3e+60"
    assert format_factor(2000) == "e^2000"


def test_the_numbers_of_the_documentation():
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "guarantees.md").read_text(
        encoding="utf-8"
    )
    rows = re.findall(
        r"\| `(.+?)` \| (\d+) and (\d+) \| (.+?) \| (e.+?) \| (.+?) \| (.+?) \| (.+?) \|", text
    )
    assert len(rows) == 10
    for spec, target, other, eps, factor, pure, auc, tpr in rows:
        found = game(spec, int(target), int(other))
        assert f"{found.eps:.4g}" == eps
        assert format_factor(found.eps) == factor
        assert f"{found.pure_eps:.4g}" == pure.replace("none", "inf")
        assert (f"{found.auc:.3f}", f"{float(found.tpr(0.01)):.3f}") == (auc, tpr)
