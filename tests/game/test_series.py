"""A table that is published again and again: the same people, or some who come and go."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.data.epochs import Epochs
from whosthere.data.regions import Regions
from whosthere.data.traces import Group, Traces
from whosthere.errors import InputError
from whosthere.game.rounds import Population
from whosthere.game.scoring import score_task
from whosthere.privacy.guarantees import guarantee_for_all
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import Layout, TableScheme
from whosthere.privacy.units import Event, UserDay, UserPeriod, UserWeek

DAY = timedelta(days=1)
WORDS = {"group_size": 10, "attacks": "likelihood-ratio", "targets": 2, "releases": 4, "seed": 1}


def plan_of(traces, **chosen):
    given = {"mechanisms": "raw", "weeks": (1, 2, 3), "every": "1d", **WORDS} | chosen
    return make_plan(AuditOptions.of(**given), traces)


def rounds_of(plan, traces):
    """Return the rounds of the first target, by how often a table is published."""
    people, target = Population.of(traces), plan.targets[0]
    tasks = [one for one in plan.tasks if one.number == target]
    return {one.scheme.tables[0].layout.times: plan.game.rounds(people, plan, one) for one in tasks}


def test_each_number_of_tables_is_a_setting_and_unsorted_numbers_are_sorted(traces):
    plan = plan_of(traces, weeks=(3, 1))
    assert list(map(str, plan.settings)) == ["raw over 1 day, m=10", "raw over 3 days, m=10"]
    assert str(plan_of(traces, every="12h", weeks=5).settings[0]) == (
        "raw over 5 periods of 12h, m=10"
    )


@pytest.mark.parametrize("turnover", [0.0, 0.3])
def test_a_series_is_the_beginning_of_a_longer_one(traces, turnover):
    by_times = rounds_of(plan_of(traces, turnover=turnover), traces)
    for i in range(4):
        one, two, three = (by_times[n].test(i).publication.only.counts for n in (1, 2, 3))
        assert (one == three[:, :24]).all()
        assert (two == three[:, :48]).all()


def test_what_the_data_do_not_cover_is_refused_with_how_much_they_do(traces):
    with pytest.raises(InputError, match=r"cover 3 days, less than the 4 days asked .*3 or less"):
        plan_of(traces, weeks=(1, 4))
    with pytest.raises(InputError, match="cover 0 weeks"):
        plan_of(traces, every="1w")
    with pytest.raises(InputError, match="whole epochs"):
        plan_of(traces, every="90min")


@pytest.mark.parametrize("wrong", [{"every": "1d"}, {"turnover": 0.1}])
def test_what_is_about_a_series_needs_one(wrong):
    with pytest.raises(InputError, match="again and again"):
        AuditOptions.of(mechanisms="raw", group_size=10, **wrong)


@pytest.mark.parametrize(
    "wrong", [{"weeks": 0}, {"weeks": 1.5}, {"turnover": 1}, {"turnover": "0.1"}, {"every": 7}]
)
def test_impossible_numbers_are_refused(wrong):
    given = {"mechanisms": "raw", "group_size": 10, "weeks": 1} | wrong
    with pytest.raises(InputError):
        AuditOptions.of(**given)


class TestNobodyThere:
    """Somebody without a visit in the published time stays in the sample."""

    @pytest.fixture
    def late(self, traces):
        """Return traces in which the first users have visits on the last day alone."""
        first = np.where(np.arange(traces.n_users) < 20, 2, 0)
        return traces.present(first, np.full(traces.n_users, 3), np.arange(72) // 24)

    @pytest.mark.parametrize(
        "attack", ["likelihood-ratio", "knock-knock", "zero-knowledge", "contradiction-rule"]
    )
    def test_no_attack_says_anything(self, late, attack):
        plan = plan_of(late, users=[late.users[15]], attacks=attack, weeks=(1, 3), releases=2)
        early = score_task(Population.of(late), plan, plan.tasks[0]).targets
        scores = early.filter(early["attack"] != "ceiling")
        assert scores["score"].to_list() == [0.0] * scores.height
        assert scores.filter(~scores["control"]).height == 2
        assert early["uniqueness"].to_list() == [0.0] * early.height


class TestUnits:
    """What is bounded by person is bounded in each table by itself."""

    def unit_of(self, unit, every):
        mechanism = Mechanism.parse(f"laplace(eps=1, {unit})")
        [found] = TableScheme(mechanism, Layout(times=2, every=every)).mechanism.units
        return found

    def test_a_person_is_a_person_in_one_table(self):
        week = timedelta(weeks=1)
        assert self.unit_of("unit=user, max_visits=5", week) == UserPeriod(5, None, 7)
        assert self.unit_of("unit=event", DAY) == Event()
        assert self.unit_of("unit=user-day, max_visits=5", week) == UserDay(5)
        assert self.unit_of("unit=user-week, max_visits=5", 2 * week) == UserWeek(5)

    @pytest.mark.parametrize(
        ("unit", "every"),
        [
            ("unit=user-week, max_visits=5", DAY),
            ("unit=user-week, max_visits=5", 10 * DAY),
            ("unit=user-day, max_visits=5", DAY / 2),
            ("unit=user, max_visits=5", DAY / 2),
        ],
    )
    def test_a_unit_that_reaches_into_the_next_table_is_refused(self, unit, every):
        with pytest.raises(InputError, match="tables of"):
            self.unit_of(unit, every)

    def test_budgets_add_up_in_the_game_that_is_played(self, traces):
        mechanism = Mechanism.parse("laplace(eps=0.1, unit=user, max_visits=2)")
        eps = []
        for times in (1, 2, 3):
            table = TableScheme(mechanism, Layout(times=times, every=DAY))
            people = table.layout(traces)
            found = guarantee_for_all([(table.mechanism, people)])
            eps.append(found.worst.eps)
        # Out and in: twice the budget of a table, in each table.
        assert eps == pytest.approx([0.2, 0.4, 0.6])


class TestTurnover:
    """A share of the others is replaced from each table to the next."""

    @pytest.fixture
    def few(self):
        """Return nine people over two regions and three epochs; the first is the target."""
        rng = np.random.default_rng(3)
        visits = [np.flatnonzero(rng.random(6) < 0.5) for _ in range(9)]
        visits = [some if some.size else np.array([2]) for some in visits]
        return Traces(
            tuple("abcdefghi"),
            np.cumsum([0, *map(len, visits)]),
            np.concatenate(visits).astype(np.int32),
            Regions(["x", "y"]),
            Epochs(datetime(2021, 6, 1, tzinfo=UTC), timedelta(hours=1), 3),
        )

    def rounds(self, traces, spec="raw", **chosen):
        given = {"every": "1h", "weeks": 3, "group_size": 3, "users": "a", "turnover": 0.5}
        plan = plan_of(traces, mechanisms=spec, **given | chosen)
        return rounds_of(plan, traces)[3]

    def test_tables_hold_m_people_and_the_last_stays(self, traces):
        plan = plan_of(traces, turnover=0.3, weeks=3)
        rounds = rounds_of(plan, traces)[3]
        for i in range(4):
            made = rounds.test(i).publication.only
            assert made.stays.sizes().tolist() == [10, 10, 10]
            assert (made.stays.first[-1], made.stays.until[-1]) == (0, 3)
            assert (made.group.rows[-1] == rounds.target) == (i % 2 == 0)
            # Three of nine others are replaced twice, by people who were in no table.
            assert np.unique(made.group.rows).size == made.group.n_users == 10 + 2 * 3
            assert made.release.facts.group_size == 10
            for table in range(3):
                there = (made.stays.first <= table) & (table < made.stays.until)
                part = slice(24 * table, 24 * (table + 1))
                assert (
                    made.counts[:, part] == traces.counts(made.group.rows[there])[:, part]
                ).all()

    @pytest.mark.parametrize(
        "spec", ["suppress(k=1)", "random-round(to=3)", "laplace(eps=1, unit=event)"]
    )
    def test_the_ceiling_is_the_best_test_by_brute_force(self, few, spec):
        rounds, mechanism = self.rounds(few, spec, releases=20), Mechanism.parse(spec)
        seen = set()
        for i in range(20):
            drawn = rounds.test(i)
            made = drawn.publication.only
            others = made.stays.within(few).counts(made.group.rows[:-1])
            free = np.setdiff1d(np.arange(1, 9), made.group.rows[:-1])

            def chance(person, others=others, made=made):
                true = others + Group(few, np.array([person])).counts()
                return np.prod(mechanism.pmf(made.release.values, true, 3))

            best = rounds.optima({i: drawn})[i][0]
            with_target, without = chance(0), np.mean([chance(x) for x in free])
            if with_target > 0 and without > 0:
                seen.add(i)
                assert best == pytest.approx(np.log(with_target / without), abs=1e-6)
            else:
                assert abs(best) > 1e8
        assert seen

    def test_sound_rounds_pass_and_faults_are_seen(self, traces):
        rounds = rounds_of(plan_of(traces, turnover=0.3, weeks=3), traces)[3]
        [check] = rounds.checks()
        for i in range(4):
            assert check.see(rounds.test(i)).fault is None
        drawn = rounds.test(0)
        made = drawn.publication.only
        stays = replace(made.stays, until=np.full(made.group.n_users, 3))
        for wrong in (
            replace(made, stays=stays),
            replace(made, stays=None),
            replace(made, group=Group(traces, made.group.rows)),
        ):
            publication = replace(drawn.publication, tables=(wrong,))
            assert check.see(replace(drawn, publication=publication)).fault is not None

    def test_it_belongs_to_the_identity_of_a_run(self, traces):
        assert plan_of(traces, turnover=0.3).to_json()["game"] == "target(turnover=0.3)"
        assert "game" not in plan_of(traces).to_json()
        assert any("30 %" in one for one in plan_of(traces, turnover=0.3).cautions)

    def test_more_people_than_there_are_are_refused(self, traces):
        with pytest.raises(InputError, match="holds 46 people, and 39 are left"):
            plan_of(traces, group_size=16, turnover=0.99)

    def test_own_groups_stay_the_same(self, traces):
        with pytest.raises(InputError, match="one of `groups` and `turnover`"):
            plan_of(traces, turnover=0.1, groups=lambda rng, people, n: people[:n])

    def test_bounded_and_coarser_tables_come_and_go_too(self, traces):
        spec = "laplace(eps=1, unit=user, max_visits=3)"
        plan = plan_of(traces, mechanisms=spec, turnover=0.3, weeks=3, releases=2)
        coarser = [
            replace(one, setting=one.setting.over(Layout(epochs=4))) for one in plan.contests
        ]
        for one in (plan, replace(plan, contests=tuple(coarser))):
            scores = score_task(Population.of(traces), one, one.tasks[0]).targets
            assert scores["fault"].drop_nulls().is_empty()
