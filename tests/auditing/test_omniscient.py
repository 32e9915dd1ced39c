"""The ceiling of all attacks: the omniscient attacker."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from whosthere.auditing.omniscient import omniscient, omniscient_over_releases
from whosthere.errors import InputError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.trade_off import Budget

SPECS = [
    "raw",
    "suppress(k=2)",
    "round(to=3)",
    "opensafely",
    "laplace(eps=0.1)",
    "laplace(eps=1)",
    "laplace(eps=8)",
    "laplace(eps=1, unit=user-day, max_visits=10)",
    "discrete-laplace(eps=0.7)",
    "gaussian(eps=1)",
    "gaussian(eps=5, delta=1e-9, unit=user, max_visits=20)",
    "laplace(eps=1) | suppress(k=1)",
    "gaussian(eps=4) | round(to=3)",
    "suppress(k=2) | laplace(eps=1)",
    "round(to=3) | discrete-laplace(eps=1) | suppress(k=4) | round(to=5)",
    "laplace(eps=1) | gaussian(eps=3)",
    "laplace(eps=1) | suppress(k=2) | discrete-laplace(eps=0.7) | round(to=3)",
    "random-round(to=3)",
    "random-round(to=20)",
    "suppress(k=2) | random-round(to=4)",
    "random-round(to=4) | suppress(k=2)",
    "random-round(to=2) | random-round(to=3)",
    "random-round(to=3) | round(to=5) | random-round(to=2)",
    "laplace(eps=1) | random-round(to=3)",
    "random-round(to=3) | laplace(eps=1)",
    "random-round(to=3) | gaussian(eps=2) | suppress(k=1) | random-round(to=5)",
]
PURE = ["laplace(eps={eps})", "discrete-laplace(eps={eps})", "laplace(eps={eps}) | suppress(k=1)"]
FPR = np.array([0.0, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])


def parse(text):
    return Mechanism.parse(text)


def tables(mechanism, others, m):
    """P(all published counts) under OUT and IN by going through every one of them."""
    laws = [mechanism.pmf(np.arange(m + 1), np.array([[n], [n + 1]]), m) for n in others]
    p_out = np.array([math.prod(c) for c in itertools.product(*(law[0] for law in laws))])
    p_in = np.array([math.prod(c) for c in itertools.product(*(law[1] for law in laws))])
    return p_out, p_in


def exact_auc(p_out, p_in):
    """P(IN above OUT) + P(tie) / 2 of the likelihood ratio, without dividing."""
    pairs = np.outer(p_in, p_out)
    return np.maximum(pairs, pairs.T).sum() / 2


def exact_roc(p_out, p_in, fpr):
    """The best true-positive rates: outputs are called in from the largest ratio down."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p_out > 0, p_in / p_out, np.inf)
    order = np.argsort(-ratio)
    x, y = np.cumsum(p_out[order]), np.cumsum(p_in[order])
    proof = p_in[p_out == 0].sum()
    return np.interp(fpr, np.append(0, x), np.append(proof, y))


def assert_encloses(found, exact):
    assert found.auc - found.error <= exact <= found.auc + 1e-11


class TestAgainstEnumeration:
    @pytest.mark.parametrize("text", SPECS)
    @pytest.mark.parametrize("others", [[0], [4], [8], [2, 3], [0, 0], [8, 1], [1, 4, 4]])
    def test_small_groups(self, text, others):
        m = 9
        p_out, p_in = tables(parse(text), others, m)
        found = omniscient(parse(text), others, m)
        assert_encloses(found, exact_auc(p_out, p_in))
        assert found.error < 1e-4
        exact = exact_roc(p_out, p_in, FPR)
        assert np.all(found.roc(FPR) >= exact - 1e-9)
        # The points next to the corners of the ROC differ by about one step of the grid.
        assert found.roc(FPR) == pytest.approx(exact, abs=2e-3)
        assert [found.tpr_at(fpr) for fpr in FPR] == found.roc(FPR).tolist()

    @pytest.mark.parametrize("others", [[0], [3], [20], [500], [640], [801], [998]])
    @pytest.mark.parametrize(
        "text",
        [
            "laplace(eps=0.004)",
            "discrete-laplace(eps=0.05) | suppress(k=20)",
            "gaussian(eps=0.02)",
            "gaussian(eps=0.2) | round(to=7)",
            "laplace(eps=1, unit=user, max_visits=300) | opensafely",
            "round(to=5) | laplace(eps=0.5)",
            "random-round(to=5) | laplace(eps=0.5)",
            "laplace(eps=0.05) | random-round(to=7)",
            "discrete-laplace(eps=0.02) | suppress(k=20) | random-round(to=5)",
        ],
    )
    def test_wide_noise(self, text, others):
        """Published counts are put together, and counts far from the edges taken as alike."""
        p_out, p_in = tables(parse(text), others, 999)
        found = omniscient(parse(text), others, 999)
        assert_encloses(found, exact_auc(p_out, p_in))
        assert found.error < 1e-3 * max(2 * found.auc - 1, 1e-2)

    def test_several_releases(self):
        mechanism, m = parse("laplace(eps=1) | suppress(k=2)"), 8
        groups = [[0, 1], [2, 5], [3, 3], [7, 2]]
        each = [tables(mechanism, others, m) for others in groups]
        found = omniscient_over_releases(mechanism, groups, m)
        aucs = [exact_auc(*one) for one in each]
        assert found.aucs == pytest.approx(aucs, abs=found.error)
        assert found.mean_auc == pytest.approx(np.mean(aucs), abs=found.error)
        pooled = [np.concatenate(side) / len(groups) for side in zip(*each, strict=True)]
        assert_encloses(found.pooled, exact_auc(*pooled))
        assert found.pooled.roc(FPR) == pytest.approx(exact_roc(*pooled, FPR), abs=1e-3)

    def test_pooling_helps_who_knows_the_groups(self):
        """One group proves everything, the other nothing: they still rank among each other."""
        found = omniscient_over_releases(parse("suppress(k=3)"), [[9], [1]], 20)
        assert found.aucs.tolist() == [1, 0.5]
        assert found.mean_auc == 0.75
        assert found.pooled.auc == pytest.approx(0.875)


class TestClosedForms:
    @pytest.mark.parametrize("eps", [0.01, 0.5, 1, 3])
    @pytest.mark.parametrize("n", [1, 7, 400])
    def test_one_cell_of_laplace(self, eps, n):
        """A published count is below, at or above n; rounding down makes the middle a tie."""
        r = math.exp(-eps)
        p_out, p_in = np.array([1, 1 - r, r]) / 2, np.array([r, 1 - r, 1]) / 2
        found = omniscient(parse(f"laplace(eps={eps})"), [n], 10**6)
        assert found.auc == pytest.approx(exact_auc(p_out, p_in), abs=1e-10)
        assert found.auc < Budget(eps).auc

    @pytest.mark.parametrize("eps", [0.01, 0.5, 1, 3])
    def test_one_cell_of_discrete_laplace_spends_all_its_budget(self, eps):
        found = omniscient(parse(f"discrete-laplace(eps={eps})"), [50], 10**6)
        assert found.auc == pytest.approx(Budget(eps).auc, abs=1e-10)
        assert found.roc(FPR) == pytest.approx(Budget(eps).tpr(FPR), abs=1e-9)

    @pytest.mark.parametrize("n_cells", [4, 200, 2000])
    def test_gaussian(self, n_cells):
        """Far from the edges, and wide enough that rounding down hardly matters."""
        mechanism = parse("gaussian(eps=0.25)")
        d = math.sqrt(n_cells) / mechanism.steps[0].scale
        found = omniscient(mechanism, np.full(n_cells, 5000), 3_000_000)
        assert found.auc == pytest.approx(norm.cdf(d / math.sqrt(2)), abs=3e-4)
        assert found.tpr_at(0.01) == pytest.approx(norm.cdf(d + norm.ppf(0.01)), abs=1e-3)

    def test_limits(self):
        others = np.arange(40)
        assert omniscient(parse("raw"), others, 100).auc == 1
        assert omniscient(parse("raw"), others, 100).tpr_at(0) == 1
        assert 0.5 <= omniscient(parse("laplace(eps=1e-6)"), others, 100).auc < 0.50001
        assert omniscient(parse("laplace(eps=30)"), others, 100).auc == pytest.approx(1)
        assert omniscient(parse("suppress(k=5)"), [0, 1, 4], 100).auc == 0.5
        assert omniscient(parse("suppress(k=5)"), [0, 5], 100).auc == 1
        assert omniscient(parse("laplace(eps=1)"), [], 100).auc == 0.5


# The Monte-Carlo AUC has a standard deviation of at most sqrt(A (1 - A) / n), a rate one of at
# most 0.5 / sqrt(n). At 5 of them, all tests of this class together fail by chance less than once
# in 10,000 seeds.
class TestAgainstSimulation:
    @pytest.mark.parametrize(
        ("text", "n_cells", "m"),
        [
            ("laplace(eps=0.3)", 60, 500),
            ("laplace(eps=1, unit=user-day, max_visits=5) | suppress(k=3)", 40, 500),
            ("discrete-laplace(eps=0.5) | round(to=5)", 30, 10**6),
            ("gaussian(eps=1)", 50, 100),
            ("suppress(k=3) | gaussian(eps=2) | suppress(k=2)", 25, 100),
            ("laplace(eps=2) | discrete-laplace(eps=1)", 10, 60),
            ("random-round(to=5)", 3, 500),
            ("laplace(eps=0.5) | random-round(to=3)", 30, 500),
        ],
    )
    def test_the_optimal_test(self, text, n_cells, m):
        mechanism, rng, n = parse(text), np.random.default_rng(11), 4000
        others = rng.poisson(8, n_cells) * rng.integers(0, 2, n_cells)
        found = omniscient(mechanism, others, m)
        scores = []
        for true in (others, others + 1):
            published = mechanism.apply(np.tile(true, (n, 1)), m, rng)
            values, place = np.unique(published, return_inverse=True)
            log_pmf = mechanism.log_pmf(values[:, None, None], [others, others + 1], m)
            with np.errstate(invalid="ignore"):
                ratio = log_pmf[:, 1] - log_pmf[:, 0]
            scores.append(ratio[place.reshape(published.shape), np.arange(n_cells)].sum(axis=1))
        out, in_ = np.round(np.sort(scores[0]), 9), np.round(scores[1], 9)
        above = np.searchsorted(out, in_, "left") + np.searchsorted(out, in_, "right")
        simulated = above.mean() / (2 * n)
        deviation = math.sqrt(found.auc * (1 - found.auc) / n)
        assert 0.52 < found.auc < 0.999
        assert abs(simulated - found.auc) < 5 * deviation
        slack = 5 * 0.5 / math.sqrt(n)
        for threshold in (-1, 0, 1):
            fpr, tpr = (out >= threshold).mean(), (in_ >= threshold).mean()
            assert found.tpr_at(max(fpr - slack, 0)) - slack <= tpr
            assert tpr <= found.tpr_at(min(fpr + slack, 1)) + slack


class TestProperties:
    @pytest.mark.parametrize("form", PURE)
    @pytest.mark.parametrize("eps", [0.05, 0.3, 1.5])
    @pytest.mark.parametrize("visits", [1, 5, 30])
    def test_never_above_differential_privacy(self, form, eps, visits):
        mechanism = parse(form.format(eps=eps))
        others = np.random.default_rng(visits).integers(0, 12, visits)
        found = omniscient(mechanism, others, 50)
        curve = mechanism.steps[0].trade_off(visits)
        assert curve.auc <= Budget(eps * visits).auc
        assert found.auc <= curve.auc + found.error
        assert np.all(found.roc(FPR) <= curve.tpr(FPR) + 1e-4)

    @pytest.mark.parametrize("unit", ["user-day", "user"])
    @pytest.mark.parametrize("name", ["laplace", "gaussian"])
    def test_never_above_it_for_wider_units(self, name, unit):
        mechanism = parse(f"{name}(eps=1.5, unit={unit}, max_visits=10)")
        curve = mechanism.steps[0].trade_off(10)
        found = omniscient(mechanism, np.arange(10) * 10, 300)
        assert found.auc <= curve.auc + found.error
        assert np.all(found.roc(FPR) <= curve.tpr(FPR) + 1e-4)

    @pytest.mark.parametrize("form", [*PURE, "gaussian(eps={eps})"])
    def test_grows_with_visits_and_eps(self, form):
        others = np.random.default_rng(5).integers(0, 30, 20)
        by_visits = [
            omniscient(parse(form.format(eps=0.4)), others[:n], 99) for n in (0, 1, 2, 5, 10, 20)
        ]
        by_eps = [
            omniscient(parse(form.format(eps=eps)), others, 99) for eps in (0.01, 0.1, 0.3, 1, 2)
        ]
        for results in (by_visits, by_eps):
            for less, more in itertools.pairwise(results):
                assert less.auc <= more.auc + more.error

    @pytest.mark.parametrize(
        "text", ["laplace(eps=0.5)", "gaussian(eps=2)", "discrete-laplace(eps=2)"]
    )
    @pytest.mark.parametrize(
        "after", ["suppress(k=1)", "suppress(k=8)", "round(to=5)", "flowkit", "random-round(to=3)"]
    )
    def test_processing_never_helps(self, text, after):
        others = np.random.default_rng(7).integers(0, 20, 25)
        before = omniscient(parse(text), others, 200)
        processed = omniscient(parse(f"{text} | {after}"), others, 200)
        assert processed.auc <= before.auc + processed.error
        assert np.all(processed.roc(FPR) <= before.roc(FPR) + 1e-3)

    def test_order_of_cells_does_not_matter(self):
        rng, mechanism = np.random.default_rng(3), parse("laplace(eps=0.5) | suppress(k=3)")
        others = rng.integers(0, 40, 60)
        one, other = (omniscient(mechanism, n, 100) for n in (others, rng.permutation(others)))
        assert (one.auc, one.error) == (other.auc, other.error)
        assert np.array_equal(one.tpr, other.tpr)

    def test_roc_is_a_concave_curve(self):
        found = omniscient(parse("gaussian(eps=2) | suppress(k=2)"), np.arange(30), 100)
        fpr = np.linspace(0, 1, 501)
        tpr = found.roc(fpr)
        assert tpr[-1] == 1
        assert np.all(np.diff(tpr) >= 0)
        assert np.all(np.diff(tpr, 2) <= 1e-9)
        assert np.trapezoid(found.tpr, found.fpr) == pytest.approx(found.auc, abs=1e-9)

    def test_refusals(self):
        mechanism = parse("laplace(eps=1)")
        for others, m in [([10], 10), ([-1], 10), ([0.5], 10), ([[1]], 10), ([0], 0)]:
            with pytest.raises(InputError):
                omniscient(mechanism, others, m)
        with pytest.raises(InputError):
            omniscient_over_releases(mechanism, np.zeros((0, 3), int), 10)


class TestSize:
    @pytest.mark.parametrize("text", ["laplace(eps=0.02) | suppress(k=5)", "gaussian(eps=0.1)"])
    def test_many_cells_and_people(self, text):
        others = np.random.default_rng(0).integers(0, 6000, 3000) // 10 * 10
        found = omniscient(parse(text), others, 5_000_000)
        assert 0.6 < found.auc < 0.99
        assert found.error < 1e-3
