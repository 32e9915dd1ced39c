"""Attacks of the study alone: each does what it is for, and nothing else differs."""

from dataclasses import replace

import numpy as np
import pytest

from whosthere import kernels
from whosthere.adversary.attacks import ATTACKS, Auxiliary, KnockKnock, ZeroKnowledge
from whosthere.adversary.classifiers import L1
from whosthere.adversary.groups import GroupSampler
from whosthere.adversary.knowledge import Regions
from whosthere.adversary.marginals import estimate_marginals
from whosthere.arrays import own
from whosthere.data.cities import simulate
from whosthere.data.traces import Group
from whosthere.errors import InputError
from whosthere.paper import study_attacks
from whosthere.paper.study_attacks import (
    ForkedSampler,
    GuessingSampler,
    InformedTest,
    PooledL1,
    RegionsAndTruth,
    mean_in_five_rounds,
)
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table

M = 40
SMALL = {"groups": 80, "validation_groups": 40}


@pytest.fixture(scope="module")
def people():
    return simulate("milan-like", seed=3, users=600, regions=9, days=2).traces()


@pytest.fixture(scope="module")
def target(people):
    return int(np.argmax(people.visits_per_user()))


@pytest.fixture(scope="module")
def others(people, target):
    return np.setdiff1d(np.arange(people.n_users), target)


def published(people, rows, spec, seed=0):
    rng = np.random.default_rng(seed)
    group = Group(people, own(rows, np.int64))
    return publish_table(group, Mechanism.parse(spec), bounding=rng, noise=rng)


@pytest.mark.parametrize(
    ("usual", "study"),
    [(KnockKnock(**SMALL), study_attacks.KnockKnock(**SMALL)),
     (ZeroKnowledge(**SMALL), study_attacks.ZeroKnowledge(**SMALL))],
    ids=["knock-knock", "zero-knowledge"],
)  # fmt: skip
def test_with_nothing_chosen_they_are_the_usual_attacks(people, target, others, usual, study):
    release = published(people, np.append(others[: M - 1], target), "laplace(eps=1)").release
    known, auxiliary = people.select([target]), Auxiliary(people.select(others[M:]))
    scores = [one.fit(release.facts, known, auxiliary, seed=1) for one in (usual, study)]
    assert scores[0].score(release) == scores[1].score(release)
    assert str(usual) == str(study)


@pytest.mark.parametrize(
    "text", ["knock-knock(leak=yes)", "zero-knowledge(noise=reused)", "informed(thresholds=1)",
             "zero-knowledge(marginals=uniform)", "zero-knowledge(search=five-rounds)",
             "zero-knowledge(visits=2)", "knock-knock(guess=anew)"]
)  # fmt: skip
def test_no_spec_names_them(text):
    with pytest.raises(InputError):
        ATTACKS.parse(text)


def test_four_groups_share_each_draw_of_noise(people, target, others):
    parts = people.select(others), people.trace(target), M, Mechanism.parse("laplace(eps=1)")
    sampler, rng = ForkedSampler(*parts, seed=5), np.random.default_rng(0)
    drawn = sampler.noise_seeds(400, rng)
    assert len(set(drawn)) == 100
    assert not set(drawn[::2]) & set(drawn[1::2])
    assert set(sampler.noise_seeds(100, rng)) <= set(drawn)
    # Single groups 0 and 20 have the same noise of 80: as far as people differ, and no further.
    single = sampler.sample(80, "independent", np.random.default_rng(1)).counts.dense().astype(int)
    assert np.abs(single[0] - single[20]).max() < np.abs(single[0] - single[2]).max()
    # Groups themselves stay what they were, and so does their noise on average.
    fresh = GroupSampler(*parts).sample(80, "paired", np.random.default_rng(1))
    reused = sampler.sample(80, "paired", np.random.default_rng(1))
    means = [one.counts.dense().mean() for one in (fresh, reused)]
    assert means[0] == pytest.approx(means[1], rel=0.05)
    assert list(fresh.labels) == list(reused.labels)


def test_the_leak_pools_the_moments(rng):
    counts = rng.poisson(2.0, (30, 7)).astype(np.uint8)
    first, second = (kernels.CountMatrix.single(one.T.copy()) for one in (counts[:20], counts[20:]))
    mean, deviation = PooledL1(also=second).moments(first)
    assert mean == pytest.approx(counts.mean(axis=0))
    assert deviation == pytest.approx(counts.std(axis=0))
    alone = L1().moments(first)
    assert alone[0] == pytest.approx(counts[:20].mean(axis=0))


def test_the_leak_gives_the_true_visits_away(people, target, others):
    """Knock-knock guesses every hour of every place; only with the leak it learns which."""
    table = published(people, np.append(others[: M - 1], target), "raw")
    trace, alone = people.trace(target), people.select([target])
    known = RegionsAndTruth().of(alone, None)
    plain = Regions().of(alone, None)
    regions = known.regions.tolist()
    assert (regions, known.cells.size) == (sorted(plain.regions.tolist()), 0)
    assert RegionsAndTruth(2).of(alone, None).regions.tolist() == regions[:2]
    assert RegionsAndTruth(guess="random").of(alone, None).guess == "random"
    auxiliary = Auxiliary(people.select(others[M:]))
    weights = {}
    for leak in (False, True):
        one = study_attacks.KnockKnock(**SMALL, leak=leak, rule=False)
        decision = one.fit(table.release.facts, known, auxiliary, seed=1).decision
        true = np.isin(decision.cells, trace)
        weights[leak] = np.abs(decision.weights[true]).sum() / np.abs(decision.weights).sum()
    assert weights[True] > weights[False]


def test_uniform_marginals_know_nothing_but_the_mean(people, others, rng):
    release = published(people, others[:200], "laplace(eps=2)").release
    found = study_attacks.ZeroKnowledge(marginals="uniform").estimated(release, rng)
    assert np.ptp(found.space) == np.ptp(found.time) == 0
    true = people.counts(others[:200]).sum() / 200
    assert found.mean_visits == pytest.approx(true, rel=0.5)


def test_informed_tests_look_at_what_is_beyond_the_others(people, target, others):
    cells = people.trace(target)
    known, group = people.select([target]), np.append(others[: M - 1], target)
    auxiliary = Auxiliary(others=people.select(group[:-1]))
    for rows, inside in ((group, 1), (others[:M], 0)):
        release = published(people, rows, "raw").release
        beyond = np.isin(cells, people.trace(rows[-1])).sum()
        for thresholds in (1, 2):
            test = InformedTest(thresholds)
            assert test.is_study_only
            answer = test.fit(release.facts, known, auxiliary, seed=0).score(release)
            assert answer.score == beyond
            assert answer.says_in or not inside


@pytest.mark.parametrize("spec", ["laplace(eps=1)", "suppress(k=1)"])
def test_a_search_for_the_mean_in_five_rounds_ends_near_ours(people, others, spec):
    """So the authors' search, which stops there, does not explain their accuracies."""
    release = published(people, others[:200], spec).release
    found = estimate_marginals(release, rng=np.random.default_rng(0))
    mean = mean_in_five_rounds(release, found, np.random.default_rng(0))
    assert mean == pytest.approx(found.mean_visits, rel=0.1)
    asked = study_attacks.ZeroKnowledge(search="five-rounds", visits=2.0)
    estimated = asked.estimated(release, np.random.default_rng(0))
    assert estimated.mean_visits == pytest.approx(2 * mean, rel=0.2)
    assert (estimated.space == found.space).all()


def test_visits_are_guessed_anew_for_every_two_groups(people, target, others):
    """Then all hours of a place are learned from, each as often as people are seen in it."""
    known = Regions(top=1, guess="random").of(people.select([target]), None)
    auxiliary = Auxiliary(people.select(others[M:]))
    facts = published(people, others[:M], "raw").release.facts
    seen = {}
    for guess in ("once", "anew"):
        one = study_attacks.KnockKnock(**SMALL, guess=guess, rule=False)
        decision = one.fit(facts, known, auxiliary, seed=1).decision
        # What is learned of the place itself.
        own_cells = decision.cells // people.epochs.n == known.regions[0]
        seen[guess] = (decision.weights[own_cells] > 0).sum()
    assert seen["anew"] > seen["once"]
    sampler = GuessingSampler(
        people.select(others),
        np.empty(0, np.int32),
        M,
        Mechanism.parse("raw"),
        guessed=lambda: None,
    )
    guesses = iter(np.arange(6, dtype=np.int32)[:, None])
    made = replace(sampler, guessed=lambda: next(guesses)).sample(
        12, "paired", np.random.default_rng(1)
    )
    pairs = made.counts.dense().astype(int).reshape(6, 2, -1)
    assert [int(pair[0, i] >= pair[1, i]) for i, pair in enumerate(pairs)] == [1] * 6
    assert made.labels.tolist() == [True, False] * 6
