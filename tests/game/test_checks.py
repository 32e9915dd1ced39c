"""Checks of an audit's own releases: sound ones pass, and planted faults are seen."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

import whosthere as wt
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.traces import Group
from whosthere.game import checks, scoring
from whosthere.game.checks import MOMENTS, ROLES, Checks, fingerprints, places
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.game.target import TargetRounds
from whosthere.inference.control import FALSE_ALARMS, impossible_values, law_control
from whosthere.inference.measure import control_holds, measure
from whosthere.inference.vocabulary import FAULTS, LAW_CONTROL
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.noise import Gaussian, Laplace
from whosthere.privacy.publish import Publication
from whosthere.privacy.rounding import Round, Suppress

USER_DAY = "laplace(eps=5, unit=user-day, max_visits=2)"
SPECS = (
    "raw",
    "suppress(k=5)",
    "round(to=5)",
    "random-round(to=3)",
    "laplace(eps=0.5, unit=event)",
    "gaussian(eps=1, delta=1e-6, unit=event)",
    "laplace(eps=1, unit=event) | suppress(k=1)",
    "suppress(k=1) | discrete-laplace(eps=1, unit=event)",
    USER_DAY,
)
MARKING = ("suppress(k=3, shown=mark)", "laplace(eps=1) | suppress(k=2, shown=mark, zeros=mark)")
M = 40


@pytest.mark.parametrize("spec", [*SPECS, *MARKING, "laplace(eps=30, unit=event)"])
def test_places_are_even_under_the_law(spec):
    mechanism = Mechanism.parse(spec)
    alphabet = mechanism.alphabet(M)
    symbols = np.arange(alphabet.size)
    for true in (0, 1, 3, 17, M):
        where, impossible = places(mechanism, np.full(symbols.size, true), symbols, M)
        chances = mechanism.pmf(alphabet.values(symbols), np.array(true), M)
        assert np.array_equal(impossible, chances < 1e-26)
        assert (np.abs(where) <= 1).all()
        assert chances @ where == pytest.approx(np.zeros(len(MOMENTS)), abs=1e-5)


def test_places_of_the_first_two_polynomials():
    """By hand: two values with chances 1/4 and 3/4, at -1 to -1/2 and at -1/2 to 1."""
    chances = np.array([[0.25, 0.75]])
    edges = np.array([-1.0, -0.5, 1.0])
    mean = (edges[:-1] + edges[1:]) / 2
    square = (edges[1:] ** 3 - edges[:-1] ** 3) / np.diff(edges) / 3
    # A count of 1 rounded at random to a multiple of 4 goes up with this chance.
    where, _ = places(Mechanism.parse("random-round(to=4)"), np.full(2, 3), np.array([0, 4]), 8)
    assert chances @ where == pytest.approx(np.zeros((1, 4)), abs=1e-5)
    assert where[:, 0] == pytest.approx(mean, abs=1e-5)
    assert where[:, 1] == pytest.approx((3 * square - 1) / 2, abs=1e-5)


def sums_of(mechanism, true, published):
    """Return the sums of values that are all of one role, shape (..., n_sums)."""
    where, impossible = places(mechanism, true.ravel(), published.ravel().astype(np.int64), M)
    seen = np.column_stack([np.ones(true.size), impossible, where, where**2])
    own = seen.reshape(*true.shape, -1).sum(axis=-2)
    return np.concatenate([own, *[np.zeros_like(own)] * (len(ROLES) - 1)], axis=-1)


class TestLaw:
    N_AUDITS = 2000
    # More alarms than that have a chance of 1e-4 where each audit has one of FALSE_ALARMS.
    MOST = int(binom.isf(1e-4, N_AUDITS, FALSE_ALARMS))

    # With noise that is hardly ever seen, a normal interval would raise false alarms.
    @pytest.mark.parametrize(
        "spec", ["laplace(eps=1)", "gaussian(eps=3)", "laplace(eps=12)", "random-round(to=20)"]
    )
    @pytest.mark.parametrize("n_values", [1, 30, 400])
    def test_false_alarms(self, spec, n_values):
        mechanism, rng = Mechanism.parse(spec), np.random.default_rng(5)
        true = rng.poisson(2, (self.N_AUDITS, n_values))
        audits = sums_of(mechanism, true, mechanism.apply(true, M, rng))
        estimates = [law_control(sums) for sums in audits]
        alarms = sum(not one.low <= 0 <= one.high for one in estimates)
        assert alarms <= self.MOST

    def test_all_controls_together_share_the_false_alarms(self, rng):
        mechanism, true = Mechanism.parse("laplace(eps=1)"), rng.poisson(2, 5000)
        sums = sums_of(mechanism, true, mechanism.apply(true, M, rng))
        one, many = (law_control(sums, n_controls=n) for n in (1, 30))
        assert many.value == one.value
        assert one.high - one.value < many.high - many.value < 2 * (one.high - one.value)

    @pytest.mark.parametrize(
        ("used", "moment"),
        [("laplace(eps=0.8)", "spread"), ("laplace(eps=2)", "spread"), ("raw", "spread")],
    )
    def test_another_scale_is_seen(self, rng, used, moment):
        claimed, true = Mechanism.parse("laplace(eps=1)"), rng.poisson(4, 30_000)
        published = Mechanism.parse(used).apply(true, M, rng)
        estimate = law_control(sums_of(claimed, true, published))
        assert not estimate.low <= 0 <= estimate.high
        assert moment in estimate.note

    def test_a_shift_of_few_values_is_seen_where_it_is_looked_for(self, rng):
        mechanism, true = Mechanism.parse("laplace(eps=1)"), rng.poisson(2, 20_000)
        published = mechanism.apply(true, M, rng)
        of_target = slice(0, 400)
        published[of_target] = mechanism.apply(np.maximum(true[of_target] - 1, 0), M, rng)
        own = sums_of(mechanism, true[of_target], published[of_target]).reshape(len(ROLES), -1)[0]
        everywhere = sums_of(mechanism, true, published).reshape(len(ROLES), -1)
        assert law_control(everywhere).low <= 0 <= law_control(everywhere).high
        everywhere[1] = own
        estimate = law_control(everywhere)
        assert estimate.high < 0
        assert "IN releases" in estimate.note

    def test_impossible_values_are_counted(self):
        mechanism, true = Mechanism.parse("suppress(k=3)"), np.array([0, 2, 3, 4, 9])
        assert impossible_values(sums_of(mechanism, true, np.array([0, 0, 0, 4, 9]))) == 0
        assert impossible_values(sums_of(mechanism, true, np.array([0, 2, 3, 4, 9]))) == 2


class TestFingerprints:
    def test_are_those_of_the_noise(self, rng):
        mechanism = Mechanism.parse("random-round(to=3)")
        one, other = (mechanism.draw((10, 24), rng) for _ in range(2))
        again = tuple(np.array(draw) for draw in one)
        assert fingerprints(one).size > 10
        assert np.array_equal(fingerprints(one), fingerprints(again))
        assert not np.isin(fingerprints(one), fingerprints(other)).any()
        again[0][3, 5] += 1
        assert np.count_nonzero(fingerprints(one) != fingerprints(again)) == 1

    @pytest.mark.parametrize("spec", ["laplace(eps=1)", "discrete-laplace(eps=0.1)"])
    def test_the_least_is_often_shared_where_a_part_of_the_noise_is(self, rng, spec):
        mechanism, n = Mechanism.parse(spec), 200
        shared = 0
        for _ in range(n):
            ((one,), (other,)) = (mechanism.draw((50, 24), rng) for _ in range(2))
            other[:25] = one[:25]
            shared += fingerprints((one,)).min() == fingerprints((other,)).min()
        # One in three; fewer than this have a chance of 1e-6.
        assert shared >= binom.ppf(1e-6, n, 1 / 3)

    def test_noise_that_chance_repeats_has_none(self, rng):
        assert not fingerprints(()).size
        assert not fingerprints(Mechanism.parse("laplace(eps=1)").draw((3, 2), rng)).size
        rare = Mechanism.parse("discrete-laplace(eps=30)")
        assert not fingerprints(rare.draw((10, 24), rng)).size


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=7, users=400, days=2, regions=25).traces()


@pytest.fixture(scope="module")
def attack(full):
    """Checks are of releases, whatever attacks them: the attack that takes least."""
    return "likelihood-ratio" if full else "log-likelihood"


def plan_of(city, mechanism, attack):
    options = {"attacks": attack, "targets": 4, "releases": 20, "seed": 3}
    return make_plan(AuditOptions.of(mechanisms=mechanism, group_size=M, **options), city)


def audited(city, mechanism, attack):
    """Return whether an audit trusts itself, and what its checks found."""
    plan, people = plan_of(city, mechanism, attack), Population.of(city)
    done = {task: score_task(people, plan, task).targets for task in plan.tasks}
    findings = measure(*scoring.tests_and_controls(plan, done), seed=plan.seed)
    found = {one.metric: one for one in findings if one.metric in {FAULTS, LAW_CONTROL}}
    return control_holds(findings), found[FAULTS], found[LAW_CONTROL]


@pytest.mark.parametrize("spec", [*SPECS, *MARKING])
def test_sound_audits_pass(city, spec, attack):
    """All of them together fail by chance in 9 of 100 seeds."""
    trusted, faults, law = audited(city, spec, attack)
    assert trusted is True
    assert faults.estimate == 0
    assert law.low <= 0 <= law.high


def weaker_suppression(monkeypatch):
    publish = Suppress.publish
    monkeypatch.setattr(
        Suppress,
        "publish",
        lambda self, *given: publish(replace(self, k=self.k - 2), *given),
    )


def finer_rounding(monkeypatch):
    publish = Round.publish
    monkeypatch.setattr(Round, "publish", lambda self, *given: publish(Round(self.to - 1), *given))


def noise_by(step, factor):
    def plant(monkeypatch):
        draw = step.draw
        monkeypatch.setattr(
            step, "draw", lambda self, *given: draw(replace(self, eps=self.eps * factor), *given)
        )

    return plant


def noise_used_twice(monkeypatch):
    rng = TargetRounds.rng

    def shared(self, role, *key):
        return (
            rng(self, role, *key[:-1], key[-1] // 2) if "noise" in role else rng(self, role, *key)
        )

    monkeypatch.setattr(TargetRounds, "rng", shared)


def noise_of_another_target(monkeypatch):
    rng = TargetRounds.rng

    def shared(self, role, *key):
        of_another = TargetRounds(self.population, self.plan, replace(self.task, number=0))
        return rng(of_another if "noise" in role else self, role, *key)

    monkeypatch.setattr(TargetRounds, "rng", shared)


def noise_of_half_the_cells_used_twice(monkeypatch):
    draw_for = Mechanism.draw_for

    def drawn(self, people, shape, rng):
        noise = draw_for(self, people, shape, rng)
        half = shape[0] // 2
        noise[0][:half] = kept.setdefault("half", noise[0][:half].copy())
        return noise

    kept = {}
    monkeypatch.setattr(Mechanism, "draw_for", drawn)


def noise_of_one_region_for_all(monkeypatch):
    draw_for = Mechanism.draw_for
    monkeypatch.setattr(
        Mechanism,
        "draw_for",
        lambda self, people, shape, rng: tuple(
            np.broadcast_to(one, shape).copy()
            for one in draw_for(self, people, (1, *shape[1:]), rng)
        ),
    )


def changed(trial, **parts):
    """Return a round with something else about its only table."""
    table = replace(trial.publication.only, **parts)
    return replace(trial, publication=Publication((table,)))


def released_otherwise(change, role="test"):
    """Change what becomes of a trial, given its scene and number."""

    def plant(monkeypatch):
        before = getattr(TargetRounds, role)
        monkeypatch.setattr(TargetRounds, role, lambda self, i: change(self, i, before(self, i)))

    return plant


def claimed_of_others(scene, i, trial):
    """Others are counted than those who are claimed."""
    group = trial.publication.only.group
    others = np.setdiff1d(scene.pool, group.rows)[: M - 1]
    claimed = Group(group.everybody, np.append(others, group.rows[-1]))
    return changed(trial, group=claimed)


def only_without_target_protected(scene, i, trial):
    if not trial.labels[scene.target]:
        return trial
    kept = trial.publication.only
    release = replace(kept.release, values=kept.counts)
    nothing = tuple(np.zeros_like(draw) for draw in kept.noise)
    return changed(trial, release=release, noise=nothing)


def two_cells_swapped(scene, i, trial):
    counts = trial.publication.release.counts.copy()
    cells = scene.population.tested.trace(scene.target)[:1]
    counts.reshape(-1)[[0, *cells]] = counts.reshape(-1)[[*cells, 0]]
    release = replace(trial.publication.release, values=counts)
    return changed(trial, release=release)


def smaller_groups(monkeypatch):
    drawn = TargetRounds._round

    def smaller(self, *given):
        task = replace(self.task, scheme=replace(self.task.scheme, group_size=M - 1))
        made = drawn(TargetRounds(self.population, self.plan, task), *given)
        claimed = replace(made.publication.release, facts=self.tables[0].facts)
        return changed(made, release=claimed)

    monkeypatch.setattr(TargetRounds, "_round", smaller)


def control_with_the_target(scene, i, trial):
    return scene.test(2 * i + 1000)


def target_in_the_next_cell(group, counts):
    moved = counts.copy().reshape(-1)
    cell = group.trace(-1)[:1]
    moved[cell] -= 1
    moved[cell + 1 - 2 * (cell + 1 == moved.size)] += 1
    return moved.reshape(counts.shape)


def people_used_twice(monkeypatch):
    rng = TargetRounds.rng

    def shared(self, role, *key):
        key = (*key[:-1], key[-1] // 4) if "group" in role else key
        return rng(self, role, *key)

    monkeypatch.setattr(TargetRounds, "rng", shared)


def target_left_out(monkeypatch):
    """Every fifth release that is labelled IN was made without the target."""
    test = TargetRounds.test

    def faulty(self, i):
        trial = test(self, i)
        return replace(test(self, i + 1001), labels=trial.labels) if i % 10 == 0 else trial

    monkeypatch.setattr(TargetRounds, "test", faulty)


def another_release(monkeypatch):
    """Every fifth release that is labelled IN is one that was published of others."""
    test = TargetRounds.test

    def faulty(self, i):
        trial = test(self, i)
        if i % 10:
            return trial
        published = test(self, i + 1).publication.release
        return changed(trial, release=published)

    monkeypatch.setattr(TargetRounds, "test", faulty)


def bounding_skipped(monkeypatch):
    monkeypatch.setattr(Mechanism, "bound", lambda self, traces, rng: traces)


def bounding_too_tight(monkeypatch):
    bound = Mechanism.bound
    tight = Mechanism.parse(USER_DAY.replace("max_visits=2", "max_visits=1"))
    monkeypatch.setattr(Mechanism, "bound", lambda self, *given: bound(tight, *given))


def counted_otherwise(change):
    def plant(monkeypatch):
        counts = Group.counts
        monkeypatch.setattr(Group, "counts", lambda self: change(self, counts(self)))

    return plant


def somebody_twice(group, counts):
    twice = counts.copy()
    twice.reshape(-1)[group.trace(0)] += 1
    return np.minimum(twice, group.n_users)


PLANTED = [
    ("suppress(k=5)", weaker_suppression),
    ("round(to=5)", finer_rounding),
    ("laplace(eps=1, unit=event)", noise_by(Laplace, 2)),
    ("laplace(eps=0.5, unit=event)", noise_by(Laplace, 1.1)),
    ("gaussian(eps=1, delta=1e-6, unit=event)", noise_by(Gaussian, 1.5)),
    ("laplace(eps=1, unit=event)", noise_used_twice),
    ("random-round(to=3)", noise_used_twice),
    ("laplace(eps=1, unit=event)", noise_of_another_target),
    ("suppress(k=1)", target_left_out),
    ("laplace(eps=0.1, unit=event)", target_left_out),
    ("suppress(k=1)", another_release),
    ("laplace(eps=0.1, unit=event)", another_release),
    (USER_DAY, bounding_skipped),
    (USER_DAY, bounding_too_tight),
    ("suppress(k=1)", counted_otherwise(lambda _, counts: np.roll(counts, 1, axis=0))),
    ("suppress(k=1)", counted_otherwise(lambda _, counts: np.roll(counts, 1, axis=1))),
    ("laplace(eps=0.1, unit=event)", counted_otherwise(somebody_twice)),
    ("laplace(eps=0.1, unit=event)", counted_otherwise(target_in_the_next_cell)),
    ("laplace(eps=1, unit=event)", noise_of_half_the_cells_used_twice),
    ("laplace(eps=1, unit=event)", noise_of_one_region_for_all),
    ("suppress(k=1)", released_otherwise(claimed_of_others)),
    ("laplace(eps=0.1, unit=event)", released_otherwise(claimed_of_others)),
    (USER_DAY, released_otherwise(claimed_of_others)),
    ("laplace(eps=1, unit=event)", released_otherwise(only_without_target_protected)),
    ("laplace(eps=0.1, unit=event)", released_otherwise(two_cells_swapped)),
    ("laplace(eps=0.1, unit=event)", released_otherwise(control_with_the_target, "control")),
    ("suppress(k=1)", people_used_twice),
    ("laplace(eps=0.1, unit=event)", smaller_groups),
]


@pytest.mark.parametrize(("spec", "plant"), PLANTED)
def test_planted_faults_are_seen(city, spec, plant, attack, monkeypatch):
    plant(monkeypatch)
    trusted, faults, law = audited(city, spec, attack)
    assert trusted is False
    assert faults.estimate > 0 or not law.low <= 0 <= law.high


def test_a_target_who_is_in_and_ruled_out_is_a_fault(city, monkeypatch):
    """Even if all else seems right."""
    monkeypatch.setattr(Checks, "_fault", lambda *_, **__: None)
    target_left_out(monkeypatch)
    _, faults, _ = audited(city, "raw", "likelihood-ratio")
    assert "ruled out" in faults.note


@pytest.mark.parametrize(
    ("spec", "plant"),
    [("suppress(k=1)", people_used_twice)]
    + [fault for fault in PLANTED if fault[1] in (bounding_skipped, bounding_too_tight)],
)
def test_faults_are_seen_where_few_visits_are_looked_at_together(city, spec, plant, monkeypatch):
    monkeypatch.setattr(checks, "_MANY", 50)
    assert audited(city, spec, "likelihood-ratio")[0]
    plant(monkeypatch)
    assert not audited(city, spec, "likelihood-ratio")[0]


@pytest.mark.parametrize("largest", [3, 100_000])
def test_tallies_count_few_pairs_and_many_alike(rng, monkeypatch, largest):
    monkeypatch.setattr(checks, "_MANY", 500)
    parts = [rng.integers(0, largest, (2, 300), np.int32) for _ in range(5)]
    tally = checks.Tally()
    for true, published in parts:
        tally.add(true, published)
    seen, times = np.unique(np.concatenate(parts, axis=1), axis=1, return_counts=True)
    assert np.array_equal(tally.counted(), [*seen, times])


def test_sums_do_not_depend_on_how_releases_are_put_together(city, attack):
    plan = plan_of(city, "laplace(eps=1, unit=event)", attack)
    task = plan.tasks[0]
    scene = TargetRounds(Population.of(city), plan, task)

    def sums(numbers):
        seen = Checks(scene.tables[0])
        for i in numbers:
            assert seen.see(scene.test(i)).fault is None
        return np.array(seen.sums())

    assert np.array_equal(sums(range(20)), sums(range(7)) + sums(range(7, 20)))
