"""Several tables of the same people: the words for them, their noise, and what they guarantee."""

import math
from dataclasses import replace

import numpy as np
import pytest

from whosthere.adversary.counting import chance_of_being_counted, may_be_dropped
from whosthere.auditing.options import AuditOptions, Block
from whosthere.auditing.planning import make_plan
from whosthere.errors import InputError
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds
from whosthere.privacy.facts import Facts
from whosthere.privacy.guarantees import guarantee_for_all
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.scheme import ORDINARY, Layout, TableScheme
from whosthere.privacy.table_words import WrittenTable
from whosthere.privacy.trade_off import Budget

DAYS = Layout(epochs=24)


@pytest.fixture
def districts(tmp_path, regions):
    path = tmp_path / "districts.csv"
    rows = [f"{region},{'north' if i % 2 else 'south'}" for i, region in enumerate(regions.ids)]
    path.write_text("\n".join(["region,group", *rows]))
    return path


class TestWords:
    def test_say_which_cells_a_table_has(self, traces, districts):
        text = f"counts=visits, regions={districts},epochs=1d : round(to=5)"
        table = WrittenTable.parse(text)
        layout = table.over(traces)
        assert str(table.mechanism) == "round(to=5)"
        assert layout == Layout((1, 0) * 3 + (1,), 24, "visits", names=("north", "south"))
        assert str(layout) == f"regions={districts}, epochs=1d, counts=visits"
        assert layout(traces).regions.ids == ("north", "south")

    @pytest.mark.parametrize(
        "text", ["finest", "epochs=1h", "epochs=1", " finest ", "counts=people"]
    )
    def test_name_the_finest_cells(self, traces, text):
        assert WrittenTable.parse(text).over(traces) == ORDINARY

    def test_may_be_objects(self, traces):
        raw = Mechanism()
        for given in (TableScheme(raw, DAYS), (DAYS, "raw"), (DAYS, raw), ("epochs=24", raw)):
            table = WrittenTable.parse(given)
            assert (table.over(traces), table.mechanism) == (DAYS, raw)
        assert WrittenTable.parse(DAYS) == WrittenTable(DAYS)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "no name"),
            (": raw", "no name"),
            ("hours", "does not say which cells"),
            ("epoch=1d", "Did you mean 'epochs'"),
            ("epochs", "does not say which cells"),
            ("epochs=1d, epochs=2d", "twice"),
            ("counts=trips", "cannot count 'trips'"),
            ("epochs=1d: supress(k=1)", "suppress"),
            ("epochs=1d:", "mechanism"),
            ("epochs=90min", "multiple of 1h"),
            ("epochs=0", "multiple of 1h"),
            ("epochs=73", "3d at most"),
            ("epochs=long", "not a length of time"),
            ("regions=nowhere.csv", "nowhere.csv"),
            ("regions=1", "from 2 to 7"),
            (7, "is no table"),
            (("epochs=1d", 7), "7"),
        ],
    )
    def test_are_refused_with_what_would_do(self, traces, text, said):
        with pytest.raises(InputError) as refused:
            WrittenTable.parse(text).over(traces)
        assert said in str(refused.value)

    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (["r0,a"], "no group for 6 of 7"),
            ([f"r{i},a" for i in range(7)] + ["r3,b"], "several groups"),
            ([], "no rows"),
        ],
    )
    def test_need_a_group_for_each_region(self, traces, tmp_path, rows, said):
        path = tmp_path / "d.csv"
        path.write_text("\n".join(["region,group", *rows]))
        with pytest.raises(InputError, match=said):
            WrittenTable.parse(f"regions={path}").over(traces)


class TestOptions:
    def test_a_table_without_a_mechanism_takes_each(self, traces):
        block = Block(["raw", "suppress(k=1)"], 10, attacks="likelihood-ratio")
        both = Block(
            ["raw", "suppress(k=1)"],
            10,
            attacks="likelihood-ratio",
            tables=["finest", "epochs=1d: round(to=5)"],
        )
        assert [str(one.setting) for one in both.contests(traces)] == [
            "finest: raw + epochs=1d: round(to=5), m=10",
            "finest: suppress(k=1) + epochs=1d: round(to=5), m=10",
        ]
        assert [str(one.setting) for one in block.contests(traces)] == [
            "raw, m=10",
            "suppress(k=1), m=10",
        ]

    def test_tables_alike_are_named_together(self, traces):
        block = Block("raw", 10, tables=["finest", "epochs=4h", "epochs=1d"])
        setting = next(block.contests(traces)).setting
        assert str(setting) == "raw over finest + epochs=4h + epochs=1d, m=10"
        assert setting.scheme.in_words.endswith("in 3 tables: finest; epochs=4h; epochs=1d")

    def test_the_same_table_may_be_published_twice(self, traces):
        block = Block(group_size=10, tables=["finest: raw", "finest: raw"])
        assert len(next(block.contests(traces)).setting.scheme.tables) == 2

    def test_slips_are_refused(self, traces):
        with pytest.raises(InputError, match="nothing takes a mechanism"):
            next(Block("raw", 10, tables="finest: raw").contests(traces))
        with pytest.raises(InputError, match="no mechanism"):
            next(Block(group_size=10, tables="finest").contests(traces))

    def test_other_regions_are_another_plan(self, traces, districts):
        options = AuditOptions.of(
            group_size=5, targets=2, attacks="likelihood-ratio", tables=f"regions={districts}: raw"
        )
        before = make_plan(options, traces).to_json()
        text = districts.read_text().replace("r3,north", "r3,south")
        districts.write_text(text)
        after = make_plan(options, traces).to_json()
        assert before["contests"] == after["contests"]
        assert before != after


class TestUnits:
    @pytest.mark.parametrize(
        ("table", "fits"),
        [
            ("epochs=1d: laplace(eps=1, unit=user-day, max_visits=3)", True),
            ("epochs=2d: laplace(eps=1, unit=user-day, max_visits=3)", False),
            ("epochs=5h: laplace(eps=1, unit=user-day, max_visits=3)", False),
            ("epochs=2d: laplace(eps=1, unit=user, max_visits=3)", True),
            ("epochs=2d: laplace(eps=1, unit=event)", True),
            ("epochs=1d, counts=visits: gaussian(eps=1, delta=1e-5, unit=event)", True),
            ("epochs=1d: gaussian(eps=1, delta=1e-5, unit=user, max_visits=3)", True),
            (
                "epochs=1d, counts=visits: gaussian(eps=1, delta=1e-5, unit=user, max_visits=3)",
                False,
            ),
        ],
    )
    def test_that_a_table_cannot_express_are_refused(self, traces, table, fits):
        options = AuditOptions.of(
            group_size=5, targets=2, attacks="likelihood-ratio", tables=["finest: raw", table]
        )
        if fits:
            make_plan(options, traces)
        else:
            with pytest.raises(InputError, match=r"whole epochs|several of one person"):
                make_plan(options, traces)


class TestSums:
    def test_bound_the_visits_before_they_are_added_up(self, traces):
        """Of each person and day, at most 2 visits are left, and no fewer than there were."""
        unit = Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=2)")
        laid = Layout(epochs=24, counts="visits")(traces)
        bounded = unit.bound(laid, np.random.default_rng(1))
        days = np.arange(3, dtype=np.int32)
        before, after = (one.visits_per_period(days) for one in (laid, bounded))
        assert before.max() > 2
        assert np.array_equal(after, np.minimum(before, 2))

    def test_any_visit_may_be_dropped_where_a_cell_takes_several(self, traces):
        """Three cells a day are no more than 5 visits; as sums of 24 hours they may hold 72."""
        layout = Layout(regions=(0, 0, 1, 1, 1, 2, 2), epochs=24)
        mechanism = Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=5)")
        for counts, dropped in (("people", False), ("visits", True)):
            laid = replace(layout, counts=counts)(traces)
            facts = Facts.of(laid, 10, mechanism)
            assert may_be_dropped(np.array([0, 1], np.int32), facts).all() == dropped

    def test_all_visits_to_a_cell_compete_for_the_bound(self, traces):
        """Of 3 and 7 visits on one day, 5 are counted: each of the 10 with chance 1/2."""
        laid = Layout(epochs=24, counts="visits")(traces)
        mechanism = Mechanism.parse("laplace(eps=1, unit=user-day, max_visits=5)")
        facts, cells = Facts.of(laid, 10, mechanism), np.array([0, 3], np.int32)
        found = chance_of_being_counted(cells, facts, added=np.array([3, 7], np.int32))
        assert found == pytest.approx([0.5, 0.5])


class TestGuarantees:
    def of(self, traces, *tables):
        return guarantee_for_all(
            [(Mechanism.parse(spec), layout(traces)) for spec, layout in tables]
        )

    def test_add_up(self, traces):
        """Whatever the noise: for a whole person, of each table the same eps."""
        user = "laplace(eps=0.3, unit=user, max_visits=3)"
        other = "laplace(eps=0.5, unit=user, max_visits=2)"
        assert self.of(traces, (user, ORDINARY)).worst.eps == pytest.approx(0.6)
        assert self.of(traces, (user, ORDINARY), (user, DAYS)).worst.eps == pytest.approx(1.2)
        both = self.of(traces, (user, ORDINARY), (other, DAYS)).worst
        assert both.eps == both.pure_eps == pytest.approx(1.6)
        assert both.auc == Budget(both.eps).auc

    def test_of_several_noises_leave_out_what_one_does(self, traces):
        wide = ["laplace(eps=0.3, unit=user, max_visits=30)", "gaussian(eps=0.3)"]
        both = self.of(traces, (wide[0], ORDINARY), (wide[1], DAYS)).worst
        assert both.delta == pytest.approx(1e-6)
        assert both.pure_eps == math.inf
        more = self.of(traces, (wide[0], ORDINARY), (wide[0].replace("30", "31"), DAYS)).worst
        assert more.delta == pytest.approx(1e-6)
        assert more.eps < more.pure_eps < 1.2

    def test_need_a_guarantee_of_every_table(self, traces):
        assert self.of(traces, ("laplace(eps=1, unit=event)", ORDINARY), ("raw", DAYS)) is None

    def test_do_not_take_a_sum_for_visits_to_different_cells(self, traces):
        """A person's visits in one cell are told apart far better than in different ones."""
        spec, sums = "laplace(eps=0.05, unit=event)", Layout(epochs=72, counts="visits")
        people, visits = self.of(traces, (spec, Layout(epochs=72))), self.of(traces, (spec, sums))
        assert isinstance(visits.worst.curve, Budget)
        assert visits.worst.auc > people.worst.auc


def test_people_have_the_same_keys_in_all_tables(traces):
    """Cells with the same people change alike, in whichever table; other noise is fresh."""
    for spec, same in (("cell-key(d=4, v=2)", True), ("laplace(eps=1, unit=event)", False)):
        options = AuditOptions.of(
            group_size=5, targets=1, attacks="likelihood-ratio", tables=[f"finest: {spec}"] * 2
        )
        plan = make_plan(options, traces)
        rounds = TargetRounds(Population.of(traces), plan, plan.tasks[0])
        one, other = rounds.test(0).publication.releases
        assert np.array_equal(one.values, other.values) == same
