"""Joint decoding: against enumeration, against sums of many people, and in an audit."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from whosthere import kernels
from whosthere.adversary.attacks import RULED_OUT, JointDecoding, LikelihoodRatio
from whosthere.adversary.attacks.joint_decoding import Visitors
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release

CHAIN = ((0, 1), (1, 2), (2, 5), (7,), (7,))
"""Who visited which cells; nobody meets another in two of them, so messages are exact."""
MECHANISMS = ("raw", "suppress(k=1)", "round(to=3)", "laplace(eps=1, unit=event)")


def traces_of(visited, like):
    indptr = np.cumsum([0, *map(len, visited)])
    users = tuple(str(i) for i in range(len(visited)))
    return Traces(users, indptr, np.concatenate(visited), like.regions, like.epochs)


def enumerated(release, people, share):
    """Return the log odds of each person's membership beyond the prior, over all groups."""
    n, symbols = people.n_users, release.symbols.reshape(-1)
    values = release.mechanism.alphabet(release.group_size).values(symbols)
    logs = []
    for inside in product((0, 1), repeat=n):
        counts = np.minimum(people.counts(np.flatnonzero(inside)).reshape(-1), release.group_size)
        chance = release.mechanism.log_pmf(values, counts, release.group_size).sum()
        k = sum(inside)
        logs.append(chance + k * np.log(share) + (n - k) * np.log1p(-share))
    inside, logs = np.array(list(product((0, 1), repeat=n)), bool), np.array(logs)
    prior = np.log(share / (1 - share))
    with np.errstate(divide="ignore"):
        return (
            np.array(
                [logsumexp(logs[inside[:, i]]) - logsumexp(logs[~inside[:, i]]) for i in range(n)]
            )
            - prior
        )


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("group", [(0, 2), (1, 3), (0, 4), (3, 4)])
def test_messages_are_exact_where_nobody_meets_twice(traces, mechanism, group):
    people = traces_of(CHAIN, traces)
    release = publish(people, mechanism=mechanism, group=group, seed=3).release
    person = np.repeat(np.arange(people.n_users), people.visits_per_user())
    found = Visitors.of(release.facts, people.cells, person, people.n_users).decoded(release)
    expected = enumerated(release, people, release.group_size / people.n_users)
    certain = np.abs(expected) > 10
    assert found.score[~certain] == pytest.approx(expected[~certain], abs=0.02)
    assert (np.sign(found.score[certain]) == np.sign(expected[certain])).all()
    assert found.change < 0.01


def test_who_left_no_trace_where_one_must_show_is_ruled_out(traces):
    people = traces_of(CHAIN, traces)
    release = publish(people, mechanism="raw", group=(0, 3), seed=1).release
    score = JointDecoding().score_everybody(release, people)
    assert (score[[1, 2]] == RULED_OUT).all()
    assert score[0] > 5
    # One of two was in the same cell, and nothing tells which.
    assert score[3] == pytest.approx(score[4], abs=0.05)


def test_loops_are_nearly_right(traces, rng):
    visited = [np.sort(rng.choice(6, 3, replace=False)) for _ in range(9)]
    people = traces_of(visited, traces)
    release = publish(people, mechanism="laplace(eps=1, unit=event)", group_size=4, seed=2).release
    found = JointDecoding().score_everybody(release, people)
    expected = enumerated(release, people, 4 / 9)
    assert np.corrcoef(found, expected)[0, 1] > 0.98


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_crowded_cells_are_nearly_exact(share):
    n = 150
    law = np.zeros((1, n + 2))
    shown = int(n * share) + 3
    # Laplace noise of scale 2, and of what is suppressed up to a threshold.
    law[0] = np.exp(-np.abs(np.arange(n + 2) - shown) / 2)
    laws = np.vstack([law, (np.arange(n + 2) <= shown).astype(float)])
    starts, there = np.array([0, n, 2 * n]), np.full(2 * n, share)
    found = kernels.log_ratios_of_visitors(starts, there, laws, np.array([0, 1], np.int32), 12.0)
    others = binom.pmf(np.arange(n), n - 1, share)
    exact = np.log(laws[:, 1 : n + 1] @ others) - np.log(laws[:, :n] @ others)
    assert found.reshape(2, n) == pytest.approx(np.repeat(exact[:, None], n, axis=1), abs=0.02)


def test_sums_of_different_people_are_exact(rng):
    n = 40
    there, law = rng.random(n), rng.random((1, n + 2))
    found = kernels.log_ratios_of_visitors(
        np.array([0, n]), there, law, np.array([0], np.int32), 12.0
    )
    for i in (0, 17, n - 1):
        others = np.ones(1)
        for chance in np.delete(there, i):
            others = np.convolve(others, [1 - chance, chance])
        exact = np.log(others @ law[0, 1 : n + 1]) - np.log(others @ law[0, :n])
        assert found[i] == pytest.approx(exact, abs=1e-9)


def test_it_finds_more_than_the_likelihood_ratio(traces):
    """A city of 200 people: joint decoding orders the pairs right that the ratio does not."""
    mechanism, m = "suppress(k=1)", traces.n_users // 3
    right = {}
    for seed in range(4):
        made = publish(traces, mechanism=mechanism, group_size=m, seed=seed)
        inside = np.isin(np.arange(traces.n_users), made.group.rows)
        scores = {
            "joint": JointDecoding().score_everybody(made.release, traces),
            "ratio": LikelihoodRatio().score_everybody(made.release, traces),
        }
        for name, score in scores.items():
            above = score[inside][:, None] > score[~inside]
            ties = score[inside][:, None] == score[~inside]
            right.setdefault(name, []).append((above + ties / 2).mean())
    assert np.mean(right["joint"]) > np.mean(right["ratio"]) + 0.02


def test_too_many_chances_are_refused_before_memory_is(traces, monkeypatch):
    monkeypatch.setattr("whosthere.adversary.attacks.joint_decoding._MOST_CHANCES", 4)
    people = traces_of(CHAIN, traces)
    release = publish(people, mechanism="raw", group=(0, 2), seed=3).release
    with pytest.raises(InputError, match="too many"):
        JointDecoding().score_everybody(release, people)


def test_a_visit_that_may_be_dropped_says_less(traces):
    people = traces_of([(0, 1, 2), (4,), (5,)], traces)
    bounded = Mechanism.parse("laplace(eps=9, unit=user-day, max_visits=1)")
    values = np.zeros(people.shape, np.int32)
    release = Release(values, Facts.of(people, 1, bounded))
    sure = Release(values, Facts.of(people, 1, Mechanism.parse("laplace(eps=9, unit=event)")))
    may_be_dropped, cannot = (
        JointDecoding().score_everybody(one, people)[0] for one in (release, sure)
    )
    assert cannot < may_be_dropped < 0
