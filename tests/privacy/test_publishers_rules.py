"""Steps that publishers use: the cell-key method, floors, scaling, rounding by size, zCDP noise."""

from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from whosthere.data.cities import simulate
from whosthere.data.traces import Group
from whosthere.errors import FileError, SpecError
from whosthere.privacy.cell_key import CellKey, Ptable
from whosthere.privacy.discrete_gaussian import DiscreteGaussian
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.possible import impossible
from whosthere.privacy.publish import publish
from whosthere.privacy.release import Release
from whosthere.privacy.rounding import RandomRound, RoundBySize
from whosthere.privacy.step import Span
from whosthere.privacy.trade_off import Concentrated, NormalShift
from whosthere.privacy.units import Event, UserDay


class TestLargeCounts:
    @pytest.mark.parametrize("text", ["census-drb", "multimno", "sdctools-d5", "wikimedia"])
    def test_chances_are_exact_for_hundreds_of_thousands(self, text):
        mechanism, m = Mechanism.parse(text), 400_000
        for count in (99_999, 123_456, 399_000):
            published = mechanism.apply(np.full(4000, count), m, np.random.default_rng(1))
            values, times = np.unique(published, return_counts=True)
            expected = 4000 * mechanism.pmf(values, count, m)
            assert (expected > 0).all()
            used = expected > 5
            observed = np.append(times[used], times[~used].sum())
            expected = np.append(expected[used], max(4000 - expected[used].sum(), 1e-6))
            statistic = ((observed - expected) ** 2 / expected).sum()
            assert stats.chi2.sf(statistic, expected.size) > 1e-6

    def test_rounding_by_size_as_the_census_bureau_says(self):
        step = Mechanism.parse("census-drb").steps[1]
        counts = np.array(
            [15, 94, 95, 99, 100, 124, 125, 175, 999, 1050, 1150, 9999, 10_250, 123_456]
        )
        # Halves go to the even multiple.
        rounded = [20, 90, 100, 100, 100, 100, 100, 200, 1000, 1000, 1200, 10_000, 10_000, 123_000]
        assert step.apply(counts.astype(np.int32), Span(0, 10**6)).tolist() == rounded


class TestRandomRounding:
    def test_as_statistics_new_zealand_says(self):
        """Remainder 1 goes down with chance 2/3, remainder 2 up with chance 2/3."""
        given = RandomRound(3, (1 / 3, 2 / 3))
        for step in (RandomRound(3), given):
            assert Mechanism((step,)).pmf([6, 9], 7, 100) == pytest.approx([2 / 3, 1 / 3])
            assert Mechanism((step,)).pmf([6, 9], 8, 100) == pytest.approx([1 / 3, 2 / 3])
            # Their own example.
            assert Mechanism((step,)).pmf([15, 18], 17, 100) == pytest.approx([1 / 3, 2 / 3])
        assert Mechanism.parse("random-round(to=3, up=1/3:2/3)").steps == (given,)

    @pytest.mark.parametrize("up", [(0.2,), (0.5, 0.2), (0.5, 1.5), (-0.1, 0.5)])
    def test_chances_that_make_no_sense_are_refused(self, up):
        with pytest.raises(SpecError):
            RandomRound(3, up)

    @pytest.mark.parametrize("up", ["1/0:1", "1e400:1", "nan:1", "0.1:x"])
    def test_chances_that_are_no_numbers_are_refused(self, up):
        with pytest.raises(SpecError, match="must be chances such as"):
            Mechanism.parse(f"random-round(to=3, up={up})")

    def test_bands_that_reverse_counts_are_refused(self):
        with pytest.raises(SpecError, match="reverse"):
            RoundBySize(((5, 10),))
        with pytest.raises(SpecError, match="rise"):
            RoundBySize(((15, 10), (15, 20)))


class TestCellKey:
    @pytest.mark.parametrize(("d", "v", "js"), [(2, 1.05, 1), (5, 3, 2), (3, 2, 0), (8, 9, 4)])
    def test_rows_have_mean_0_and_the_variance_asked_for(self, d, v, js):
        changes = CellKey(d, v, js).changes
        by = np.arange(changes.least, changes.largest + 1)
        for n, row in enumerate(changes.chances[1:], start=1):
            assert row @ by == pytest.approx(0, abs=1e-9)
            assert row @ by**2 <= v + 1e-9
            forbidden = (n + by < 0) | ((n + by >= 1) & (n + by <= js))
            assert not row[forbidden].any()
        assert row @ by**2 == pytest.approx(v)

    def test_no_other_row_has_more_entropy(self):
        """Moving along any direction that keeps sum, mean and variance loses entropy."""
        rng, changes = np.random.default_rng(3), CellKey(5, 3, 2).changes
        by = np.arange(-5, 6)
        entropy = lambda p: -(p * np.log(p)).sum()  # noqa: E731
        for row in changes.chances[1:]:
            used = row > 0
            p, x = row[used], by[used].astype(float)
            kept = np.stack([np.ones_like(x), x, x**2])
            for _ in range(20):
                move = rng.normal(size=x.size)
                move -= kept.T @ np.linalg.lstsq(kept.T, move, rcond=None)[0]
                if np.abs(move).max() < 1e-9:
                    continue
                move *= 0.3 * p.min() / np.abs(move).max()
                assert entropy(p + move) < entropy(p)

    def test_known_answer(self):
        """The symmetric row of D=5, V=3: weights exp(b x^2) with a variance of 3."""
        row = CellKey(5, 3, 2).changes.chances[-1]
        assert row == pytest.approx(row[::-1])
        ratios = np.log(row[5:-1] / row[6:]) / (2 * np.arange(5) + 1)
        assert ratios == pytest.approx(ratios[0])

    def test_too_little_variance_is_refused_with_the_least(self):
        with pytest.raises(SpecError, match=r"variance \(v\) of 6 or more"):
            CellKey(5, 4, 4)
        least = CellKey(5, 6, 4).changes.chances
        assert least.min() >= 0
        assert least.sum(axis=1) == pytest.approx(1)

    @pytest.mark.parametrize("js", [5, 6])
    def test_js_must_be_below_d(self, js):
        with pytest.raises(SpecError, match="js must be below d"):
            CellKey(5, 30, js)

    def test_the_largest_table_has_mean_0_and_a_variance_within_its_limit(self):
        least, chances, _ = changes = CellKey(100, 2600, 99).changes
        by = np.arange(least, changes.largest + 1)
        assert np.abs(chances @ by).max() < 1e-6
        assert (chances @ by**2).max() < 2600 + 1e-3
        with pytest.raises(SpecError, match="at most 100"):
            CellKey(1000, 250_000, 999)

    def test_a_limit_of_the_variance_is_called_one(self):
        assert "a variance of at most 1000" in CellKey(5, 1000).describe()

    def test_the_same_people_get_the_same_change(self):
        traces = simulate("milan-like", users=300, days=2, seed=1).traces()
        group = Group(traces, np.arange(120))
        step = CellKey(5, 3, 2)
        draw = step.draw_for(group, traces.shape, np.random.default_rng(0)).reshape(-1)
        assert (draw >= 0).all() and (draw < 1).all()  # noqa: PT018
        who = {}
        for row in range(120):
            for cell in traces.trace(row).tolist():
                who.setdefault(cell, set()).add(row)
        by_people = {}
        for cell, people in who.items():
            by_people.setdefault(frozenset(people), set()).add(draw[cell])
        assert max(map(len, by_people.values())) == 1
        assert len({next(iter(one)) for one in by_people.values()}) == len(by_people)
        assert any(len([c for c in who if who[c] == set(p)]) > 5 for p in by_people)

    def test_somebody_alone_draws_once(self):
        mechanism, m = Mechanism.parse("cell-key(d=5, v=3, js=2) | suppress(k=3)"), 100
        draws, values = mechanism.law(m).own_draws(), np.arange(8)
        assert math.fsum(math.exp(chance) for chance, _ in draws) == pytest.approx(1)
        mixed = sum(math.exp(chance) * (values == value) for chance, value in draws)
        assert mixed == pytest.approx(mechanism.pmf(values, 1, m))
        for text in ("random-round(to=3)", "suppress(k=1, shown=mark) | cell-key(d=5, v=3)"):
            assert Mechanism.parse(text).law(m).own_draws() == []

    def test_published_alike_where_the_same_people_are(self):
        traces = simulate("milan-like", users=300, days=2, seed=1).traces()
        made = publish(traces, mechanism="cell-key(d=5, v=3, js=2)", group_size=100, seed=4)
        alone = made.truth == 1
        for row in range(100):
            cells = made.group.trace(row)
            own = cells[alone.reshape(-1)[cells]]
            assert np.unique(made.release.values.reshape(-1)[own]).size <= 1


class TestTables:
    @pytest.fixture
    def ptable(self, tmp_path):
        """As the R package writes one, for D=2, V=1.05, js=1."""
        changes = CellKey(2, 1.05, 1).changes
        rows = [
            {"i": i, "j": i + v, "p": float(row[v + 2]), "v": v}
            for i, row in enumerate(changes.chances)
            for v in range(-2, 3)
            if row[v + 2] > 0
        ]
        path = tmp_path / "Changes.csv"
        pl.DataFrame(rows).write_csv(path, separator=";")
        return path

    def test_a_table_of_a_file_is_the_rule_that_it_came_from(self, ptable):
        mechanism, rule = Mechanism.parse(f"ptable({ptable})"), Mechanism((CellKey(2, 1.05, 1),))
        values = np.arange(12)
        for count in range(10):
            assert mechanism.pmf(values, count, 10) == pytest.approx(rule.pmf(values, count, 10))
        assert Mechanism.parse(str(mechanism)) == mechanism
        assert mechanism.content == Mechanism((Ptable(ptable),)).content

    def test_the_identity_is_what_the_table_holds(self, ptable, tmp_path):
        copy = tmp_path / "copy.csv"
        copy.write_bytes(ptable.read_bytes())
        first, second = Mechanism((Ptable(ptable),)), Mechanism((Ptable(copy),))
        assert first == second
        assert first.content == second.content
        copy.write_text(copy.read_text().replace("0.0", "0.0", 1) + "\n")
        assert Mechanism((Ptable(copy),)).content != first.content

    def test_a_table_by_keys_repeats_its_last_rows(self, tmp_path):
        """As the package of the ONS has it: a change for each count and key."""
        rows = [
            {"pcv": n, "ckey": key, "pvalue": (n % 2) * (1 if key % 4 == 0 else 0)}
            for n, key in itertools.product(range(1, 9), range(16))
        ]
        path = tmp_path / "table.csv"
        pl.DataFrame(rows).write_csv(path)
        mechanism = Mechanism((Ptable(path, again=2),))
        for count in (7, 9, 11, 1001):
            assert mechanism.pmf([count, count + 1], count, 2000) == pytest.approx([0.75, 0.25])
        for count in (8, 10, 2000):
            assert mechanism.pmf(count, count, 2000) == pytest.approx(1)
        # Rows 0 to 8: the first is of empty cells.
        assert Ptable(path, again=8).changes.again == 8
        with pytest.raises(SpecError, match="too few rows to repeat 9"):
            Ptable(path, again=9)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("a,b\n1,2\n", "neither the columns"),
            ("i,v,p\n1,0,0.5\n", "add up to 0.5"),
            ("i,v,p\n1,-2,1\n", "below 0"),
            ("i,v,p\n1,x,1\n", "no number"),
            ("i,v,p\n1,0.5,1\n", "no whole numbers"),
            ("i,v,p\n1.5,0,1\n", "no whole numbers"),
            ("i,v,p\n1,0,1\n,1,1\n", "no whole numbers"),
            ("i,v,p\n1,0,nan\n1,1,0.5\n", "no whole numbers"),
            ("i,v,p\n1,0,-0.1\n1,1,1.1\n", "a chance below 0"),
            ("i,v,p\n2000000000,0,1\n", "counts of 0 to 10,000"),
            ("i,v,p\n-1,0,1\n0,0,1\n1,0,1\n", "counts of 0 to 10,000"),
            ("i,v,p\n-1,1,0.5\n1,0,0.5\n", "counts of 0 to 10,000"),
            ("i,v,p\n0,0,0.5\n0,1,0.5\n1,0,1\n", "empty cells"),
            ("i,v,p\n2,0,1\n", "add up to 0 for a count of 1"),
            ("", "cannot be read"),
        ],
    )
    def test_what_is_no_table_is_refused(self, tmp_path, text, said):
        path = tmp_path / "bad.csv"
        path.write_text(text)
        with pytest.raises(FileError, match=said) as caught:
            Ptable(path)
        assert "bad.csv" in str(caught.value)

    def test_a_table_may_have_semicolons_and_commas_before_decimals(self, tmp_path):
        path = tmp_path / "table.csv"
        path.write_text("i;v;p\n0;0;1\n1;0;0,25\n1;1;0,75\n\n")
        assert Mechanism((Ptable(path),)).pmf([1, 2], 1, 9).tolist() == [0.25, 0.75]

    def test_large_scaled_counts_are_possible(self):
        values, mechanism = np.array([5130, 5131], np.int32), Mechanism.parse("scale(by=5.13)")
        assert impossible(values, mechanism, 2000).tolist() == [5131]

    def test_a_release_is_not_read_with_another_table(self, ptable, tmp_path):
        people = simulate("milan-like", seed=5, users=200, regions=9, days=1).traces()
        made = publish(
            people, mechanism=Mechanism((Ptable(ptable),)), group_size=40, seed=1
        ).release
        made.save(tmp_path / "made.parquet")
        assert Release.load(tmp_path / "made.parquet").mechanism == made.mechanism
        ptable.write_text("i,v,p\n1,0,1\n")
        with pytest.raises(FileError, match="another table of changes"):
            Release.load(tmp_path / "made.parquet")

    def test_a_missing_file_is_named(self):
        with pytest.raises(SpecError, match=r"Gone\.csv"):
            Mechanism.parse("ptable(Gone.csv)")


class TestDiscreteGaussian:
    @pytest.mark.parametrize("rho", [50.0, 0.5, 0.02, 1.3e-4, 1e-6])
    def test_tails_are_sums_of_the_law(self, rho):
        """On both sides of the deviation from which on tails are approximated."""
        noise = DiscreteGaussian(rho)
        weight = lambda k: -(k**2) / (2 * noise.scale**2)  # noqa: E731
        everything = math.log(
            1 + 2 * math.fsum(math.exp(weight(k)) for k in range(1, int(12 * noise.scale) + 40))
        )
        for z in {0, 1, int(noise.scale), int(5 * noise.scale), int(9 * noise.scale)}:
            further = range(z + 1, z + 1 + int(12 * noise.scale) + 40)
            tail = weight(z + 1) + math.log(
                math.fsum(math.exp(weight(k) - weight(z + 1)) for k in further)
            )
            assert float(noise.log_sf(z)) == pytest.approx(tail - everything, rel=1e-10)
            assert float(noise.log_cdf(-z - 1)) == pytest.approx(tail - everything, rel=1e-10)
            assert float(noise.log_between(z, z)) == pytest.approx(weight(z) - everything, rel=1e-8)

    @pytest.mark.filterwarnings("error")
    def test_wide_noise_warns_of_nothing(self):
        noisy = Mechanism((DiscreteGaussian(1e-6),))
        assert noisy.pmf(np.arange(10), 3, 9).sum() == pytest.approx(1)

    def test_the_scale_that_wikimedia_states(self):
        assert DiscreteGaussian(0.015, unit=UserDay(10)).scale == pytest.approx(18.26, abs=0.005)

    @pytest.mark.parametrize(("rho", "n"), [(0.3, 3), (2.0, 1), (0.1, 20), (1.0, 40)])
    def test_what_noise_in_several_cells_guarantees_is_exact(self, rho, n):
        """By the losses of all cells together, added up one by one; rounded up, and hardly."""
        noise, z = DiscreteGaussian(rho), np.arange(-40, 41)
        law = np.exp(noise.log_between(z, z))
        assert np.diff(noise.log_between(z, z)) == pytest.approx(-(2 * z[1:] - 1) * rho)
        sums = np.array([1.0])
        for _ in range(n):
            sums = np.convolve(sums, law)
        losses = (n + 2 * np.arange(-40 * n, 40 * n + 1)) * rho
        curve = noise.trade_off(n)
        for eps in (0.5, 1.5, 3.0, 10.0):
            exact = (sums * np.maximum(-np.expm1(np.minimum(eps - losses, 0)), 0)).sum()
            (bound,) = curve.delta_at(np.array([eps]))
            assert exact - 1e-16 <= bound <= exact + 1e-12
        tpr, fpr = (np.cumsum(side[::-1]) for side in (sums, np.append(sums[n:], np.zeros(n))))
        for rate in (1e-6, 1e-4, 0.01, 0.1, 0.9):
            exact = np.interp(rate, fpr, tpr)
            assert exact - 1e-14 <= curve.tpr(rate) <= exact + 1e-11
        for delta in (1e-9, 1e-6, 0.01):
            assert delta * 0.99 < curve.delta_at(np.array([curve.eps_at(delta)])) <= delta

    @pytest.mark.parametrize(
        ("rho", "unit", "n", "tpr"),
        [(0.1, Event(), 20, 0.372), (2.0, Event(), 1, 0.179), (0.05, UserDay(2), 192, 0.780)],
    )
    def test_rates_of_the_exact_curve(self, rho, unit, n, tpr):
        """zCDP alone allows 0.585, 0.585 and 0.995."""
        assert DiscreteGaussian(rho, unit=unit).trade_off(n).tpr(0.01) == pytest.approx(
            tpr, abs=5e-4
        )

    def test_wide_noise_falls_back_to_the_budget(self):
        assert DiscreteGaussian(1e-13).trade_off(1) == Concentrated(1e-13)

    def test_what_is_guaranteed_is_said_in_rho_and_in_eps_and_delta(self):
        said = Mechanism.parse("wikimedia").describe_guarantee()
        assert "with eps 0.7147 and delta 1e-6 (zero-concentrated with rho 0.015)" in said

    def test_a_budget_of_zcdp_allows_more_than_the_noise_does(self):
        for rho in (0.01, 0.5, 3.0):
            bound, noise = Concentrated(rho), NormalShift(math.sqrt(2 * rho))
            eps = np.linspace(0, 6, 25)
            assert (bound.delta_at(eps) >= noise.delta_at(eps)).all()
            assert bound.auc >= noise.auc
            assert (bound.tpr([0.001, 0.1]) >= noise.tpr([0.001, 0.1])).all()
            assert bound.delta_at(np.array([bound.eps_at(1e-6)])) == pytest.approx(1e-6, rel=1e-3)
