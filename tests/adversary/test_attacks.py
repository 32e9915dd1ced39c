"""The attacks: what they may see, what they refuse, what they find."""

from dataclasses import replace

import numpy as np
import pytest

from whosthere.adversary.attacks import (
    ATTACKS,
    RULED_OUT,
    Auxiliary,
    ContradictionRule,
    Facts,
    KnockKnock,
    Labelled,
    LocMia,
    LogLikelihood,
    NotApplicableError,
    PastGroups,
    Training,
    ZeroKnowledge,
    attack_named,
)
from whosthere.adversary.attacks.loc_mia import proxy_trace
from whosthere.adversary.classifiers import ExactL1, Forest
from whosthere.adversary.knowledge import KnownRegions, KnownVisits
from whosthere.data.cities import simulate
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release import Release

M = 150
SMALL = Training(groups=100, validation_groups=40)


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
    return [Labelled(r, bool(inside)) for r, inside in zip(releases, labels, strict=True)]


def _auc(attack, releases, labels, knowledge, auxiliary):
    fitted = attack.fit(releases[0].facts, knowledge, auxiliary, seed=1)
    scores = np.array([fitted.score(release).score for release in releases])
    difference = scores[labels][:, None] - scores[~labels]
    return (difference > 0).mean() + (difference == 0).mean() / 2


def _attack(kind, training=SMALL):
    return kind(training=training) if kind in {KnockKnock, ZeroKnowledge, LocMia} else kind()


@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge], ids=lambda k: k.name)
@pytest.mark.parametrize(
    ("spec", "least"),
    [("raw", 0.95), ("suppress(k=1)", 0.75), ("laplace(eps=2, unit=event)", 0.75)],
)
def test_trained_attacks_find_an_active_person(people, target, reference, kind, spec, least):
    """Chance alone reaches 0.75 with 15 and 15 releases in fewer than 1 of 100 runs."""
    releases, labels = _releases(people, target, spec)
    known = KnownVisits(people.trace(target))
    assert _auc(_attack(kind), releases, labels, known, Auxiliary(reference)) >= least


def test_strong_noise_leaves_nothing(people, target, reference):
    """Noise of scale 1000 drowns everything: AUC near 1/2 (within 4 standard errors)."""
    releases, labels = _releases(people, target, "laplace(eps=0.001, unit=event)", n=60)
    known = KnownVisits(people.trace(target))
    found = _auc(KnockKnock(SMALL), releases, labels, known, Auxiliary(reference))
    assert abs(found - 0.5) < 4 * 0.075


def test_the_rule_never_rules_out_a_member(people, target):
    releases, labels = _releases(people, target, "raw", n=60)
    known = KnownVisits(people.trace(target))
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
    known = KnownVisits(people.trace(target))
    with pytest.raises(NotApplicableError, match="only sound"):
        ContradictionRule().check(facts, known, Auxiliary())


def test_the_rule_is_refused_for_places_without_times(people):
    facts = Facts(people.regions, people.epochs, M, Mechanism())
    with pytest.raises(NotApplicableError, match="only sound"):
        ContradictionRule().check(facts, KnownRegions((1,)), Auxiliary())


class _Forbidden:
    """Stands for auxiliary data that must not be touched."""

    def __getattr__(self, name):
        raise AssertionError(f"an attack read {name} of data that it may not see")

    def __len__(self):
        raise AssertionError("an attack measured data that it may not see")


@pytest.mark.parametrize("kind", ATTACKS.values(), ids=list(ATTACKS))
def test_no_attack_touches_what_it_does_not_declare(people, target, reference, kind):
    releases, labels = _releases(people, target, "raw", n=20)
    past = _past(releases, labels)
    allowed = {"reference": reference, "friends": (1, 2, 3), "past": past}
    given = {k: v if k in kind.uses else _Forbidden() for k, v in allowed.items()}
    known = KnownVisits(people.trace(target))
    fitted = _attack(kind).fit(releases[0].facts, known, Auxiliary(**given), seed=0)
    assert np.isfinite(fitted.score(releases[0]).score)


def test_only_the_named_attacks_read_real_traces():
    readers = {name for name, kind in ATTACKS.items() if "reference" in kind.uses}
    assert readers == {
        "knock-knock",
        "likelihood-ratio-reference",
        "loc-mia",
        "log-likelihood",
    }


@pytest.mark.parametrize("kind", ATTACKS.values(), ids=list(ATTACKS))
def test_answers_depend_on_seed_and_release_alone(people, target, reference, kind):
    releases, labels = _releases(people, target, "raw", n=20)
    past = _past(releases, labels)
    auxiliary = Auxiliary(reference, (1, 2, 3), past)
    known = KnownVisits(people.trace(target))
    facts = releases[0].facts
    forwards = _attack(kind).fit(facts, known, auxiliary, seed=4)
    backwards = _attack(kind).fit(facts, known, auxiliary, seed=4)
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
    exact = replace(SMALL, classifier=ExactL1(tolerance=1e-8))
    attack = _attack(kind, exact)
    one = attack.fit(releases[0].facts, KnownVisits(cells), Auxiliary(reference), seed=2)
    two = attack.fit(moved[0].facts, KnownVisits(relabelled(cells)), Auxiliary(other), seed=2)
    for a, b in zip(releases, moved, strict=True):
        # Cells that agree in training can share a weight in any way: the optimum is no point.
        assert one.score(a).score == pytest.approx(two.score(b).score, rel=0.02, abs=0.02)


def test_past_groups_learn_from_releases_alone(people, target):
    releases, labels = _releases(people, target, "raw", n=120)
    past = _past(releases[:90], labels[:90])
    found = _auc(PastGroups(), releases[90:], labels[90:], None, Auxiliary(past=past))
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
        shared += np.isin(proxy_trace(people, tuple(friends)) // people.epochs.n, own).mean()
        strange += np.isin(proxy_trace(people, tuple(strangers)) // people.epochs.n, own).mean()
    assert shared > 1.2 * strange


def test_friendship_goes_both_ways(city):
    graph = city.friends(seed=1)
    assert all(i in graph.of(j) for i in range(50) for j in graph.of(i))
    again = city.friends(seed=1)
    assert np.array_equal(graph.indices, again.indices)


def test_the_log_likelihood_is_that_of_the_formula(people, target, reference):
    releases, _ = _releases(people, target, "raw", n=2)
    known = KnownVisits(people.trace(target))
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
    known = KnownVisits(people.trace(target))
    few = reference.select(np.arange(10))
    elsewhere = Traces(
        reference.users,
        reference.indptr,
        reference.cells,
        Regions([f"x{i}" for i in range(16)]),
        reference.epochs,
    )
    for attack, knowledge, auxiliary, message in [
        (KnockKnock(), known, Auxiliary(), "needs reference traces"),
        (KnockKnock(), known, Auxiliary(few), "at least 150 reference traces"),
        (KnockKnock(), known, Auxiliary(elsewhere), "other regions or epochs"),
        (KnockKnock(), None, Auxiliary(reference), "know something of the target"),
        (LocMia(), None, Auxiliary(reference), "friends"),
        (LocMia(), None, Auxiliary(reference, (100_000,)), "not in the reference"),
        (PastGroups(), None, Auxiliary(), "past releases"),
        (ZeroKnowledge(), None, Auxiliary(), "know something of the target"),
        (ZeroKnowledge(), KnownVisits(np.array([10**8])), Auxiliary(), "outside the release"),
        (ZeroKnowledge(), KnownRegions((99,)), Auxiliary(), "outside the release"),
    ]:
        with pytest.raises(NotApplicableError, match=message):
            attack.check(facts, knowledge, auxiliary)


def test_zero_knowledge_works_without_positions(people, target):
    releases, _ = _releases(people, target, "suppress(k=1)", n=2)
    bare = [Release(r.counts, replace(r.facts, regions=Regions(r.regions.ids))) for r in releases]
    known = KnownVisits(people.trace(target))
    fitted = ZeroKnowledge(SMALL).fit(bare[0].facts, known, Auxiliary(), seed=0)
    assert np.isfinite(fitted.score(bare[0]).score)


@pytest.mark.parametrize("guess", ["greedy", "random"])
@pytest.mark.parametrize("kind", [KnockKnock, ZeroKnowledge], ids=lambda k: k.name)
def test_places_alone_can_be_attacked_with(people, target, reference, kind, guess):
    releases, _ = _releases(people, target, "raw", n=2)
    known = KnownRegions.most_visited(people.trace(target), people.epochs.n, top=2, guess=guess)
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
    known = KnownVisits(people.trace(target))
    fitted = _attack(kind).fit(releases[0].facts, known, Auxiliary(reference), seed=0)
    assert np.isfinite(fitted.score(releases[0]).score)


def test_an_all_zero_release_is_survived(people, target):
    empty = Release(
        np.zeros((16, 72), np.int32),
        Facts(people.regions, people.epochs, M, Mechanism.parse("flowkit")),
    )
    known = KnownVisits(people.trace(target))
    fitted = ZeroKnowledge(SMALL).fit(empty.facts, known, Auxiliary(), seed=0)
    assert np.isfinite(fitted.score(empty).score)


def test_names_lead_to_attacks():
    for name, kind in ATTACKS.items():
        assert isinstance(attack_named(name), kind)
        assert kind.summary
    with pytest.raises(InputError, match="zero-knowledge"):
        attack_named("zero-knowlege")


def test_trained_attacks_can_be_given_a_classifier_and_sampling():
    attack = attack_named("knock-knock", classifier="forest", sampling="independent")
    assert attack.training == Training(sampling="independent", classifier=Forest())
    for wrong in (
        {"name": "likelihood-ratio", "classifier": "forest"},
        {"name": "knock-knock", "classifier": "tree"},
        {"name": "knock-knock", "sampling": "pairs"},
    ):
        with pytest.raises(InputError):
            attack_named(**wrong)
