"""Attacks that see several tables of the same people as one."""

from dataclasses import replace

import numpy as np
import pytest

from whosthere.adversary.attacks import (
    ATTACKS,
    Auxiliary,
    ContradictionRule,
    KnockKnock,
    NotApplicableError,
    PastRelease,
    TrainedAttack,
    ZeroKnowledge,
)
from whosthere.adversary.attacks.base import View
from whosthere.adversary.groups import GroupSampler, sample_tables
from whosthere.adversary.suspects import over
from whosthere.data.cities import simulate
from whosthere.data.traces import Group
from whosthere.inference.scores import RULED_OUT
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.publish import publish_table
from whosthere.privacy.scheme import ORDINARY, Layout

M = 60
SMALL = {"groups": 60, "validation_groups": 20}
LAYOUTS = {
    "hours": ORDINARY,
    "days": Layout(epochs=24),
    "sums": Layout(epochs=24, counts="visits"),
    "quarters": Layout(regions=tuple(i // 4 for i in range(16)), epochs=4),
}


@pytest.fixture(scope="module")
def people():
    return simulate("milan-like", seed=3, users=1000, regions=16, days=3).traces()


@pytest.fixture(scope="module")
def target(people):
    return int(np.argsort(people.visits_per_user())[-8])


def _published(people, rows, names, spec, seed=0):
    rng, mechanism = np.random.default_rng(seed), Mechanism.parse(spec)
    groups = (Group(LAYOUTS[name](people), rows) for name in names)
    made = (publish_table(one, mechanism, bounding=rng, noise=rng) for one in groups)
    return [one.release for one in made]


def _views(people, target, names, spec, known=None):
    """Return what an attacker has of tables of the last people; the first are the reference."""
    known = people.select([target]) if known is None else known
    groups = [np.arange(M) + 3 * i for i in range(8)]
    for group in groups[::2]:
        group[-1] = target
    past = [_published(people, group, names, spec) for group in groups]
    examples = _published(people, np.arange(M), names, spec)
    views = []
    for place, name in enumerate(names):
        laid = LAYOUTS[name](people)
        auxiliary = Auxiliary(
            reference=laid.select(np.setdiff1d(np.arange(200), target)),
            friends=laid.select([1, 2, 3]),
            past=[PastRelease(one[place], i % 2 == 0) for i, one in enumerate(past)],
            example=examples[place],
        )
        facts = examples[place].facts
        here = over(known, LAYOUTS[name])
        views.append(View(facts, here, auxiliary, LAYOUTS[name]))
    return views


@pytest.mark.parametrize("sampling", ["paired", "independent"])
@pytest.mark.parametrize("names", [("hours", "days"), ("hours", "sums", "days")])
def test_groups_to_learn_from_are_the_same_people_in_all_tables(people, names, sampling):
    """Of raw counts, visits add up to sums, and people to no more than these in any table."""
    target, raw = people.trace(400), Mechanism()
    samplers = []
    for name in names:
        laid = LAYOUTS[name](people)
        own = laid.select([400])
        samplers.append(GroupSampler(laid.select(range(300)), own.cells, M, raw, own.added(0)))
    assert target.size > 1
    made = sample_tables(samplers, 10, sampling, np.random.default_rng(1))
    tables = {
        name: one.counts.dense().astype(int).reshape(10, *LAYOUTS[name](people).shape)
        for name, one in zip(names, made, strict=True)
    }
    by_day = tables["hours"].reshape(10, 16, 3, 24)
    if "sums" in names:
        assert (tables["sums"] == by_day.sum(axis=3)).all()
    assert (tables["days"] <= by_day.sum(axis=3)).all()
    assert (tables["days"] >= by_day.max(axis=3)).all()


def test_each_table_has_noise_of_its_own_and_people_the_same_keys(people):
    """Over the same cells, keyed noise is the same twice, and other noise is not."""
    own, reference = people.trace(400), people.select(range(300))
    for spec, same in (("cell-key(d=5, v=3)", True), ("laplace(eps=0.1, unit=event)", False)):
        sampler = GroupSampler(reference, own, M, Mechanism.parse(spec))
        twice = sample_tables([sampler, sampler], 4, "paired", np.random.default_rng(1))
        one, other = (part.counts.dense() for part in twice)
        assert np.array_equal(one, other) == same


@pytest.mark.parametrize("name", [name for name in ATTACKS.kinds if name != "contradiction-rule"])
@pytest.mark.parametrize("names", [("hours", "sums"), ("quarters", "days")])
def test_every_attack_scores_several_tables_together(people, target, name, names):
    kind = ATTACKS.kinds[name].make
    attack = kind(**SMALL) if issubclass(kind, TrainedAttack) else kind()
    views = _views(people, target, names, "suppress(k=1)")
    fitted = attack.fit_tables(views, seed=1)
    releases = _published(people, np.arange(300, 300 + M), names, "suppress(k=1)")
    answer = fitted.score_tables(releases)
    assert np.isfinite(answer.score)
    assert fitted.score_tables(releases) == answer


def test_a_second_table_helps(people, target):
    """With hours all but suppressed, an attacker finds an active person by the days."""
    rng, pool, scores = np.random.default_rng(4), np.arange(200, 500), []
    names, spec = ("hours", "days"), "suppress(k=3)"
    pool = pool[pool != target]
    tests = []
    for i in range(24):
        rows = rng.choice(pool, M - (i % 2 == 0), replace=False)
        rows = np.append(rows, target) if i % 2 == 0 else rows
        tests.append(_published(people, rows, names, spec, i))
    views = _views(people, target, names, spec)
    for used in ((0,), (0, 1)):
        fitted = KnockKnock(**SMALL).fit_tables([views[i] for i in used], seed=1)
        found = [fitted.score_tables([test[i] for i in used]).score for test in tests]
        better = np.array(found[::2])[:, None] - found[1::2]
        scores.append(float((better > 0).mean() + (better == 0).mean() / 2))
    assert scores[1] > scores[0]
    assert scores[1] > 0.7


def test_one_table_that_contradicts_is_enough(people, target):
    """Nobody of the group is where the target is: days prove it, though hours are suppressed."""
    views = _views(people, target, ("hours", "days"), "raw")
    hidden = replace(views[0].facts, mechanism=Mechanism.parse("suppress(k=2)"))
    views[0] = replace(views[0], facts=hidden)
    empty = [
        replace(one, values=np.zeros_like(one.values))
        for one in _published(people, np.arange(M), ("hours", "days"), "raw")
    ]
    empty[0] = replace(empty[0], facts=hidden)
    for attack in (ContradictionRule(), KnockKnock(**SMALL), ZeroKnowledge(**SMALL)):
        assert attack.fit_tables(views, seed=1).score_tables(empty).score == RULED_OUT
    with pytest.raises(NotApplicableError):
        ContradictionRule().check_tables(views[:1])


def test_a_sum_below_what_the_target_adds_contradicts(people, target):
    """Suppressed sums of 2 say nothing of 1 visit, but prove that nobody made 5."""
    [view] = _views(people, target, ("sums",), "suppress(k=2)")
    added = view.knowledge.weights
    assert added.max() > 3
    [release] = _published(people, np.arange(M), ("sums",), "suppress(k=2)")
    cell = view.knowledge.cells[np.argmax(added)]
    rule = ContradictionRule().fit_tables([view], seed=1)
    everywhere = np.full_like(release.values, 100)
    assert rule.score(replace(release, values=everywhere)).score == 0
    for shown, out in ((added.max() - 1, True), (0, True), (added.max(), False)):
        values = everywhere.reshape(-1).copy()
        values[cell] = shown
        answer = rule.score(replace(release, values=values.reshape(release.values.shape)))
        assert answer.is_certain == out
