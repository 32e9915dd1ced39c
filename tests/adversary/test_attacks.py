"""The attacks: what they may see, what they refuse, what they find."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

from whosthere.adversary.attacks import (
    ATTACKS,
    RULED_OUT,
    Answer,
    Attack,
    Auxiliary,
    ContradictionRule,
    KnockKnock,
    KnockKnockPastGroups,
    LikelihoodRatio,
    LocMia,
    LogLikelihood,
    NotApplicableError,
    PastRelease,
    TrainedAttack,
    ZeroKnowledge,
)
from whosthere.adversary.attacks.base import View
from whosthere.adversary.attacks.knock_knock import proxy_trace
from whosthere.adversary.attacks.trained import Tuning, sampler_over
from whosthere.adversary.attacks.zero_knowledge import OnEachRelease
from whosthere.adversary.classifiers import L1
from whosthere.adversary.knowledge import Share
from whosthere.adversary.models import Forest
from whosthere.adversary.suspects import Places, visits_of_one
from whosthere.data.cities import simulate
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.facts import Facts
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 150
# Knowledge that says nothing certain.
PLACES = Places.of_one((0,))
SMALL = {"groups": 100, "validation_groups": 40}


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=3, users=1500, regions=16, days=3)


@pytest.fixture(scope="module")
def people(city):
    return city.traces()


@pytest.fixture(scope="module")
def target(people):
    """The row of somebody with many visits."""
    return int(np.argsort(people.visits_per_user())[-8])


@pytest.fixture(scope="module")
def reference(people, target):
    return people.select(np.setdiff1d(np.arange(350), target))


def _releases(people, target, spec, n=30, seed=0):
    """Make releases of people who are not in the reference, every other one with the target."""
    rng = np.random.default_rng(seed)
    mechanism = Mechanism.parse(spec)
    pool = np.setdiff1d(np.arange(350, people.n_users), target)
    releases = []
    for i in range(n):
        rows = rng.choice(pool, M - (i % 2 == 0), replace=False)
        rows = np.append(rows, target) if i % 2 == 0 else rows
        counts = mechanism.apply(people.counts(rows), M, rng)
        releases.append(Release(counts, Facts(people.regions, people.epochs, M, mechanism)))
    return releases, np.arange(n) % 2 == 0


def _past(releases, labels):
    return [PastRelease(r, bool(inside)) for r, inside in zip(releases, labels, strict=True)]


def _auc(attack, releases, labels, knowledge, auxiliary):
    fitted = attack.fit(releases[0].facts, knowledge, auxiliary, seed=1)
    scores = np.array([fitted.score(release).score for release in releases])
    difference = scores[labels][:, None] - scores[~labels]
    return (difference > 0).mean() + (difference == 0).mean() / 2


def _attack(kind, **more):
    return kind(**SMALL, **more) if issubclass(kind, TrainedAttack) else kind(**more)


EVERY_ATTACK = [
    *(_attack(kind.make) for kind in ATTACKS.kinds.values()),
    _attack(ZeroKnowledge, fit_on="per-target"),
]


@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge], ids=lambda k: k.name)
@pytest.mark.parametrize(
    ("spec", "least"),
    [("raw", 0.95), ("suppress(k=1)", 0.75), ("laplace(eps=2, unit=event)", 0.75)],
)
def test_trained_attacks_find_an_active_person(people, target, reference, kind, spec, least):
    """Chance alone reaches 0.75 with 15 and 15 releases in fewer than 1 of 100 runs."""
    releases, labels = _releases(people, target, spec)
    known = people.select([target])
    assert _auc(_attack(kind), releases, labels, known, Auxiliary(reference)) >= least


@pytest.mark.parametrize(("eps", "is_found"), [(0.001, False), (0.5, True)])
def test_strong_noise_leaves_nothing(people, target, reference, eps, is_found):
    """Noise of scale 1000 drowns everything, and noise of scale 2 does not.

    Without any signal the AUC of n and n releases has the mean 1/2 and the variance
    (2 n + 1) / (12 n^2), exactly. 500 and 500 give a standard deviation of 0.018, and the normal
    interval, within 0.071 of 1/2, a false alarm rate of 1e-4.
    """
    releases, labels = _releases(people, target, f"laplace(eps={eps}, unit=event)", n=1000)
    known = people.select([target])
    found = _auc(KnockKnock(**SMALL), releases, labels, known, Auxiliary(reference))
    n = 500
    deviation = np.sqrt((2 * n + 1) / (12 * n**2))
    assert (abs(found - 0.5) > norm.isf(0.5e-4) * deviation) == is_found


def test_the_rule_never_rules_out_a_member(people, target):
    releases, labels = _releases(people, target, "raw", n=60)
    known = people.select([target])
    rule = ContradictionRule().fit(releases[0].facts, known, Auxiliary(), seed=0)
    answers = [rule.score(release) for release in releases]
    assert all(a.says_in for a, inside in zip(answers, labels, strict=True) if inside)
    assert any(
        a.score == RULED_OUT for a, inside in zip(answers, labels, strict=True) if not inside
    )


@pytest.mark.parametrize(
    "spec", ["suppress(k=1)", "round(to=5)", "laplace(eps=1, unit=event)", "flowkit"]
)
def test_the_rule_is_refused_where_a_zero_proves_nothing(people, target, spec):
    facts = Facts(people.regions, people.epochs, M, Mechanism.parse(spec))
    known = people.select([target])
    with pytest.raises(NotApplicableError, match="only sound"):
        ContradictionRule().check(facts, known, Auxiliary())


def test_the_rule_is_refused_for_places_without_times(people):
    facts = Facts(people.regions, people.epochs, M, Mechanism())
    with pytest.raises(NotApplicableError, match="only sound"):
        ContradictionRule().check(facts, Places.of_one((1,)), Auxiliary())


class _Forbidden:
    """Stands for auxiliary data that must not be touched."""

    def __getattr__(self, name):
        raise AssertionError(f"an attack read {name} of data that it may not see")

    def __len__(self):
        raise AssertionError("an attack measured data that it may not see")


@pytest.mark.parametrize("attack", EVERY_ATTACK, ids=str)
def test_no_attack_touches_what_it_does_not_declare(people, target, reference, attack):
    releases, labels = _releases(people, target, "raw", n=20)
    past = _past(releases, labels)
    friends = people.select([1, 2, 3])
    allowed = {
        "reference": reference,
        "friends": friends,
        "past": past,
        "example": releases[1],
        "example_in": releases[0],
        "everybody": reference,
    }
    assert attack.uses <= set(allowed)
    given = {k: v if k in attack.uses else _Forbidden() for k, v in allowed.items()}
    known = people.select([target])
    fitted = attack.fit(releases[0].facts, known, Auxiliary(**given), seed=0)
    assert np.isfinite(fitted.score(releases[0]).score)


def test_only_the_named_attacks_read_real_traces():
    readers = {attack.name for attack in EVERY_ATTACK if "reference" in attack.uses}
    assert readers == {
        "knock-knock",
        "loc-mia",
        "log-likelihood",
    }


@pytest.mark.parametrize("attack", EVERY_ATTACK, ids=str)
def test_answers_depend_on_seed_and_release_alone(people, target, reference, attack):
    releases, labels = _releases(people, target, "raw", n=20)
    past = _past(releases, labels)
    parts = reference, people.select([1, 2, 3]), past, releases[5]
    auxiliary = Auxiliary(*parts, everybody=reference)
    known = people.select([target])
    facts = releases[0].facts
    forwards = attack.fit(facts, known, auxiliary, seed=4)
    backwards = attack.fit(facts, known, auxiliary, seed=4)
    first = [forwards.score(r) for r in releases[:3]]
    assert [backwards.score(r) for r in releases[2::-1]][::-1] == first


@pytest.mark.parametrize("kind", [KnockKnock, LogLikelihood, ContradictionRule])
def test_labels_of_regions_do_not_matter(people, target, reference, rng, kind):
    """Renaming and reordering regions leaves scores as they are: exactly where nothing is drawn
    by cell, as on raw counts."""
    order = rng.permutation(len(people.regions))
    releases, _ = _releases(people, target, "raw", n=6)
    moved = [
        Release(r.counts[order], replace(r.facts, regions=r.regions.select(order)))
        for r in releases
    ]
    place = np.argsort(order)

    def relabelled(cells):
        region, epoch = np.divmod(cells, people.epochs.n)
        return place[region] * people.epochs.n + epoch

    rows = [np.sort(relabelled(reference.trace(i))) for i in range(reference.n_users)]
    other = Traces(
        reference.users,
        reference.indptr,
        np.concatenate(rows).astype(np.int32),
        people.regions.select(order),
        people.epochs,
    )
    cells = people.trace(target)
    attack = _attack(kind)
    if kind is KnockKnock:
        attack = replace(attack, classifier=L1(tolerance=1e-8))
    here = visits_of_one(relabelled(cells), other.regions, people.epochs)
    one = attack.fit(releases[0].facts, people.select([target]), Auxiliary(reference), seed=2)
    two = attack.fit(moved[0].facts, here, Auxiliary(other), seed=2)
    for a, b in zip(releases, moved, strict=True):
        # Cells that agree in training can share a weight in any way: the optimum is no point.
        assert one.score(a).score == pytest.approx(two.score(b).score, rel=0.02, abs=0.02)


def test_past_groups_learn_from_releases_alone(people, target):
    releases, labels = _releases(people, target, "raw", n=120)
    past = _past(releases[:90], labels[:90])
    found = _auc(KnockKnockPastGroups(), releases[90:], labels[90:], PLACES, Auxiliary(past=past))
    assert found > 0.75


def test_friends_places_say_more_than_chance(city, people):
    """Friends share places, so a stand-in made of them meets the target's cells more often than
    one made of strangers."""
    graph = city.friends(seed=1)
    rng = np.random.default_rng(0)
    shared, strange = 0, 0
    for row in range(0, 400, 2):
        friends = graph.of(row)
        if friends.size == 0:
            continue
        own = people.trace(row) // people.epochs.n
        strangers = rng.choice(people.n_users, friends.size)
        for_friends, for_strangers = (
            np.isin(proxy_trace(people.select(rows)) // people.epochs.n, own).mean()
            for rows in (friends, strangers)
        )
        shared += for_friends
        strange += for_strangers
    assert shared > 1.2 * strange


def test_friendship_goes_both_ways(city):
    graph = city.friends(seed=1)
    assert all(i in graph.of(j) for i in range(50) for j in graph.of(i))
    again = city.friends(seed=1)
    assert np.array_equal(graph.indices, again.indices)


def test_the_log_likelihood_is_that_of_the_formula(people, target, reference):
    releases, _ = _releases(people, target, "raw", n=2)
    known = people.select([target])
    attack = LogLikelihood()
    fitted = attack.fit(releases[0].facts, known, Auxiliary(reference), seed=0)
    p = (releases[0].counts.ravel() + 0.5) / (M + 1)
    q = (reference.counts().ravel() + 0.5) / (reference.n_users + 1)
    x = np.zeros(p.size)
    x[known.cells] = 1
    expected = (x * np.log(p / q) + (1 - x) * np.log((1 - p) / (1 - q))).sum()
    assert fitted.score(releases[0]).score == pytest.approx(expected)


def test_what_does_not_apply_is_refused_before_any_work(people, target, reference):
    facts = Facts(people.regions, people.epochs, M, Mechanism())
    known = people.select([target])
    few, enough = reference.select(np.arange(10)), reference.select(np.arange(M))
    silent = Traces(("a", "b"), np.zeros(3, int), np.zeros(0), people.regions, people.epochs)
    elsewhere = Traces(
        reference.users,
        reference.indptr,
        reference.cells,
        Regions([f"x{i}" for i in range(16)]),
        reference.epochs,
    )
    for chosen, knowledge, auxiliary, message in [
        (KnockKnock(), known, Auxiliary(), "needs reference traces"),
        (KnockKnock(), known, Auxiliary(few), "at least 151 reference traces for groups of 150"),
        (LogLikelihood(), known, Auxiliary(enough), "the same"),
        (LocMia(), known, Auxiliary(enough, few), "the same"),
        (KnockKnock(), known, Auxiliary(elsewhere), "other regions or epochs"),
        (LocMia(), known, Auxiliary(reference), "needs traces of the target's friends"),
        (LocMia(), known, Auxiliary(friends=few), "needs reference traces"),
        (LocMia(), known, Auxiliary(reference, elsewhere), "other regions or epochs"),
        (LocMia(), known, Auxiliary(reference, few.select([])), "no friends with a visit"),
        (LocMia(), known, Auxiliary(reference, silent), "no friends with a visit"),
        (KnockKnockPastGroups(), known, Auxiliary(), "needs past releases"),
        (KnockKnockPastGroups(), known, Auxiliary(past=[]), "needs past releases"),
        (ZeroKnowledge(fit_on="per-target"), known, Auxiliary(), "needs a release like"),
        (ZeroKnowledge(), people.between(0, 5), Auxiliary(), "outside the release"),
        (ZeroKnowledge(), Places.of_one((99,)), Auxiliary(), "outside the release"),
    ]:
        with pytest.raises(NotApplicableError, match=message):
            chosen.check(facts, knowledge, auxiliary)


class _OfOneTable(Attack):
    name = "mine"

    def fit(self, facts, knowledge, auxiliary, *, seed):
        raise NotImplementedError


def test_one_table_is_attacked_as_always_and_several_by_those_who_can(people, target, reference):
    releases, _ = _releases(people, target, "suppress(k=1)", n=2)
    known, auxiliary = people.select([target]), Auxiliary(reference)
    view = View(releases[0].facts, known, auxiliary)
    for chosen in (LikelihoodRatio(), _attack(KnockKnock)):
        alone = chosen.fit(view.facts, known, auxiliary, seed=3).score(releases[1])
        assert chosen.fit_tables([view], seed=3).score_tables(releases[1:]) == alone
    own = _OfOneTable()
    for ask in (own.check_tables, partial(own.fit_tables, seed=3)):
        with pytest.raises(NotApplicableError, match="one table"):
            ask([view, view])


def test_zero_knowledge_works_without_positions(people, target):
    releases, _ = _releases(people, target, "suppress(k=1)", n=2)
    bare = [Release(r.counts, replace(r.facts, regions=Regions(r.regions.ids))) for r in releases]
    known = people.select([target])
    fitted = ZeroKnowledge(**SMALL).fit(bare[0].facts, known, Auxiliary(), seed=0)
    assert np.isfinite(fitted.score(bare[0]).score)


@pytest.mark.parametrize("guess", ["greedy", "random"])
@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge], ids=lambda k: k.name)
def test_places_alone_can_be_attacked_with(people, target, reference, kind, guess):
    releases, _ = _releases(people, target, "raw", n=2)
    known = Places.most_visited(people.select([target]), 2, guess)
    fitted = _attack(kind).fit(releases[0].facts, known, Auxiliary(reference), seed=0)
    assert np.isfinite(fitted.score(releases[0]).score)


@pytest.mark.parametrize(
    "spec",
    [
        "laplace(eps=5, unit=user-day, max_visits=3)",
        "laplace(eps=1, unit=user, max_visits=5) | suppress(k=2)",
        "gaussian(eps=1, unit=event)",
        "opensafely",
    ],
)
@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge], ids=lambda k: k.name)
def test_any_mechanism_can_be_attacked(people, target, reference, kind, spec):
    releases, _ = _releases(people, target, spec, n=2)
    known = people.select([target])
    fitted = _attack(kind).fit(releases[0].facts, known, Auxiliary(reference), seed=0)
    assert np.isfinite(fitted.score(releases[0]).score)


def test_an_all_zero_release_is_survived(people, target):
    empty = Release(
        np.zeros((16, 72), np.int32),
        Facts(people.regions, people.epochs, M, Mechanism.parse("flowkit")),
    )
    known = people.select([target])
    fitted = ZeroKnowledge(**SMALL).fit(empty.facts, known, Auxiliary(), seed=0)
    assert np.isfinite(fitted.score(empty).score)


def test_names_lead_to_attacks():
    for name, kind in ATTACKS.kinds.items():
        assert isinstance(Attack.parse(name), kind.make)
        assert kind.summary
    with pytest.raises(InputError, match="zero-knowledge"):
        Attack.parse("zero-knowlege")


def test_trained_attacks_can_be_given_a_classifier_and_sampling():
    given = Attack.parse("knock-knock(classifier=forest, sampling=independent)")
    assert given == KnockKnock(sampling="independent", classifier=Forest())
    assert given == KnockKnock(sampling="independent", classifier="forest")
    assert Attack.parse(given) is given
    for wrong in (
        "likelihood-ratio(classifier=forest)",
        "knock-knock(classifier=tree)",
        "knock-knock(sampling=pairs)",
    ):
        with pytest.raises(InputError):
            Attack.parse(wrong)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: KnockKnock(sampling="pairs"), "Did you mean 'paired'"),
        (lambda: KnockKnock(classifier="tree"), "no classifier 'tree'"),
        (lambda: KnockKnock(groups=3), "cannot be balanced"),
        (lambda: KnockKnock(groups=0), "groups must lie between 2"),
        (lambda: KnockKnock(groups="200"), "groups must be a whole number"),
        (lambda: KnockKnock(validation_groups=7), "cannot be balanced"),
        (lambda: LogLikelihood(validation_groups=7), "cannot be balanced"),
        (lambda: ZeroKnowledge(reference_size=0), "reference must lie between 2"),
        (lambda: ZeroKnowledge(marginals="papers"), "Did you mean 'paper'"),
        (lambda: ZeroKnowledge(fit_on="per-relase"), "Did you mean 'per-release'"),
        (lambda: ZeroKnowledge(activity="constent"), "Did you mean 'constant'"),
        (lambda: KnockKnockPastGroups(held_out=1.0), "held_out must be between 0 and 1"),
        (lambda: KnockKnockPastGroups(classifier="l2"), "no classifier 'l2'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


# What an attacker does with a bound on visits


BOUNDED = {
    "laplace(eps=1, unit=user-day, max_visits=2)": True,
    "laplace(eps=1, unit=user, max_visits=5)": False,
}


@pytest.mark.parametrize("spec", BOUNDED)
def test_groups_are_bounded_as_the_publisher_bounds(people, target, reference, rng, spec):
    """Of the target and of everybody else, exactly as many visits are left as the bound lets."""
    mechanism = Mechanism.parse(spec)
    facts = Facts(people.regions, people.epochs, M, mechanism)
    own = people.trace(target)
    sampler = sampler_over(reference, facts, visits_of_one(own, people.regions, people.epochs), rng)
    most = mechanism.units[0].most_visits
    period = people.epochs.days if BOUNDED[spec] else np.zeros(people.epochs.n, np.int32)

    def visits(cells):
        return np.bincount(period[cells % people.epochs.n], minlength=period.max() + 1)

    assert visits(own).max() > most
    assert np.isin(sampler.target, own).all()
    assert np.array_equal(visits(sampler.target), np.minimum(visits(own), most))
    before, after = (traces.visits_per_period(period) for traces in (reference, sampler.reference))
    assert before.max() > most
    assert np.array_equal(after, np.minimum(before, most))


def test_what_is_believed_of_a_target_is_bounded_too(people, reference, rng):
    """A greedy guess is in every epoch, and the publisher would count two visits of each day."""
    mechanism = Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=2)")
    facts = Facts(people.regions, people.epochs, M, mechanism)
    sampler = sampler_over(reference, facts, Places.of_one((3, 5)), rng)
    assert sampler.target.size == 2 * people.epochs.n_days
    assert set(sampler.target // people.epochs.n) <= {3, 5}


def test_without_a_bound_nobody_loses_a_visit(people, target, reference, rng):
    facts = Facts(people.regions, people.epochs, M, Mechanism.parse("laplace(eps=1)"))
    sampler = sampler_over(reference, facts, people.select([target]), rng)
    assert np.array_equal(sampler.target, people.trace(target))
    assert np.array_equal(sampler.reference.cells, reference.cells)


TIGHT = "discrete-laplace(eps=2000, unit=user-day, max_visits=1)"


def _publications(people, target, spec, n=40):
    """Publish groups with the target, of whom a bound may drop visits."""
    rng = np.random.default_rng(5)
    mechanism = Mechanism.parse(spec)
    pool = np.setdiff1d(np.arange(350, people.n_users), target)
    for _ in range(n):
        rows = np.append(rng.choice(pool, M - 1, replace=False), target)
        counts = mechanism.bound(people.select(rows), rng).counts()
        published = mechanism.apply(counts, M, rng)
        yield Release(published, Facts(people.regions, people.epochs, M, mechanism))


@pytest.mark.parametrize("share", [0.1, 1.0])
@pytest.mark.parametrize("kind", [KnockKnock, LogLikelihood, LikelihoodRatio])
def test_nobody_is_ruled_out_by_a_visit_that_was_dropped(people, target, reference, kind, share):
    """Noise that never hides a count of 1, and one visit counted of each day: the others have
    been dropped, whether or not the attacker knows of them."""
    known = Share(share).of(people.select([target]), np.random.default_rng(0))
    for i, release in enumerate(_publications(people, target, TIGHT, n=10)):
        if i == 0:
            fitted = _attack(kind).fit(release.facts, known, Auxiliary(reference), seed=0)
        answer = fitted.score(release)
        assert answer.score != RULED_OUT
        assert np.isfinite([answer.score, answer.calibrated]).all()


def test_the_rule_is_refused_where_visits_may_be_dropped(people, target):
    """Even for somebody with a single known visit: others, not known, may have displaced it."""
    one = visits_of_one(people.trace(target)[:1], people.regions, people.epochs)
    for spec, is_sound in (
        (TIGHT, False),
        ("discrete-laplace(eps=1e6, unit=user, max_visits=50)", False),
        # Nobody can make more visits than there are cells in a day: 16 regions, 24 hours.
        (f"discrete-laplace(eps=1e6, unit=user-day, max_visits={16 * 24 - 1})", False),
        (f"discrete-laplace(eps=1e6, unit=user-day, max_visits={16 * 24})", True),
        ("discrete-laplace(eps=2000, unit=event)", True),
    ):
        facts = Facts(people.regions, people.epochs, M, Mechanism.parse(spec))
        if is_sound:
            ContradictionRule().check(facts, one, Auxiliary())
        else:
            with pytest.raises(NotApplicableError, match="drop no visits"):
                ContradictionRule().check(facts, one, Auxiliary())


# Scores of different targets


@pytest.mark.parametrize("attack", EVERY_ATTACK, ids=str)
def test_every_answer_is_calibrated(people, target, reference, attack):
    """Finite, and in the order of the scores where one fit answers for all releases."""
    releases, labels = _releases(people, target, "raw", n=24)
    parts = reference, people.select([1, 2, 3]), _past(releases, labels), releases[5]
    auxiliary = Auxiliary(*parts, everybody=reference)
    fitted = attack.fit(releases[0].facts, people.select([target]), auxiliary, seed=4)
    for release in releases[:4]:
        answer = fitted.score(release)
        assert np.isfinite(answer.calibrated)
        assert (answer.calibrated == RULED_OUT) == (answer.score == RULED_OUT)


@pytest.mark.parametrize("kind", [KnockKnock, LogLikelihood], ids=lambda k: k.name)
def test_targets_are_alike_where_they_are_out(people, reference, kind):
    """Deviations of OUT scores differ between targets; those of calibrated ones are all about 1.

    100 releases and 50 groups: a deviation is off by a quarter in fewer than 1 of 20 cases, by
    a factor of 1.8 in fewer than 1e-4 (F distribution)."""
    by_visits = np.argsort(people.visits_per_user(), kind="stable")
    chosen = [int(by_visits[-n]) for n in (600, 200, 40, 8)]
    releases, _ = _releases(people, chosen, "laplace(eps=1, unit=event)", n=200)
    releases = releases[1::2]
    deviations = []
    for row in chosen:
        others = reference.select(np.flatnonzero(np.array(reference.users) != people.users[row]))
        known = people.select([row])
        attack = _attack(kind, validation_groups=100) if kind is LogLikelihood else kind()
        fitted = attack.fit(releases[0].facts, known, Auxiliary(others), seed=0)
        answers = [fitted.score(release) for release in releases]
        deviations.append(
            [np.std([a.score for a in answers]), np.std([a.calibrated for a in answers])]
        )
    scores, calibrated = np.array(deviations).T
    assert scores.max() > 1.5 * scores.min()
    assert (calibrated > 1 / 1.8).all()
    assert (calibrated < 1.8).all()


def test_what_is_expected_of_scores_is_never_without_spread():
    labels = np.array([False, False, False, True, True, True])
    for scores, mean, deviation in (
        ([1.0, 2.0, 3.0, 5.0, 6.0, 7.0], 2.0, 1.0),
        ([2.0, 2.0, 2.0, 5.0, 6.0, 7.0], 2.0, np.sqrt(0.5 / 3)),
        ([2.0, 2.0, 2.0, 5.0, 5.0, 5.0], 2.0, 1.5),
        ([2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 2.0, 1.0),
        ([2.0, 2.0, 2.0, 2.0, 2.0, 2.0 + 1e-15], 2.0, 1.0),
    ):
        null = Tuning.of(np.array(scores), labels)
        assert (null.mean, null.deviation) == (mean, pytest.approx(deviation))
    one_of_each = Tuning.of(np.array([1.0, 4.0]), np.array([False, True]))
    assert (one_of_each.mean, one_of_each.deviation) == (1.0, 1.5)


def test_an_answer_claims_no_chance_by_itself():
    answer = Answer(1.5, 1.0)
    assert answer.posterior(0.3) is answer.p_value is None


def test_an_answer_without_calibration_is_measured_from_its_threshold():
    assert Answer(3.0, 1.0).calibrated == 2.0
    assert Answer(3.0, 1.0, 5.0).calibrated == 5.0
    assert Answer(RULED_OUT, -0.5).calibrated == RULED_OUT
    assert Answer(3.0, 1.0) == Answer(3.0, 1.0)


# References that are too small


@pytest.mark.parametrize("kind", [KnockKnock, LocMia, LogLikelihood], ids=lambda k: k.name)
def test_a_small_reference_is_said_to_weaken(people, reference, kind):
    facts = Facts(people.regions, people.epochs, M, Mechanism())
    (said,) = kind().cautions(facts, Auxiliary(reference.select(np.arange(2 * M - 1))))
    assert said.startswith(f"{kind.name} has a reference of 299 people for groups of 150: ")
    assert said.endswith("Give at least 300.")
    assert kind().cautions(facts, Auxiliary(reference.select(np.arange(2 * M)))) == []


def test_attacks_that_make_no_groups_of_the_reference_have_no_caution(people, reference):
    facts = Facts(people.regions, people.epochs, M, Mechanism())
    few = Auxiliary(reference.select(np.arange(M)))
    for one in EVERY_ATTACK:
        if not one.groups_from_reference:
            assert one.cautions(facts, few) == []


@pytest.mark.parametrize(("m", "made_up"), [(150, 5000), (1000, 5000), (1001, 5005), (6000, 30000)])
def test_enough_people_are_made_up_for_groups_that_differ(people, rng, m, made_up):
    counts = people.counts(np.arange(150))
    release = Release(counts, Facts(people.regions, people.epochs, m, Mechanism()))
    assert ZeroKnowledge().synthetic_reference(release, rng).n_users == made_up


# Zero knowledge and its parameters


class _Unplaced(Regions):
    """Regions whose positions are there, and must not be looked at."""

    @property
    def neighbours(self):
        raise AssertionError("an attack looked at the regions' positions")

    degrees = neighbours


def test_positions_are_used_only_where_they_may_be(people, target):
    releases, _ = _releases(people, target, "suppress(k=1)", n=1)
    known = people.select([target])

    def score(regions, **chosen):
        release = Release(releases[0].counts, replace(releases[0].facts, regions=regions))
        fitted = ZeroKnowledge(**SMALL, **chosen).fit(release.facts, known, Auxiliary(), seed=3)
        return fitted.score(release).score

    whole = people.regions
    hidden, bare = _Unplaced(whole.ids, whole.lon, whole.lat), Regions(whole.ids)
    without = score(hidden, positions=False)
    assert score(bare, positions=False) == without
    assert score(whole, positions=False) == without
    with pytest.raises(AssertionError, match="positions"):
        score(hidden, positions=True)
    assert score(bare, positions=True) == without
    assert score(whole, positions=True) != without


@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge])
def test_thresholds_share_a_classifier(people, target, reference, kind, monkeypatch):
    """Both rules have the same scores, and learn once for each release or target."""
    releases, _ = _releases(people, target, "suppress(k=1)", n=1)
    known = people.select([target])
    auxiliary = Auxiliary(reference)
    learned, learn = [], kind.learn
    monkeypatch.setattr(kind, "learn", lambda *given: learned.append(1) or learn(*given))
    answers = {}
    assert kind().threshold == "roc"
    for rule in ("middle", "roc"):
        one = kind(**SMALL, threshold=rule)
        assert ("threshold=middle" in str(one)) == (rule == "middle")
        fitted = one.fit(releases[0].facts, known, auxiliary, seed=3)
        answers[rule] = fitted.score(releases[0])
    assert answers["middle"].score == answers["roc"].score
    assert answers["middle"].calibrated == answers["roc"].calibrated
    assert answers["middle"].threshold != answers["roc"].threshold
    assert len(learned) == 1
    # Somebody of whom other visits are known needs another classifier.
    other = visits_of_one(people.trace(target)[:3], people.regions, people.epochs)
    kind(**SMALL).fit(releases[0].facts, other, auxiliary, seed=3).score(releases[0])
    assert len(learned) == 2


@pytest.mark.parametrize("changed", [{"marginals": "mechanism"}, {"marginals": "empirical"},
                                     {"activity": "lognormal:1.2"}, {"activity": "constant"},
                                     {"reference_size": 300}, {"sampling": "independent"},
                                     {"classifier": "l1-paper"}], ids=str)  # fmt: skip
def test_every_parameter_makes_a_difference(people, target, changed):
    releases, _ = _releases(people, target, "suppress(k=1)", n=1)
    known = people.select([target])
    usual, other = (
        ZeroKnowledge(**SMALL, **given).fit(releases[0].facts, known, Auxiliary(), seed=3)
        for given in ({}, changed)
    )
    assert usual.score(releases[0]) != other.score(releases[0])


def test_fit_per_target_trains_once_on_the_example(people, target):
    releases, _ = _releases(people, target, "suppress(k=1)", n=4)
    facts, known = releases[0].facts, people.select([target])
    each = ZeroKnowledge(**SMALL).fit(facts, known, Auxiliary(), seed=5)
    once = ZeroKnowledge(**SMALL, fit_on="per-target").fit(
        facts, known, Auxiliary(example=releases[1]), seed=5
    )
    assert isinstance(each, OnEachRelease)
    on_example = each.trained_on([releases[1]])
    for release in releases:
        assert once.score(release) == on_example.score(release)
    assert once.score(releases[1]) == each.score(releases[1])
    assert once.score(releases[2]) != each.score(releases[2])
    other = replace(facts, group_size=M + 1)
    with pytest.raises(InputError, match="other regions, epochs, group size or mechanism"):
        ZeroKnowledge(**SMALL, fit_on="per-target").fit(
            other, known, Auxiliary(example=releases[1]), seed=5
        )


def test_an_example_with_the_target_is_another_example(people, target):
    releases, _ = _releases(people, target, "suppress(k=1)", n=4)
    facts, known = releases[0].facts, people.select([target])
    attack = ZeroKnowledge(**SMALL, fit_on="per-target-in")
    assert attack.uses == {"example_in"}
    with pytest.raises(NotApplicableError, match="known to hold the target"):
        attack.check(facts, known, Auxiliary(example=releases[1]))
    fitted = attack.fit(facts, known, Auxiliary(example_in=releases[0]), seed=5)
    usual = replace(attack, fit_on="per-target").fit(
        facts, known, Auxiliary(example=releases[0]), seed=5
    )
    assert fitted.score(releases[3]) == usual.score(releases[3])


def test_as_many_people_are_made_up_as_were_asked_for(people, target):
    (release, *_), _ = _releases(people, target, "suppress(k=1)", n=2)
    for given, made in ((None, 5_000), (M + 1, M + 1), (700, 700)):
        attack = ZeroKnowledge(reference_size=given)
        rng = np.random.default_rng(0)
        assert attack.synthetic_reference(release, rng).n_users == made
    large = replace(release.facts, group_size=1_200)
    assert ZeroKnowledge()._people(1_200) == 6_000
    assert not ZeroKnowledge().cautions(large, Auxiliary())
    (said,) = ZeroKnowledge(reference_size=2_000).cautions(large, Auxiliary())
    assert "at least 2,400" in said
    known = people.select([target])
    with pytest.raises(NotApplicableError, match=r"at least 1201 synthetic traces .* not 1200"):
        ZeroKnowledge(reference_size=1_200).check(large, known, Auxiliary())


@pytest.mark.parametrize("fit_on", ["per-release", "per-target"])
@pytest.mark.parametrize("rule", [True, False])
def test_the_rule_goes_first_if_it_may(people, target, fit_on, rule):
    """Of a release without anybody the rule is certain, and a classifier is not."""
    releases, _ = _releases(people, target, "raw", n=2)
    known = people.select([target])
    fitted = ZeroKnowledge(**SMALL, rule=rule, fit_on=fit_on).fit(
        releases[0].facts, known, Auxiliary(example=releases[0]), seed=0
    )
    empty = Release(np.zeros_like(releases[0].counts), releases[0].facts)
    assert fitted.score(empty).is_certain == rule


# Friends and the past


def test_a_stand_in_is_where_most_friends_were(people):
    """Cells that more friends visited come first; as many as a friend visits on average."""
    n = people.epochs.n
    traces = [[3, 7, n + 1], [3, 7, 2 * n], [3, 5 * n, 5 * n + 1]]
    friends = Traces(
        ("a", "b", "c"), np.array([0, 3, 6, 9]), np.concatenate(traces), people.regions,
        people.epochs,
    )  # fmt: skip
    proxy = proxy_trace(friends)
    assert proxy.size == 3
    assert {3, 7} < set(proxy.tolist())
    # Of cells that one friend visited, those where and when friends are most.
    assert proxy.tolist() == [3, 7, 5 * n]


def test_loc_mia_knows_the_friends_and_nothing_of_the_target(people, target, reference):
    """What is given of the target changes nothing; other friends change the score."""
    releases, _ = _releases(people, target, "suppress(k=1)", n=1)
    fit = _attack(LocMia).fit
    some, others = people.select([11, 12, 13]), people.select([21, 22])
    facts, known = releases[0].facts, people.select([target])
    scores = [
        fit(facts, knowledge, Auxiliary(reference, friends), seed=2).score(releases[0])
        for knowledge, friends in ((PLACES, some), (known, some), (PLACES, others))
    ]
    assert scores[0] == scores[1]
    assert scores[0] != scores[2]


def test_friends_as_close_as_the_target_find_the_target(people, target, reference):
    """A friend who is always there is as good as the target; 15 and 15 releases as above."""
    releases, labels = _releases(people, target, "raw")
    auxiliary = Auxiliary(reference, people.select([target]))
    assert _auc(_attack(LocMia), releases, labels, PLACES, auxiliary) >= 0.95


def test_the_past_may_lie_at_another_time_but_not_be_made_otherwise(people, target):
    releases, labels = _releases(people, target, "suppress(k=1)", n=20)
    earlier = replace(people.epochs, start=people.epochs.start - timedelta(days=7))
    facts = releases[0].facts

    def past(**changed):
        alike = [Release(r.counts, replace(r.facts, **changed)) for r in releases]
        return Auxiliary(past=_past(alike, labels))

    now, before = (
        KnockKnockPastGroups().fit(facts, PLACES, auxiliary, seed=1).score(releases[0])
        for auxiliary in (past(), past(epochs=earlier))
    )
    assert now == before
    for changed in (
        {"group_size": M + 1},
        {"mechanism": Mechanism.parse("suppress(k=2)")},
        {"epochs": replace(people.epochs, length=timedelta(minutes=30))},
        {"regions": Regions([f"x{i}" for i in range(16)])},
    ):
        with pytest.raises(NotApplicableError, match="made in the same way"):
            KnockKnockPastGroups().check(facts, PLACES, past(**changed))
    only_in = Auxiliary(past=_past(releases, np.ones(20, bool)))
    with pytest.raises(NotApplicableError, match="20 and 0"):
        KnockKnockPastGroups().check(facts, PLACES, only_in)
