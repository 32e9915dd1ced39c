"""The one-run bound of eps: against the definition, and on mechanisms of known eps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from whosthere.errors import InputError
from whosthere.inference.everybody import everybody_findings
from whosthere.inference.one_run import best_guesses, eps_of_guesses, one_run_eps, outcome
from whosthere.inference.panel import Panel


def reference_chance(people, guesses, correct, eps, delta):
    """The bound of Steinke, Nasr and Jagielski, written out as in their appendix."""
    q = 1 / (1 + math.exp(-eps))
    alpha, total = 0.0, 0.0
    for i in range(1, correct + 1):
        total += binom.pmf(correct - i, guesses, q)
        alpha = max(alpha, total / i)
    return binom.sf(correct - 1, guesses, q) + 2 * people * delta * alpha


def coins(rng, n_rounds=1, n_people=2000):
    return rng.random((n_rounds, n_people)) < 0.5


class TestDefinition:
    @pytest.mark.parametrize(
        ("correct", "guesses", "people", "delta"),
        [(90, 100, 1000, 1e-5), (60, 60, 100, 1e-6), (700, 1000, 1000, 1e-9), (95, 100, 100, 0)],
    )
    def test_equals_the_published_bound(self, correct, guesses, people, delta):
        eps = eps_of_guesses(correct, guesses, 0.95, delta, people)
        assert eps > 0.1
        for away, ruled_out in ((-1e-4, True), (1e-4, False)):
            chance = reference_chance(people, guesses, correct, eps + away, delta)
            assert (chance <= 0.05) == ruled_out

    def test_known_answers(self):
        share = 0.05 ** (1 / 100)
        assert eps_of_guesses(100, 100, 0.95) == pytest.approx(math.log(share / (1 - share)))
        assert eps_of_guesses(50, 100, 0.95) == 0
        assert eps_of_guesses(0, 0, 0.95) == 0
        # A delta of more than the error that is allowed proves nothing.
        assert eps_of_guesses(100, 100, 0.95, 0.01, 1000) == 0

    def test_a_delta_costs(self):
        bounds = [eps_of_guesses(95, 100, 0.95, delta, 1000) for delta in (0, 1e-9, 1e-5, 3e-4)]
        assert bounds[0] == pytest.approx(bounds[1], abs=1e-3)
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[-1] < bounds[0] - 0.1

    def test_guesses_are_the_highest_and_the_lowest(self, rng):
        labels = coins(rng)
        scores = np.where(labels, 1.0, -1.0)
        found = one_run_eps(scores, labels, [(100, 50)])
        assert found == pytest.approx(eps_of_guesses(150, 150, 0.95))
        assert one_run_eps(-scores, labels, [(100, 50)]) == 0
        several = one_run_eps(scores, labels, [(100, 50), (1, 0)])
        assert several == pytest.approx(eps_of_guesses(150, 150, 0.975))
        with pytest.raises(InputError, match="at most 2000"):
            one_run_eps(scores, labels, [(1999, 2)])

    def test_equal_scores_are_guessed_without_their_labels(self):
        labels = np.arange(100) % 2 == 0
        assert one_run_eps(np.zeros(100), labels, [(50, 50)]) == 0

    def test_edges_by_half_of_the_rounds(self, rng):
        """Of scores that mean something only at the ends, the ends are guessed."""
        labels = coins(rng, 10)
        scores = rng.normal(size=labels.shape)
        sure = rng.random(labels.shape) < 0.05
        scores[sure] = np.where(labels[sure], 9, -9)
        counts = Panel(scores.astype(np.float32), labels).curves.by_round
        edges = best_guesses(counts[::2].sum(axis=0))
        correct, guesses = outcome(counts[1::2].sum(axis=0), edges)
        assert guesses == pytest.approx(sure[1::2].sum(), rel=0.1)
        assert correct > 0.97 * guesses


class TestValidity:
    """The bound is above the truth in at most 5 % of runs; and not far below it."""

    @pytest.mark.parametrize("eps", [0.5, 2.0])
    def test_randomised_response(self, rng, simulations, eps):
        n, most = simulations(2000, 0.05)
        found = []
        for _ in range(n):
            labels = coins(rng)
            says_in = labels ^ (rng.random(labels.shape) > 1 / (1 + math.exp(-eps)))
            found.append(one_run_eps(says_in, labels, [(900, 900)]))
        assert np.mean(np.array(found) > eps) <= most
        assert np.mean(found) > eps - 0.25

    @pytest.mark.parametrize("eps", [0.5, 1.0, 4.0])
    def test_laplace(self, rng, simulations, eps):
        n, most = simulations(2000, 0.05)
        found = []
        for _ in range(n):
            labels = coins(rng)
            scores = labels + rng.laplace(scale=1 / eps, size=labels.shape)
            found.append(one_run_eps(scores, labels, [(300, 300), (600, 600)]))
        assert np.mean(np.array(found) > eps) <= most
        assert np.mean(found) > 0.5 * eps

    def test_gaussian_with_delta(self, rng, simulations):
        """The exact (eps, delta) of normal noise with sigma 1; the pure bound would be wrong."""
        delta = 1e-4
        grid = np.linspace(0, 10, 100_001)
        spent = norm.cdf(0.5 - grid) - np.exp(grid) * norm.cdf(-0.5 - grid)
        eps = grid[spent <= delta][0]
        n, most = simulations(2000, 0.05)
        found = []
        for _ in range(n):
            labels = coins(rng)
            scores = labels + rng.normal(size=labels.shape)
            found.append(one_run_eps(scores, labels, [(50, 50)], delta=delta))
        assert np.mean(np.array(found) > eps) <= most
        assert np.mean(found) > 0.5

    def test_findings_of_several_rounds(self, rng, simulations):
        """Edges of guesses are from other rounds; what the rounds prove together is tight."""
        n, most = simulations(1000, 0.05)
        found = []
        for _ in range(n):
            labels = coins(rng, 10, 1000)
            scores = (labels + rng.laplace(size=labels.shape)).astype(np.float32)
            findings = everybody_findings(
                Panel(scores, labels), setting="s", attack="a", include=0.5
            )
            (eps,) = (one for one in findings if one.metric == "empirical_eps")
            found.append((eps.estimate, eps.at_least))
        bounds, deciding = np.transpose(found)
        assert np.mean(bounds > 1) <= most
        assert (deciding <= bounds).all()
        assert bounds.mean() > 0.75
