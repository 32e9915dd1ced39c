"""Where and when people are found: sums that add up to scores, and show nobody."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from whosthere.adversary.scorer import Asked, table_for
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.cities import simulate
from whosthere.data.epochs import Epochs
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces
from whosthere.game import leaks
from whosthere.game.leaks import (
    LEAKS,
    add_up,
    leaks_of,
    others_to_look_at,
    rarely_visited,
)
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds

KNOWLEDGE = ("all", "share(0.5)", "regions(top=2)")
BOUNDED = "laplace(eps=5, unit=user-day, max_visits=3) | suppress(k=1)"


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()


@pytest.fixture(scope="module", autouse=True)
def enough_people():
    """Look at everybody: sums over few people are hidden."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "PEOPLE_TO_LOOK_AT", 400)
        patch.setattr(leaks, "FEWEST_TO_LOOK_AT", 400)
        yield


def plan_of(traces, **chosen):
    usual = {"mechanisms": "suppress(k=1)", "group_size": 40, "targets": 6, "releases": 4}
    usual |= {"attacks": "likelihood-ratio"}
    return make_plan(AuditOptions.of(**usual | chosen), traces)


def looked(traces, plan):
    """Return what leaks in each task, and the leaks and the marginals of all."""
    people = Population.of(traces, plan.first_epoch)
    others = dict(zip(plan.targets, others_to_look_at(plan, people.tested), strict=True))
    looks = {task: leaks_of(people, plan, task, others[task.number]) for task in plan.tasks}
    return looks, *add_up(plan, looks, rarely_visited(people.tested))


def fitted_in(rounds, contest):
    [player] = rounds.players([contest])
    return player.fitted[rounds.target]


def look_alone(traces, plan, task):
    return leaks_of(Population.of(traces), plan, task, ())


@pytest.fixture(scope="module")
def plan(city):
    return plan_of(city, knowledge=KNOWLEDGE, mechanisms=("suppress(k=1)", BOUNDED))


@pytest.fixture(scope="module")
def found(city, plan):
    return looked(city, plan)


class TestTerms:
    @pytest.mark.parametrize("knowledge", KNOWLEDGE)
    @pytest.mark.parametrize("mechanism", ["suppress(k=1)", "raw", BOUNDED])
    def test_they_add_up_to_the_score(self, city, knowledge, mechanism):
        plan = plan_of(city, knowledge=knowledge, mechanisms=mechanism, targets=3)
        for task in plan.tasks:
            scene = TargetRounds(Population.of(city), plan, task)
            fitted = fitted_in(scene, plan.contests[0])
            for i in range(4):
                release = scene.test(i).publication.release
                known = scene.known(plan.settings[0].knowledge)[0]
                table = table_for(known, release)
                terms = table.by_visit(Asked.of(table.rows(known), table.lines))
                answer = fitted.score(release)
                if answer.is_certain:
                    assert np.isneginf(terms.sum())
                else:
                    assert terms.sum() == pytest.approx(answer.score, abs=1e-5)


class TestPeople:
    def test_others_with_as_many_visits_each_once(self, city, plan, monkeypatch):
        monkeypatch.setattr(leaks, "PEOPLE_TO_LOOK_AT", 20)
        others = others_to_look_at(plan, city)
        assert len(others) == len(plan.targets)
        assert max(map(len, others)) - min(map(len, others)) <= 1
        people = [*plan.targets, *(row for some in others for row in some)]
        assert len(people) == len(set(people)) == 20
        visits = city.visits_per_user()
        assert visits[people].min() == visits[list(plan.targets)].min()

    @pytest.mark.parametrize(
        ("targets", "releases", "looked_at"), [(6, 4, 20), (6, 100, 60), (6, 2000, 100)]
    )
    def test_the_look_grows_with_the_audit(self, city, monkeypatch, targets, releases, looked_at):
        """To a fifth of the scores, within limits: not hundreds of people for a small one."""
        monkeypatch.setattr(leaks, "PEOPLE_TO_LOOK_AT", 100)
        monkeypatch.setattr(leaks, "FEWEST_TO_LOOK_AT", 20)
        plan = plan_of(city, targets=targets, releases=releases)
        monkeypatch.setattr(type(city), "visits_per_user", lambda self: np.ones(self.n_users))
        assert len(plan.targets) + sum(map(len, others_to_look_at(plan, city))) == looked_at

    def test_as_many_as_there_are(self, traces, monkeypatch):
        plan = plan_of(traces, group_size=10)
        visits = traces.visits_per_user()
        enough = (visits >= visits[list(plan.targets)].min()).sum()
        others = others_to_look_at(plan, traces)
        assert len(plan.targets) + sum(map(len, others)) == enough
        monkeypatch.setattr(leaks, "PEOPLE_TO_LOOK_AT", 3)
        assert others_to_look_at(plan, traces) == ((),) * len(plan.targets)

    def test_all_are_looked_at_under_every_scheme(self, city, plan, found):
        looks = found[0]
        everybody = {
            *plan.targets,
            *(row for some in others_to_look_at(plan, city) for row in some),
        }
        for scheme in plan.schemes:
            own = [look for task, look in looks.items() if task.scheme == scheme]
            assert set(pl.concat(own)["person"]) == everybody


class TestOneLook:
    def test_leaks_add_up_to_the_distance_of_scores(self, city, plan):
        """Of one person, over regions as over hours."""
        person = plan.tasks[0]
        look = look_alone(city, plan, person)
        scene = TargetRounds(Population.of(city), plan, person)
        trials = [scene.test(i) for i in range(leaks.RELEASES_TO_LOOK_AT)]
        for contest in plan.contests_under(person.scheme):
            fitted = fitted_in(scene, contest)
            scores = [fitted.score(trial.publication.release).score for trial in trials]
            assert [trial.labels[scene.target] for trial in trials] == [True, False]
            for axis in ("region", "hour"):
                own = look.filter(setting=str(contest.setting), axis=axis)
                assert own["leak"].drop_nans().sum() == pytest.approx(
                    scores[0] - scores[1], abs=1e-5
                )

    def test_only_known_places_leak(self, city, plan):
        person = plan.tasks[0]
        look = look_alone(city, plan, person)
        everywhere = look.filter(setting=str(plan.settings[0]), axis="region")
        visited = np.unique(city.trace(person.number) // city.epochs.n)
        assert everywhere.drop_nans("leak")["index"].to_list() == visited.tolist()

    def test_of_others_no_more_than_the_leaks(self, city, plan, found):
        for task, look in found[0].items():
            others = look.filter(pl.col("person") != task.number)
            assert others["leak"].is_finite().all()
            assert others["truth"].null_count() == others["estimated"].null_count() == others.height

    def test_an_other_leaks_as_a_target_would(self, city, plan, found):
        task, look = next(iter(found[0].items()))
        other = look.filter(pl.col("person") != task.number)["person"][0]
        alone = look_alone(city, plan, replace(task, number=other)).drop_nans("leak")
        same = look.filter(person=other)
        assert same["leak"].to_list() == alone["leak"].to_list()
        assert same["index"].to_list() == alone["index"].to_list()

    def test_one_who_is_ruled_out_leaks_a_finite_amount(self, city):
        plan = plan_of(city, mechanisms="raw")
        look = look_alone(city, plan, plan.tasks[0])
        assert look["leak"].drop_nans().is_finite().all()


class TestSums:
    def test_a_row_for_every_place(self, city, plan, found):
        _, found_leaks, marginals = found
        hours = np.unique(city.epochs.hours_of_week).tolist()
        for table in (found_leaks, marginals):
            for setting in plan.settings:
                own = table.filter(setting=str(setting))
                assert own.filter(axis="region")["index"].to_list() == list(range(25))
                assert own.filter(axis="hour")["index"].to_list() == hours
            assert table.height == len(plan.settings) * (25 + len(hours))
        assert found_leaks.schema == pl.Schema(LEAKS)

    def test_are_over_all_who_were_there(self, plan, found):
        looks, found_leaks, _ = found
        together = pl.concat(looks.values()).drop_nans("leak")
        by_place = together.group_by("setting", "axis", "index").agg(
            pl.len().alias("n"), pl.col("leak").sum().alias("sum")
        )
        joined = found_leaks.join(by_place, on=["setting", "axis", "index"], how="left")
        shown = joined.drop_nulls("leak")
        assert shown.height > joined.height // 3
        assert shown["targets"].to_list() == (shown["n"] // 5 * 5).to_list()
        assert shown["leak"].to_list() == pytest.approx(shown["sum"].to_list())
        assert shown["targets"].min() >= LEAST_PEOPLE
        hidden = joined.filter(pl.col("leak").is_null())
        assert hidden["targets"].null_count() == hidden.height

    def test_people_are_found_where_they_are(self, plan, found):
        for setting in plan.settings:
            own = found[1].filter(setting=str(setting), axis="region")
            assert own["leak"].sum() > 0

    def test_marginals_are_shares(self, city, plan, found):
        everything = dict.fromkeys(("region", "hour"), np.zeros(25, np.bool_))
        everything["hour"] = np.zeros(np.unique(city.epochs.hours_of_week).size, np.bool_)
        marginals = add_up(plan, found[0], everything)[1]
        sums = marginals.group_by("setting", "axis").agg(pl.col("truth", "estimated").sum())
        for row in sums.to_dicts():
            assert row["truth"] == pytest.approx(1)
            assert row["estimated"] == pytest.approx(1)
        own = marginals.filter(setting=str(plan.settings[0]), axis="region")
        by_region = city.counts().sum(axis=1)
        assert own["truth"].to_list() == pytest.approx((by_region / by_region.sum()).tolist())

    def test_marginals_of_rarely_visited_places_are_hidden(self, city, plan, found):
        region = city.cells // city.epochs.n
        people = np.repeat(np.arange(city.n_users), city.visits_per_user())
        visitors = [np.unique(people[region == i]).size for i in range(25)]
        own = found[2].filter(setting=str(plan.settings[0]), axis="region")
        hidden = own["truth"].is_null()
        assert hidden.equals(own["estimated"].is_null())
        assert all(hidden[i] for i in range(25) if visitors[i] < LEAST_PEOPLE)
        together = np.unique(people[np.isin(region, np.flatnonzero(hidden))]).size
        assert together >= LEAST_PEOPLE or not hidden.any()

    def test_raw_counts_show_the_truth(self, city):
        _, _, marginals = looked(city, plan_of(city, mechanisms="raw", group_size=110))
        for axis in ("region", "hour"):
            own = marginals.filter(axis=axis).drop_nulls()
            assert np.corrcoef(own["truth"], own["estimated"])[0, 1] > 0.99

    def test_the_order_in_which_looks_end_does_not_matter(self, city, plan, found):
        looks, found_leaks, _ = found
        again = dict(reversed(looks.items()))
        assert add_up(plan, again, rarely_visited(city))[0].equals(found_leaks)


class TestHidden:
    def looks(self, visitors, hours=None):
        """Return the leaks of people with one visit each, in given regions and hours."""
        n = len(visitors)
        hours = [0] * n if hours is None else hours
        regions = Regions([f"r{i}" for i in range(4)])
        epochs = Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), 4, "UTC")
        cells = np.array(visitors) * 4 + np.array(hours)
        users = tuple(f"u{i:03d}" for i in range(n))
        traces = Traces(users, np.arange(n + 1), cells, regions, epochs)
        plan = plan_of(traces, group_size=n // 2)
        return looked(traces, plan)[1]

    def shown(self, table, axis):
        return table.filter(axis=axis).drop_nulls("leak")["index"].to_list()

    def test_few_people_are_not_shown(self):
        found = self.looks([0] * 20 + [1] * LEAST_PEOPLE + [2] * (LEAST_PEOPLE - 1) + [3] * 4)
        assert self.shown(found, "region") == [0, 1]

    def test_nor_follows_what_they_leak_from_the_total(self):
        """All hours are shown, so that one hidden region would be their sum less the others."""
        found = self.looks([0] * 20 + [1] * 9 + [2] * 7 + [3] * (LEAST_PEOPLE - 1))
        assert self.shown(found, "region") == [0, 1]

    def test_where_nobody_was_nothing_follows(self):
        found = self.looks([0] * 20 + [1] * 9 + [2] * 7)
        assert self.shown(found, "region") == [0, 1, 2]

    def test_all_targets_together_may_be_too_few(self, city):
        plan = replace(plan_of(city), targets=plan_of(city).targets[:1])
        looks = {task: look_alone(city, plan, task) for task in plan.tasks}
        table, _ = add_up(plan, looks, rarely_visited(city))
        assert table["leak"].null_count() == table.height
