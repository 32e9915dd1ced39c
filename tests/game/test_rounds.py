"""Tasks: who is in which release, and what scores may depend on."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

from whosthere.adversary.attacks import Answer, Attack, FittedAttack
from whosthere.adversary.knowledge import Knowledge
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.floor import rounded_up
from whosthere.data.neighbours import as_graph
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.errors import InputError
from whosthere.game import scoring
from whosthere.game.plan import Setting
from whosthere.game.rounds import Population, Task
from whosthere.game.scoring import score_task
from whosthere.game.target import TargetGame, TargetRounds
from whosthere.inference.scores import SCHEMA
from whosthere.inference.vocabulary import CEILING, OF_UTILITY
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Scheme
from whosthere.seeds import derived_seed, digest, generator

N_USERS = 50
N_CELLS = 6 * 24
VISITS = 5
M = 12
CHEAP = ("contradiction-rule", "likelihood-ratio", "log-likelihood")
REFERENCE = frozenset({"reference"})
FEW_LESSONS = "groups=20, validation=10"
SMALL_KNOCK_KNOCK = f"knock-knock({FEW_LESSONS})"
SMALL_LOC_MIA = f"loc-mia({FEW_LESSONS})"
# Noise too weak to be seen: the chance of any noise in a cell is below 1e-80.
ONE_A_DAY = "discrete-laplace(eps=200, unit=user-day, max_visits=1)"


@dataclass(frozen=True)
class Fingerprint(Attack):
    """Scores what a release is, and nothing else."""

    variant: int = 0
    parts: tuple[str, ...] = ()

    name: ClassVar[str] = "fingerprint"
    summary: ClassVar[str] = "scores a digest of the release"

    @property
    def uses(self):
        return frozenset(self.parts)

    def fit(self, facts, knowledge, auxiliary, *, seed):
        return FittedFingerprint()


class FittedFingerprint(FittedAttack):
    def score(self, release):
        return Answer(float(int(digest(release.counts)[:12], 16)), 0.0)


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()


@pytest.fixture(scope="module")
def even():
    """People with five visits each on one day; the first one goes where nobody else goes."""
    rng = np.random.default_rng(20240602)
    regions = Regions([f"r{i}" for i in range(6)], np.linspace(9, 9.1, 6), np.full(6, 45.4))
    epochs = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 24, "UTC")
    shared = np.arange(VISITS, N_CELLS)
    rows = [np.arange(VISITS)]
    rows += [np.sort(rng.choice(shared, VISITS, replace=False)) for _ in range(N_USERS - 1)]
    indptr = np.arange(N_USERS + 1) * VISITS
    users = tuple(f"u{i:02d}" for i in range(N_USERS))
    return Traces(users, indptr, np.concatenate(rows), regions, epochs)


def plan_of(traces, **chosen):
    usual = {"mechanisms": "raw", "group_size": M, "releases": 6, "targets": 3}
    return make_plan(AuditOptions.of(**usual | {"attacks": CHEAP} | chosen), traces)


def scene_of(traces, plan, task):
    return TargetRounds(Population.of(traces, plan.first_epoch), plan, task)


def scored(traces, plan, task):
    return score_task(Population.of(traces, plan.first_epoch), plan, task).targets


def only(plan):
    (task,) = plan.tasks
    return task


def with_contests(plan, wanted):
    """Return a plan with those contests alone that a function chooses."""
    return replace(plan, contests=tuple(one for one in plan.contests if wanted(one)))


def without_times(frame):
    return frame.drop("seconds").to_dicts()


def attacked_in(scene):
    return [scene.test(i) for i in range(scene.plan.releases)]


def controls_in(scene):
    return [scene.control(i) for i in range(scene.plan.control_releases)]


def all_releases(scene):
    return [*attacked_in(scene), *controls_in(scene)]


def past_of(scene):
    return scene.tables[0].auxiliary(frozenset({"past"})).past


def flat(trial):
    return trial.publication.release.counts.reshape(-1)


class TestPeople:
    @pytest.mark.parametrize("reference", [0, 10, 25])
    def test_reference_pool_and_target_are_everybody_once(self, even, reference):
        plan = plan_of(even, reference_size=reference, attacks="likelihood-ratio")
        for task in plan.tasks:
            scene = scene_of(even, plan, task)
            reference_users = scene.tables[0].auxiliary(REFERENCE).real_traces.users
            known = [even.users.index(user) for user in reference_users]
            assert len(known) == reference
            together = [task.number, *known, *scene.pool.tolist()]
            assert sorted(together) == list(range(N_USERS))

    def test_targets_have_other_references(self, even):
        plan = plan_of(even)
        pools = {tuple(scene_of(even, plan, task).pool.tolist()) for task in plan.tasks}
        assert len(pools) == len(plan.targets)

    def test_every_group_has_its_size(self, even):
        """Everybody has as many visits, so that the total tells how many people there are."""
        plan = plan_of(even, control_releases=4)
        for task in plan.tasks:
            for trial in all_releases(scene_of(even, plan, task)):
                assert flat(trial).sum() == M * VISITS

    def test_nobody_of_the_reference_is_in_a_release(self, even):
        plan = plan_of(even, control_releases=4)
        for task in plan.tasks:
            scene = scene_of(even, plan, task)
            possible = even.counts(np.append(scene.pool, task.number)).reshape(-1)
            for trial in all_releases(scene):
                assert (flat(trial) <= possible).all()


class TestReleases:
    def test_every_other_one_holds_the_target(self, even):
        plan = plan_of(even, users=("u00",), releases=10)
        scene = scene_of(even, plan, only(plan))
        tests = attacked_in(scene)
        there = [bool((flat(trial)[:VISITS] == 1).all()) for trial in tests]
        assert there == [True, False] * 5
        assert [trial.labels[scene.target] for trial in tests] == there
        for trial in tests[1::2]:
            assert not flat(trial)[:VISITS].any()

    def test_controls_never_hold_the_target(self, even):
        plan = plan_of(even, users=("u00",), control_releases=30)
        controls = controls_in(scene_of(even, plan, only(plan)))
        assert len(controls) == 30
        for trial in controls:
            assert not flat(trial)[:VISITS].any()

    def test_the_audit_knows_the_others_in_the_targets_cells(self, city):
        plan = plan_of(city)
        for task in plan.tasks:
            own = city.trace(task.number)
            scene = scene_of(city, plan, task)
            visitors = city.counts(scene.pool).reshape(-1)
            for trial in attacked_in(scene)[::2]:
                counts = flat(trial)
                assert (counts[own] >= 1).all()
                without = counts.copy()
                without[own] -= 1
                assert (without <= visitors).all()

    def test_groups_change_from_release_to_release(self, even):
        plan = plan_of(even, control_releases=6)
        seen = {flat(one).tobytes() for one in all_releases(scene_of(even, plan, plan.tasks[0]))}
        assert len(seen) == 12

    def test_the_same_groups_meet_every_protection(self, city):
        plan = plan_of(city, mechanisms=("raw", "suppress(k=1)"), control_releases=4)
        raw, suppressed = (
            [
                [flat(one) for one in all_releases(scene_of(city, plan, Task(target, scheme)))]
                for target in plan.targets
            ]
            for scheme in plan.schemes
        )
        raw, suppressed = np.array(raw), np.array(suppressed)
        assert (raw == 1).any()
        np.testing.assert_array_equal(suppressed, np.where(raw > 1, raw, 0))

    def test_bounds_hold_for_the_target_too(self, even):
        plan = plan_of(even, mechanisms=(ONE_A_DAY,), users=("u00",), control_releases=4)
        scene = scene_of(even, plan, only(plan))
        for trial in all_releases(scene):
            assert flat(trial).sum() == M
        kept = set()
        for trial in attacked_in(scene)[::2]:
            assert flat(trial)[:VISITS].sum() == 1
            kept.add(int(flat(trial)[:VISITS].argmax()))
        assert len(kept) > 1  # fails by chance in 1 of 25 seeds


class TestRows:
    def test_rows(self, city):
        plan = plan_of(city, control_releases=3)
        for task in plan.tasks:
            frame = scored(city, plan, task)
            assert dict(frame.schema) == SCHEMA
            rows = frame.to_dicts()
            keys = {(row["attack"], row["control"], row["release"]) for row in rows}
            wanted = {(name, False, i) for name in CHEAP for i in range(6)}
            wanted |= {(name, True, i) for name in CHEAP for i in range(3)}
            wanted |= {(CEILING, False, i) for i in range(6)}
            assert len(rows) == len(wanted)
            assert keys == wanted
            assert {row["target"] for row in rows} == {task.number}
            assert {row["setting"] for row in rows} == {str(task.scheme)}
            (visits,) = {row["visits"] for row in rows}
            assert visits in Population.of(city).visit_classes
            assert visits >= city.trace(task.number).size
            for row in rows:
                assert row["label"] == (row["control"] or row["release"] % 2 == 0)
                assert np.isfinite(row["score"])
                assert row["seconds"] >= 0

    def test_ceiling_and_uniqueness(self, city):
        plan = plan_of(
            city,
            mechanisms=("raw", "suppress(k=2)", "laplace(eps=1, unit=event)"),
            attacks="likelihood-ratio",
        )
        for task in plan.tasks:
            frame = scored(city, plan, task)
            assert frame["uniqueness"].n_unique() == 1
            assert 0 <= frame["uniqueness"][0] <= 1
            best = frame.filter(pl.col("attack") == CEILING, ~pl.col("control"))
            assert best["calibrated"].equals(best["score"])
            assert set(best["threshold"]) == {0.0}
            # A release that does hold the target is never ruled out.
            assert best.filter("label")["score"].min() > -1e8

    def test_who_goes_where_nobody_goes_is_exposed_by_raw_counts(self, even):
        plan = plan_of(even, users=("u00",), attacks="likelihood-ratio")
        frame = scored(even, plan, only(plan))
        assert frame["uniqueness"][0] == 1
        for attack in (CEILING, "likelihood-ratio"):
            own = frame.filter(pl.col("attack") == attack, ~pl.col("control"))
            assert own.filter("label")["score"].min() > own.filter(~pl.col("label"))["score"].max()

    def test_what_is_suppressed_exposes_nobody(self, even):
        plan = plan_of(even, mechanisms=("suppress(k=1)",), users=("u00",))
        frame = scored(even, plan, only(plan))
        standing = frame.filter(pl.col("attack") == CEILING, pl.col("control"))
        assert standing["score"].to_list() == pytest.approx([0.5] * standing.height)


@pytest.fixture(scope="module")
def crowd():
    """Everybody in one region at midnight and somewhere else an hour later, but for the first."""
    rng = np.random.default_rng(20240604)
    regions = Regions([f"r{i}" for i in range(6)], np.linspace(9, 9.1, 6), np.full(6, 45.4))
    epochs = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 2, "UTC")
    rows = [[0], *([2, int(cell)] for cell in rng.integers(4, 12, size=N_USERS - 1))]
    indptr = np.cumsum([0, *map(len, rows)])
    users = tuple(f"u{i:02d}" for i in range(N_USERS))
    return Traces(users, indptr, np.concatenate(rows), regions, epochs)


class TestCrowd:
    def test_nothing_is_trial(self, crowd):
        plan = plan_of(crowd, mechanisms=(f"suppress(k={M})",), attacks="likelihood-ratio")
        for task in plan.tasks:
            frame = scored(crowd, plan, task)
            tests = frame.filter(~pl.col("control"))
            assert len(set(tests.filter(pl.col("attack") != CEILING)["score"])) == 1
            best = tests.filter(pl.col("attack") == CEILING)["score"].to_numpy()
            np.testing.assert_allclose(best, 0, atol=1e-9)

    def test_everybody_in_one_cell(self, crowd):
        plan = plan_of(
            crowd,
            mechanisms=("raw", "suppress(k=1)", "laplace(eps=1, unit=event)"),
            releases=20,
            attacks=("likelihood-ratio", "likelihood-ratio(rates=rank-one)"),
        )
        for task in plan.tasks:
            assert np.isfinite(scored(crowd, plan, task)["score"].to_numpy()).all()


class TestWhatScoresDependOn:
    def test_the_same_plan_gives_the_same_scores(self, city):
        plan = plan_of(city, attacks=(*CHEAP, "knock-knock"))
        task = plan.tasks[0]
        assert without_times(scored(city, plan, task)) == without_times(scored(city, plan, task))

    def test_another_seed_gives_others(self, city):
        plan = plan_of(city)
        other = replace(plan, seed=1)
        task = plan.tasks[0]
        assert without_times(scored(city, plan, task)) != without_times(scored(city, other, task))

    @pytest.mark.parametrize("spec", ["raw", "laplace(eps=1, unit=event)"])
    def test_not_on_other_attacks(self, city, spec):
        chosen = ("likelihood-ratio", "knock-knock", "log-likelihood")
        plan = plan_of(city, mechanisms=spec, attacks=chosen)
        task = plan.tasks[0]
        together = without_times(scored(city, plan, task))
        for name in chosen:
            alone = with_contests(plan, lambda one, name=name: str(one.attack) == name)
            assert len(alone.contests) == 1
            assert without_times(scored(city, alone, task)) == [
                row for row in together if row["attack"] in {name, CEILING}
            ]
        backwards = replace(plan, contests=plan.contests[::-1])
        assert sorted(map(str, without_times(scored(city, backwards, task)))) == sorted(
            map(str, together)
        )

    def test_not_on_other_settings_or_targets(self, city):
        plan = plan_of(
            city,
            mechanisms=("raw", "laplace(eps=1, unit=event)"),
            group_size=(M, 20),
            knowledge=("share(0.5)", "regions(top=2)"),
        )
        assert len(plan.settings) == 2 * len(plan.schemes) == 8
        for task in plan.tasks[:: len(plan.schemes) + 1]:
            together = without_times(scored(city, plan, task))
            settings = [one for one in plan.settings if one.scheme == task.scheme]
            assert len(settings) == 2
            for setting in settings:
                alone = replace(
                    with_contests(plan, lambda one, setting=setting: one.setting == setting),
                    targets=(task.number,),
                )
                assert without_times(scored(city, alone, task)) == [
                    row for row in together if row["setting"] == str(setting)
                ]

    def test_not_on_the_number_of_releases(self, city):
        plan = plan_of(city, attacks="likelihood-ratio")
        more = replace(plan, releases=2 * plan.releases, control_releases=9)
        task = plan.tasks[0]
        few, many = (
            {
                (row["attack"], row["release"], row["control"]): row["score"]
                for row in scored(city, some, task).to_dicts()
            }
            for some in (plan, more)
        )
        assert len(many) == 2 * (2 * plan.releases) + 9
        assert few.items() <= many.items()

    def test_not_on_the_number_of_releases_of_other_attacks(self, city):
        """Every attack has the scores that it would have if all scored as many releases."""
        attacks = ("likelihood-ratio", "log-likelihood", SMALL_KNOCK_KNOCK)
        of = {"likelihood-ratio": 12, SMALL_KNOCK_KNOCK: 4}
        plan = plan_of(city, attacks=attacks, releases_of=of)
        task = plan.tasks[0]
        found = without_times(scored(city, plan, task))
        for attack, n in {"log-likelihood": plan.releases, CEILING: 12, **of}.items():
            even = plan_of(city, attacks=attacks, releases=n)
            even = replace(even, control_releases=plan.control_releases)
            assert [row for row in found if row["attack"] == attack] == [
                row for row in without_times(scored(city, even, task)) if row["attack"] == attack
            ]

    def test_time_to_prepare_is_shared_by_all_scores_of_an_attack(self, city, monkeypatch):
        clock = iter(range(1000))
        monkeypatch.setattr(scoring.time, "perf_counter", lambda: next(clock))
        plan = plan_of(city, attacks=Fingerprint(), releases=2, releases_of={"fingerprint": 6})
        rows = scored(city, plan, plan.tasks[0]).filter(attack="fingerprint")
        assert rows.height == 6 + plan.control_releases
        assert rows["seconds"].to_list() == pytest.approx([1 + 1 / rows.height] * rows.height)

    def test_not_on_how_anything_is_written(self, city, monkeypatch):
        """Specs are for people: rewording one must not change a single draw."""
        plan = plan_of(
            city,
            mechanisms="laplace(eps=1, unit=event) | suppress(k=1)",
            knowledge=("all", "share(0.5)"),
            attacks=(
                "likelihood-ratio",
                SMALL_KNOCK_KNOCK,
                f"zero-knowledge(reference=60, {FEW_LESSONS})",
                f"zero-knowledge(reference=60, fit=per-target, {FEW_LESSONS})",
            ),
            targets=1,
        )
        names = ["setting", "attack", "seconds"]
        before = scored(city, plan, only(plan)).drop(names)
        for kind in (Setting, Scheme, Mechanism, Knowledge, Attack):
            monkeypatch.setattr(kind, "__str__", lambda self: f"reworded {type(self).__name__}")
        after = scored(city, plan, only(plan))
        assert after["setting"].unique().to_list() == ["reworded Setting"]
        assert after.drop(names).equals(before)


class TestEverybodyMeetsTheSameReleases:
    @pytest.mark.parametrize(
        "spec", ["raw", "laplace(eps=1, unit=event)", "gaussian(eps=1, unit=user, max_visits=2)"]
    )
    def test_variants_and_knowledges(self, city, spec):
        attacks = [
            Fingerprint(),
            Fingerprint(1),
            Fingerprint(2, ("reference",)),
            Fingerprint(3, ("example", "past")),
            Fingerprint(4, ("reference", "past", "example")),
        ]
        knowledge = ("all", "share(0.5)", "regions", "regions(top=2, guess=random)")
        plan = plan_of(
            city,
            mechanisms=spec,
            attacks=attacks,
            knowledge=knowledge,
            past_releases=4,
            control_releases=4,
        )
        for task in plan.tasks:
            frame = scored(city, plan, task).filter(pl.col("attack") != CEILING)
            assert frame.height == len(attacks) * len(knowledge) * 10
            met = frame.group_by("control", "release").agg(pl.col("score").n_unique(), pl.len())
            assert met["len"].unique().to_list() == [len(attacks) * len(knowledge)]
            assert met["score"].to_list() == [1] * 10
            # And no two releases are the same.
            assert frame["score"].n_unique() == 10

    def test_whatever_else_is_in_the_plan(self, city):
        """With the same reference, an attack's company changes nothing that it sees."""
        alone = plan_of(city, attacks=Fingerprint(), reference_size=30, targets=1)
        many = plan_of(
            city,
            attacks=("likelihood-ratio", SMALL_KNOCK_KNOCK, Fingerprint()),
            knowledge=("regions", "all"),
            mechanisms=("suppress(k=1)", "raw"),
            reference_size=30,
            targets=1,
        )
        (task,) = (task for task in many.tasks if task.scheme.how == "raw")
        expected = without_times(scored(city, alone, only(alone)))
        found = [
            row
            for row in without_times(scored(city, many, task))
            if row["attack"] in {"fingerprint", CEILING} and row["setting"] == f"raw, m={M}"
        ]
        assert found == expected


@pytest.fixture(scope="module")
def days():
    """Three days with a visit or two of everybody in each, the target's where nobody else goes."""
    rng = np.random.default_rng(20240605)
    regions = Regions([f"r{i}" for i in range(6)], np.linspace(9, 9.1, 6), np.full(6, 45.4))
    epochs = Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 72, "UTC")
    rows = [np.array([day * 24 + 2 * day for day in range(3)])]
    for _ in range(N_USERS - 1):
        region = rng.integers(1, 6, 6)
        epoch = np.repeat([0, 24, 48], 2) + rng.integers(0, 24, 6)
        rows.append(np.unique(region * 72 + epoch))
    indptr = np.cumsum([0, *map(len, rows)])
    users = tuple(f"u{i:02d}" for i in range(N_USERS))
    return Traces(users, indptr, np.concatenate(rows), regions, epochs)


class TestPast:
    PAST: ClassVar = {"attacks": "knock-knock-past-groups", "past_releases": 10}

    @pytest.mark.parametrize("spec", ["raw", "suppress(k=1)", "laplace(eps=1, unit=event)"])
    def test_past_releases_are_made_like_the_others(self, even, spec):
        plan = plan_of(even, mechanisms=spec, **self.PAST)
        for task in plan.tasks:
            scene = scene_of(even, plan, task)
            past = past_of(scene)
            assert len(past) == 10
            assert all(one.release.facts == scene.test(0).publication.release.facts for one in past)
            assert sum(one.target_in for one in past) == 5

    def test_half_hold_the_target_and_the_others_are_of_the_reference(self, even):
        plan = plan_of(even, users="u00", **self.PAST)
        scene = scene_of(even, plan, only(plan))
        assert scene.reference_rows.size == plan.reference_size == (N_USERS - 1) // 2
        assert not set(scene.reference_rows) & {*scene.pool, 0}
        possible = even.counts(np.append(scene.reference_rows, 0)).reshape(-1)
        for one in past_of(scene):
            counts = one.release.counts.reshape(-1)
            assert counts.sum() == M * VISITS
            assert (counts[:VISITS] == one.target_in).all()
            assert (counts <= possible).all()

    def test_are_neither_test_nor_control_releases(self, even):
        plan = plan_of(even, **self.PAST | {"attacks": Fingerprint(parts=("past", "reference"))})
        scene = scene_of(even, plan, plan.tasks[0])
        past = {digest(one.release.counts.reshape(-1)) for one in past_of(scene)}
        others = {digest(flat(one)) for one in all_releases(scene)}
        assert len(past) == 10
        assert not past & others

    def test_come_from_earlier_windows(self, days):
        begin = datetime(2021, 6, 3)
        plan = plan_of(days, users="u00", test_from=begin, **self.PAST | {"past_releases": 20})
        assert plan.first_epoch == 48
        scene = scene_of(days, plan, only(plan))
        windows = {days.between(start, 24).epochs: days.between(start, 24) for start in (0, 24)}
        assert {one.release.epochs for one in past_of(scene)} == set(windows)
        for one in past_of(scene):
            window = windows[one.release.epochs]
            counts = one.release.counts.reshape(-1)
            assert one.release.group_size == M
            assert one.release.mechanism == Mechanism()
            assert one.release.regions == days.regions
            possible = window.counts(np.append(scene.reference_rows, 0)).reshape(-1)
            assert (counts <= possible).all()
            assert counts[window.trace(0)].tolist() == [one.target_in]
        assert sum(one.target_in for one in past_of(scene)) == 10

    def test_the_tested_time_is_the_last_one(self, days):
        plan = plan_of(days, users="u00", test_from=datetime(2021, 6, 3), **self.PAST)
        scene = scene_of(days, plan, only(plan))
        last = days.between(48, 24)
        own = last.trace(0)
        for trial in all_releases(scene):
            assert trial.publication.release.epochs == last.epochs
            assert (flat(trial) <= last.counts(np.append(scene.pool, 0)).reshape(-1)).all()
        assert [int(flat(trial)[own[0]]) for trial in attacked_in(scene)] == [1, 0] * 3
        visits = rounded_up(own.size, scene.population.visit_classes)
        assert set(scored(days, plan, only(plan))["visits"]) == {visits}

    @pytest.mark.parametrize("begin", [None, datetime(2021, 6, 3)])
    def test_can_be_audited(self, days, begin):
        plan = plan_of(days, users="u00", test_from=begin, **self.PAST)
        frame = scored(days, plan, only(plan))
        assert set(frame["attack"]) == {"knock-knock-past-groups", CEILING}
        assert np.isfinite(frame["score"].to_numpy()).all()
        attacked = frame.filter(pl.col("attack") != CEILING)
        assert attacked.height == plan.releases + plan.control_releases

    def test_a_past_that_is_too_short_is_refused(self, days):
        with pytest.raises(InputError, match=r"only 12 epochs lie before .* begin later"):
            plan_of(days, test_from=datetime(2021, 6, 1, 12), **self.PAST)

    @pytest.mark.parametrize("n", [0, 2, 7])
    def test_too_few_past_releases_are_refused(self, even, n):
        with pytest.raises(InputError, match=r"past releases.*even number, at least 4"):
            plan_of(even, **self.PAST | {"past_releases": n})

    def test_nobody_makes_them_for_nobody(self, even):
        assert plan_of(even).past_releases == 0


@pytest.fixture(scope="module")
def social(even):
    """Everybody of the first ten knows the next two, and all others know nobody."""
    pairs = np.array([(i, i + step) for i in range(10) for step in (1, 2)])
    return replace(even, friends=as_graph(pairs, N_USERS))


class TestFriends:
    def test_all_friends_and_nobody_else(self, social):
        plan = plan_of(social, attacks=SMALL_LOC_MIA, users=["u05"])
        [table] = scene_of(social, plan, only(plan)).tables
        friends = table.auxiliary(frozenset({"friends"})).friends
        assert sorted(friends.users) == ["u03", "u04", "u06", "u07"]
        for user in friends.users:
            found = friends.trace(friends.row_of(user))
            assert found.tolist() == social.trace(social.row_of(user)).tolist()

    def test_who_has_none_is_left_out(self, social):
        plan = plan_of(
            social, attacks=(SMALL_LOC_MIA, "likelihood-ratio"), users=["u30", "u05", "u31"]
        )
        assert any("2 of 3 targets have no friends" in said for said in plan.cautions)
        attacked = {}
        for task in plan.tasks:
            frame = scored(social, plan, task)
            attacked[social.users[task.number]] = set(frame["attack"])
        assert attacked == {
            "u05": {SMALL_LOC_MIA, "likelihood-ratio", CEILING},
            "u30": {"likelihood-ratio", CEILING},
            "u31": {"likelihood-ratio", CEILING},
        }

    def test_where_nobody_has_any_it_is_left_out(self, social, even):
        for people in (social, even):
            chosen = {"attacks": (SMALL_LOC_MIA, "likelihood-ratio"), "users": ["u30", "u31"]}
            plan = plan_of(people, **chosen)
            assert list(map(str, plan.attacks)) == ["likelihood-ratio"]
            assert any("left out of 1 of 1 settings" in said for said in plan.cautions)
            with pytest.raises(InputError, match="none of the attacks applies"):
                plan_of(people, **chosen | {"attacks": SMALL_LOC_MIA})


class TestExample:
    def test_is_one_of_the_first_two_releases_drawn_at_random(self, city):
        plan = plan_of(city, attacks=Fingerprint(parts=("example",)), targets=20, releases=8)
        drawn = []
        for task in plan.tasks:
            scene = scene_of(city, plan, task)
            example = scene.tables[0].auxiliary(frozenset({"example"})).example
            same = [
                i
                for i, trial in enumerate(attacked_in(scene))
                if (trial.publication.release.counts == example.counts).all()
            ]
            assert len(same) == 1
            drawn += same
        # Each fails by chance in less than 1 of 100,000 seeds.
        assert set(drawn) == {0, 1}

    def test_another_one_always_holds_the_target(self, city):
        plan = plan_of(city, attacks=Fingerprint(parts=("example_in",)), targets=5, releases=8)
        for task in plan.tasks:
            scene = scene_of(city, plan, task)
            example = scene.tables[0].auxiliary(frozenset({"example_in"})).example_in
            assert scene.test(0).labels == {scene.target: True}
            assert (scene.test(0).publication.release.counts == example.counts).all()

    def test_every_variant_has_the_same(self, city):
        plan = plan_of(
            city,
            attacks=(Fingerprint(0, ("example",)), Fingerprint(1, ("example", "reference"))),
            knowledge=("all", "regions"),
        )
        for task in plan.tasks:
            scene = scene_of(city, plan, task)
            seen = {
                digest(scene.tables[0].auxiliary(one.attack.uses).example.counts)
                for one in plan.contests
            }
            again = scene_of(city, plan, task).tables[0].auxiliary(frozenset({"example"})).example
            assert seen == {digest(again.counts)}

    def test_trained_once(self, city):
        """Per target, the same classifier scores all releases: equal thresholds."""
        spec = f"zero-knowledge(rule=no, reference=60, {FEW_LESSONS}, fit=%s)"
        plan = plan_of(city, attacks=[spec % "per-target", spec % "per-release"], targets=1)
        frame = scored(city, plan, only(plan))
        thresholds = frame.group_by("attack").agg(pl.col("threshold").n_unique())
        n_by_attack = dict(thresholds.iter_rows())
        once = next(name for name in n_by_attack if "per-target" in name)
        assert n_by_attack.pop(once) == n_by_attack.pop(CEILING) == 1
        assert all(n > 1 for n in n_by_attack.values())


class TestParts:
    def test_an_attack_has_what_it_uses_and_no_other(self, city):
        plan = plan_of(city, attacks=Fingerprint(parts=("past", "reference")), past_releases=4)
        scene = scene_of(city, plan, plan.tasks[0])
        for parts in ((), ("reference",), ("past",), ("example", "reference")):
            given = scene.tables[0].auxiliary(frozenset(parts))
            known = [one for one in ("reference", "friends", "past", "example") if given.has(one)]
            assert sorted(known) == sorted(parts)


class TestNoControl:
    def test_no_rows(self, city):
        plan = plan_of(city, control_releases=0)
        frame = scored(city, plan, plan.tasks[0])
        assert not frame["control"].any()
        assert frame.height == (len(CHEAP) + 1) * plan.releases


class TestSeeds:
    """What a seed means must not change unnoticed: every result ever published depends on it."""

    def test_known_values(self):
        assert derived_seed(0, "a", 1) == 3283056705515855556
        assert derived_seed(7, "test group", 3, 1000, 12) == 5770536744679669473
        assert generator(7, "targets").integers(2**62) == 2741587520294045325

    def test_a_number_is_a_number_whoever_made_it(self):
        key = (np.int64(7), "test group", np.int32(3), np.uint16(1000), np.int64(12))
        assert derived_seed(*key) == derived_seed(7, "test group", 3, 1000, 12)

    def test_keys_are_kept_apart(self):
        keys = [(), ("a",), ("a", 1), ("a", "1"), ("a1",), (1, "a"), ("a", 11), ("a", 1, 1)]
        assert len({derived_seed(0, *key) for key in keys}) == len(keys)
        assert len({derived_seed(seed, "a") for seed in range(100)}) == 100

    def test_scores_are_known(self, even):
        """The whole chain of draws, from the target to the noise, in one number."""
        plan = plan_of(even, mechanisms="laplace(eps=1, unit=event)", attacks=Fingerprint())
        frame = scored(even, plan, plan.tasks[0])
        assert plan.targets == KNOWN_TARGETS
        assert frame["score"][0] == KNOWN_SCORE


KNOWN_TARGETS = (7, 48, 6)
KNOWN_SCORE = 230071874772191.0


class TestUtility:
    def kept(self, traces, mechanism):
        plan = plan_of(traces, targets=1, mechanisms=mechanism)
        table = scored(traces, plan, only(plan))
        (row,) = table.select(OF_UTILITY).unique().to_dicts()
        return row

    def test_all_is_left_of_what_is_published_as_it_is(self, city):
        found = self.kept(city, "raw")
        assert found == pytest.approx(
            {"visits_kept": 1, "cells_kept": 1, "relative_error": 0, "pattern_correlation": 1}
        )

    def test_nothing_is_left_of_what_is_suppressed(self, city):
        assert self.kept(city, "suppress(k=100)") == {
            "visits_kept": 0,
            "cells_kept": 0,
            "relative_error": 1,
            "pattern_correlation": 0,
        }

    def test_visits_that_a_bound_drops_are_lost(self, even):
        """Of five visits on a day, one is counted."""
        assert self.kept(even, ONE_A_DAY)["visits_kept"] == pytest.approx(1 / VISITS)

    def test_some_is_left_in_between(self, city):
        found = self.kept(city, "suppress(k=1)")
        assert 0 < found["visits_kept"] < 1
        assert 0 < found["cells_kept"] < found["visits_kept"]
        assert 0 < found["pattern_correlation"] < 1


class PairGame(TargetGame):
    """Each target is asked about together with the next person, who is in when the target is not.

    In blocks of two rounds.
    """

    name = "pair"

    def tasks(self, plan):
        blocks = range(-(-plan.releases // 2))
        return tuple(Task(n, scheme, "block") for n in blocks for scheme in plan.schemes)

    def tests(self, plan, task, attack):
        return range(2 * task.number, min(2 * task.number + 2, plan.releases_by(attack)))

    def rounds(self, population, plan, task):
        return PairRounds(population, plan, task)


class PairRounds(TargetRounds):
    @property
    def target(self):
        return self.plan.targets[0]

    @property
    def other(self):
        return (self.target + 1) % N_USERS

    def test(self, i):
        drawn = super().test(i)
        is_in = drawn.labels[self.target]
        return replace(drawn, labels={self.target: is_in, self.other: not is_in})

    def control(self, i):
        return replace(super().control(i), labels={self.target: True, self.other: True})

    def players(self, contests):
        for player in super().players(contests):
            yield replace(player, fitted=player.fitted | {self.other: FittedFingerprint()})

    def optima(self, drawn):
        return {i: best | {self.other: 7.0} for i, best in super().optima(drawn).items()}


@pytest.mark.parametrize(
    "spec", ["raw", "laplace(eps=1, unit=event)", "laplace(eps=5, unit=user-day, max_visits=2)"]
)
def test_scores_do_not_depend_on_how_many_rounds_are_drawn_at_a_time(city, spec, monkeypatch):
    plan = plan_of(city, mechanisms=spec, targets=1, attacks="likelihood-ratio")
    together = scored(city, plan, only(plan))
    monkeypatch.setattr(scoring, "_MOST_IN_BLOCK", 0)
    assert without_times(scored(city, plan, only(plan))) == without_times(together)
    scene = scene_of(city, plan, only(plan))
    rounds = {i: scene.test(i) for i in range(6)}
    one_by_one = [scene.optima({i: drawn})[i] for i, drawn in rounds.items()]
    assert list(scene.optima(rounds).values()) == one_by_one


class TestOtherGames:
    def test_rows_name_who_is_asked_and_blocks_hold_their_own_rounds(self, even):
        plan = plan_of(even, targets=1, releases=6, control_releases=1, attacks="likelihood-ratio")
        plan = replace(plan, game=PairGame())
        assert [str(task) for task in plan.tasks] == [f"block {i} in raw, m={M}" for i in range(3)]
        frames = [scored(even, plan, task) for task in plan.tasks]
        rows = pl.concat(frames)
        pair = {plan.targets[0], (plan.targets[0] + 1) % N_USERS}
        for attack in ("likelihood-ratio", CEILING):
            tests = rows.filter(~pl.col("control"), attack=attack)
            assert set(tests["target"]) == pair
            assert sorted(set(tests["release"])) == list(range(6))
            labels = tests.group_by("release").agg(pl.col("label").sum(), pl.len())
            assert set(labels["label"]) == {1}
            assert set(labels["len"]) == {2}
        assert rows["fault"].null_count() == rows.height
        # Rounds are checked once, whoever is asked about.
        assert [frame["law"].count() for frame in frames] == [1, 1, 1]
        assert plan.to_json()["game"] == "pair"
