"""Joint decoding: against enumeration, against sums of many people, and in an audit."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from whosthere import kernels
from whosthere.adversary.attacks import RULED_OUT, JointDecoding, LikelihoodRatio
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
    found = JointDecoding().decode([release], [people])
    expected = enumerated(release, people, release.group_size / people.n_users)
    certain = np.abs(expected) > 10
    assert found.score[~certain] == pytest.approx(expected[~certain], abs=0.02)
    assert (np.sign(found.score[certain]) == np.sign(expected[certain])).all()
    assert found.is_at_rest
    assert found.change <= 0.02


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


def said_by_a_cell(there, law, fewest=0):
    """Return what a cell tells its visitors, whose chances to be there are given."""
    n = there.size
    laws = kernels.Laws(law, np.array([0, law.size]), np.array([fewest]))
    messages, score = np.zeros(n), np.zeros(n)
    # Everybody is surely in, and counted by chance.
    cell = np.array([0, n]), np.arange(n, dtype=np.int32), there, laws, np.zeros(1, np.int32)
    kernels.pass_messages(*cell, np.full(n, 60.0), 1.0, 30.0, messages, score)
    assert (score == messages).all()
    # A visit that is not counted says nothing.
    return np.log1p(np.expm1(messages) / there)


def by_convolution(there, law, fewest=0):
    """Return the same by adding up the others one after the other, for each visitor."""
    law = np.concatenate([np.zeros(fewest), law, np.zeros(there.size + 2)])
    found = []
    for i in range(there.size):
        others = np.ones(1)
        for chance in np.delete(there, i):
            others = np.convolve(others, [1 - chance, chance])
        found.append((others @ law[1 : others.size + 1]) / (others @ law[: others.size]))
    return np.log(found)


@pytest.mark.parametrize(("least", "most"), [(1e-4, 0.02), (0.0, 0.3), (0.0, 1.0), (0.7, 1.0)])
@pytest.mark.parametrize("at", [-30, -3, 0, 3, 15])
def test_sums_of_different_people_are_exact_also_where_they_are_rare(rng, least, most, at):
    there = least + (most - least) * np.append(rng.random(78), [0.5, 1 - 1e-9])
    middle = min(max(int(there.sum()) + at, 1), 79)
    for law, fewest in ((rng.random(3) + 0.1, middle - 1), (np.ones(middle + 1), 0)):
        said, exact = said_by_a_cell(there, law, fewest), by_convolution(there, law, fewest)
        assert said == pytest.approx(exact, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("n", [1000, 20_000])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.45])
def test_crowded_cells_are_exact(n, share):
    shown, steps = int(n * share + np.sqrt(n)), np.arange(-60, 61)
    # Laplace noise of scale 2, and what is suppressed up to a threshold.
    noise, suppressed = np.exp(-np.abs(steps) / 2), np.ones(shown + 1)
    for law, fewest in ((noise, shown - 60), (suppressed, 0)):
        there = np.full(n, share)
        others = binom.pmf(fewest + np.arange(-1, law.size), n - 1, share)
        exact = np.log(law @ others[:-1]) - np.log(law @ others[1:])
        assert said_by_a_cell(there, law, fewest) == pytest.approx(exact, abs=1e-8)


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


def test_too_many_chances_are_refused(traces, monkeypatch):
    monkeypatch.setattr("whosthere.adversary.attacks.joint_decoding._MOST_CHANCES", 1)
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
