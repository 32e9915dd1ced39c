"""Units of work: who is in which release, and what scores may depend on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from whosthere.auditing.plan import PlanOptions, Unit, make_plan
from whosthere.auditing.scores import SCHEMA
from whosthere.auditing.unit import Scene, score_unit
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces

N_USERS = 50
N_CELLS = 6 * 24
VISITS = 5
M = 12
CHEAP = ("contradiction-rule", "likelihood-ratio", "likelihood-ratio-reference", "log-likelihood")
# Noise too weak to be seen: the chance of any noise in a cell is below 1e-80.
ONE_A_DAY = "discrete-laplace(eps=200, unit=user-day, max_visits=1)"


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
    usual = {"mechanisms": ("raw",), "group_sizes": (M,), "releases": 6, "targets": 3}
    return make_plan(PlanOptions(**usual | {"attacks": CHEAP} | chosen), traces)


def only(plan):
    (unit,) = plan.units
    return unit


def without_times(table):
    return table.drop_columns(["seconds"]).to_pylist()


def all_releases(scene):
    return [*scene.tests(), *scene.controls()]


def flat(published):
    return published.release.counts.reshape(-1)


class TestPeople:
    @pytest.mark.parametrize("reference", [0, 10, 25])
    def test_reference_pool_and_target_are_everybody_once(self, even, reference):
        plan = plan_of(even, reference_size=reference, attacks=("likelihood-ratio",))
        for unit in plan.units:
            scene = Scene(even, plan, unit)
            known = [even.users.index(user) for user in scene.auxiliary.real_traces.users]
            assert len(known) == reference
            together = [unit.target, *known, *scene.pool.tolist()]
            assert sorted(together) == list(range(N_USERS))

    def test_targets_have_other_references(self, even):
        plan = plan_of(even)
        pools = {tuple(Scene(even, plan, unit).pool.tolist()) for unit in plan.units}
        assert len(pools) == len(plan.targets)

    def test_every_group_has_its_size(self, even):
        """Everybody has as many visits, so that the total tells how many people there are."""
        plan = plan_of(even, control_releases=4)
        for unit in plan.units:
            for published in all_releases(Scene(even, plan, unit)):
                assert flat(published).sum() == M * VISITS

    def test_nobody_of_the_reference_is_in_a_release(self, even):
        plan = plan_of(even, control_releases=4)
        for unit in plan.units:
            scene = Scene(even, plan, unit)
            possible = even.counts(np.append(scene.pool, unit.target)).reshape(-1)
            for published in all_releases(scene):
                assert (flat(published) <= possible).all()


class TestReleases:
    def test_every_other_one_holds_the_target(self, even):
        plan = plan_of(even, target_ids=("u00",), releases=10)
        tests = list(Scene(even, plan, only(plan)).tests())
        there = [bool((flat(published)[:VISITS] == 1).all()) for published in tests]
        assert there == [True, False] * 5
        assert [published.others is not None for published in tests] == there
        for published in tests[1::2]:
            assert not flat(published)[:VISITS].any()

    def test_controls_never_hold_the_target(self, even):
        plan = plan_of(even, target_ids=("u00",), control_releases=30)
        controls = list(Scene(even, plan, only(plan)).controls())
        assert len(controls) == 30
        for published in controls:
            assert not flat(published)[:VISITS].any()

    def test_the_audit_knows_the_others_in_the_targets_cells(self, city):
        plan = plan_of(city)
        for unit in plan.units:
            own = city.trace(unit.target)
            scene = Scene(city, plan, unit)
            visitors = city.counts(scene.pool).reshape(-1)
            for published in list(scene.tests())[::2]:
                counts = flat(published)
                assert (counts[own] >= 1).all()
                np.testing.assert_array_equal(published.others, counts[own] - 1)
                without = counts.copy()
                without[own] -= 1
                assert (without <= visitors).all()

    def test_groups_change_from_release_to_release(self, even):
        plan = plan_of(even, control_releases=6)
        seen = {flat(one).tobytes() for one in all_releases(Scene(even, plan, plan.units[0]))}
        assert len(seen) == 12

    def test_the_same_groups_meet_every_protection(self, city):
        plan = plan_of(city, mechanisms=("raw", "suppress(k=1)"), control_releases=4)
        raw, suppressed = (
            [
                [flat(one) for one in all_releases(Scene(city, plan, Unit(target, setting)))]
                for target in plan.targets
            ]
            for setting in plan.settings
        )
        raw, suppressed = np.array(raw), np.array(suppressed)
        assert (raw == 1).any()
        np.testing.assert_array_equal(suppressed, np.where(raw > 1, raw, 0))

    def test_bounds_hold_for_the_target_too(self, even):
        plan = plan_of(even, mechanisms=(ONE_A_DAY,), target_ids=("u00",), control_releases=4)
        scene = Scene(even, plan, only(plan))
        for published in all_releases(scene):
            assert flat(published).sum() == M
        kept = set()
        for published in list(scene.tests())[::2]:
            assert flat(published)[:VISITS].sum() == 1
            assert published.others.tolist() == [0]
            kept.add(int(flat(published)[:VISITS].argmax()))
        assert len(kept) > 1  # fails by chance in 1 of 25 seeds

    def test_two_bounds_one_after_the_other(self, traces):
        spec = (
            "laplace(eps=1, unit=user, max_visits=3) | laplace(eps=1, unit=user-day, max_visits=1)"
        )
        plan = plan_of(
            traces, mechanisms=(spec,), target_ids=("u39",), attacks=("likelihood-ratio",)
        )
        assert score_unit(traces, plan, only(plan)).num_rows == 8


class TestTable:
    def test_rows(self, city):
        plan = plan_of(city, control_releases=3)
        for unit in plan.units:
            table = score_unit(city, plan, unit)
            assert table.schema == SCHEMA
            rows = table.to_pylist()
            keys = {(row["attack"], row["control"], row["release"]) for row in rows}
            wanted = {(name, False, i) for name in CHEAP for i in range(6)}
            wanted |= {(name, True, i) for name in CHEAP for i in range(3)}
            assert len(rows) == len(wanted)
            assert keys == wanted
            assert {row["target"] for row in rows} == {unit.target}
            assert {row["setting"] for row in rows} == {str(unit.setting)}
            assert {row["visits"] for row in rows} == {city.trace(unit.target).size}
            for row in rows:
                assert row["label"] == (row["control"] or row["release"] % 2 == 0)
                assert np.isfinite(row["score"])
                assert row["seconds"] >= 0

    def test_ceiling_and_uniqueness(self, city):
        plan = plan_of(
            city,
            mechanisms=("raw", "suppress(k=2)", "laplace(eps=1, unit=event)"),
            attacks=("likelihood-ratio",),
        )
        for unit in plan.units:
            (row,) = score_unit(city, plan, unit).slice(0, 1).to_pylist()
            assert 0.5 - 1e-9 <= row["ceiling"] <= 1
            assert 0 <= row["uniqueness"] <= 1

    def test_who_goes_where_nobody_goes_is_exposed_by_raw_counts(self, even):
        plan = plan_of(even, target_ids=("u00",), attacks=("likelihood-ratio",))
        rows = score_unit(even, plan, only(plan)).to_pylist()
        assert rows[0]["ceiling"] == pytest.approx(1, abs=1e-9)
        assert rows[0]["uniqueness"] == 1
        in_, out = (
            [row["score"] for row in rows if row["label"] == label and not row["control"]]
            for label in (True, False)
        )
        assert min(in_) > max(out)

    def test_what_is_suppressed_exposes_nobody(self, even):
        plan = plan_of(even, mechanisms=("suppress(k=1)",), target_ids=("u00",))
        assert score_unit(even, plan, only(plan))["ceiling"][0].as_py() == pytest.approx(0.5)


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
    def test_nothing_is_published(self, crowd):
        plan = plan_of(crowd, mechanisms=(f"suppress(k={M})",), attacks=("likelihood-ratio",))
        for unit in plan.units:
            table = score_unit(crowd, plan, unit)
            assert len(set(table["score"].to_pylist())) == 1
            assert table["ceiling"][0].as_py() == pytest.approx(0.5)

    def test_everybody_in_one_cell(self, crowd):
        plan = plan_of(
            crowd,
            mechanisms=("raw", "suppress(k=1)", "laplace(eps=1, unit=event)"),
            releases=20,
            attacks=("likelihood-ratio", "likelihood-ratio-reference"),
        )
        for unit in plan.units:
            assert np.isfinite(score_unit(crowd, plan, unit)["score"].to_numpy()).all()


class TestWhatScoresDependOn:
    def test_the_same_plan_gives_the_same_table(self, city):
        plan = plan_of(city, attacks=(*CHEAP, "knock-knock"))
        unit = plan.units[0]
        assert without_times(score_unit(city, plan, unit)) == without_times(
            score_unit(city, plan, unit)
        )

    def test_another_seed_gives_others(self, city):
        plan = plan_of(city)
        other = replace(plan, seed=1)
        unit = plan.units[0]
        assert without_times(score_unit(city, plan, unit)) != without_times(
            score_unit(city, other, unit)
        )

    @pytest.mark.parametrize("spec", ["raw", "laplace(eps=1, unit=event)"])
    def test_not_on_other_attacks(self, city, spec):
        chosen = ("likelihood-ratio", "knock-knock", "log-likelihood")
        plan = plan_of(city, mechanisms=(spec,), attacks=chosen)
        unit = plan.units[0]
        together = without_times(score_unit(city, plan, unit))
        for name in chosen:
            alone = score_unit(city, replace(plan, attacks=(name,)), unit)
            assert without_times(alone) == [row for row in together if row["attack"] == name]
        backwards = replace(plan, attacks=chosen[::-1])
        assert sorted(map(str, without_times(score_unit(city, backwards, unit)))) == sorted(
            map(str, together)
        )

    def test_not_on_other_settings_or_targets(self, city):
        plan = plan_of(
            city,
            mechanisms=("raw", "laplace(eps=1, unit=event)"),
            group_sizes=(M, 20),
            knowledge=("share=0.5", "regions=2"),
        )
        for unit in plan.units[:: len(plan.settings) + 1]:
            alone = replace(plan, settings=(unit.setting,), targets=(unit.target,))
            assert without_times(score_unit(city, alone, unit)) == without_times(
                score_unit(city, plan, unit)
            )

    def test_not_on_the_number_of_releases(self, city):
        plan = plan_of(city, attacks=("likelihood-ratio",))
        more = replace(plan, releases=2 * plan.releases, control_releases=9)
        unit = plan.units[0]
        # The ceiling is one over all releases, so it may change.
        few, many = (
            {
                (row["release"], row["control"]): row["score"]
                for row in score_unit(city, some, unit).to_pylist()
            }
            for some in (plan, more)
        )
        assert len(many) == 2 * plan.releases + 9
        assert few.items() <= many.items()
