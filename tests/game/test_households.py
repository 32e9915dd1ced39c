"""Whole households in or out: in the game of one target and in that of everybody."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.arrays import own
from whosthere.auditing.judging import guaranteed
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.planning import make_plan
from whosthere.cli.main import main
from whosthere.data.clusters import Clusters
from whosthere.data.reading.tables import read_households
from whosthere.data.traces import Group
from whosthere.game.everybody import EverybodyGame, EverybodyRounds
from whosthere.game.rounds import Population, Task
from whosthere.game.scoring import score_task
from whosthere.game.target import TargetRounds
from whosthere.privacy.guarantees import guarantee_for_all
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.trade_off import Budget

M = 40
WORDS = {"mechanisms": "suppress(k=1)", "group_size": M, "attacks": "likelihood-ratio", "seed": 1}
NOISY = "laplace(eps=1, unit=event)"
BOUNDED = "discrete-laplace(eps=2, unit=user, max_visits=2)"


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=7, users=1200, days=1, regions=16).traces()


@pytest.fixture(scope="module")
def frame(city):
    """Households of one to four in the order of the traces, one of seven, and some in none."""
    sizes = np.random.default_rng(3).integers(1, 5, city.n_users)
    sizes[0] = 7
    home = np.repeat(np.arange(sizes.size), sizes)[: city.n_users]
    homes = [f"h{i}" for i in home]
    return pl.DataFrame({"user": city.users, "household": homes})[:-20]


@pytest.fixture(scope="module")
def households(city, frame):
    return read_households(frame, city.users)


def plan_of(traces, frame, **chosen):
    given = {**WORDS, "targets": 4, "releases": 6, "together": frame} | chosen
    return make_plan(AuditOptions.of(**given), traces)


def rounds_of(traces, plan, row=None, scheme=None):
    row = plan.targets[0] if row is None else row
    task = Task(int(row), scheme or plan.schemes[0])
    return TargetRounds(Population.of(traces), plan, task)


def of_size(households, n):
    return int(np.flatnonzero(households.sizes[households.of] == n)[0])


def group_of(drawn):
    return drawn.publication.tables[0].group.rows


class TestFile:
    def test_a_file_says_who_lives_together(self, city, frame, households, tmp_path):
        home = dict(frame.iter_rows())
        for row in (0, 8, 100, city.n_users - 1):
            user = city.users[row]
            mates = [i for i, one in enumerate(city.users)
                     if one == user or (user in home and home.get(one) == home[user])]  # fmt: skip
            assert sorted(households.members(row)) == mates
            assert households.members(row)[-1] == row
        path = tmp_path / "homes.csv"
        frame.rename({"user": "person"}).write_csv(path)
        assert read_households(path, city.users) == households

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("user,household\nnobody,a\n", "names nobody who is in the traces"),
            ("user,household\n{0},a\n{0},b\n", "has people in several households"),
            ("user\n{0}\n", "columns user and household"),
            ("user,household\n", "has no rows"),
            ("user,household\n{0},a\n{1},b\n", "puts nobody with anybody else"),
            ("user,household\n{0},\n{1},\n", "names nobody"),
            ("user,household\n{0},a\nnobody,a\n", "puts nobody with anybody else"),
            ("household,person\na,{0}\na,{1}\n", "names nobody"),
        ],
    )
    def test_files_that_say_nothing_are_refused(self, city, tmp_path, text, problem):
        path = tmp_path / "homes.csv"
        path.write_text(text.format(*city.users))
        with pytest.raises(wt.InputError, match=problem) as error:
            plan_of(city, path)
        assert "homes.csv" in str(error.value)
        assert city.users[0] not in str(error.value)


class TestDrawing:
    def test_whole_ones_are_drawn_until_none_fits(self, rng, households):
        people = np.flatnonzero(households.of != households.of[0])
        for n in (0, 1, 2, 39, 300):
            rows = households.at_most(rng, people, n)
            assert np.unique(rows).size == rows.size <= n
            assert np.isin(rows, people).all()
            assert households.are_whole(rows)
            left = households.sizes[households.of[np.setdiff1d(people, rows)]]
            assert (left > n - rows.size).all()
            assert households.exactly(rng, people, n).size == n
        assert not households.are_whole(people[households.sizes[households.of[people]] > 1][:1])

    def test_households_of_one_size_are_as_likely(self):
        pairs, rng = Clusters.by(np.arange(40) // 2), np.random.default_rng(1)
        drawn = [pairs.exactly(rng, np.arange(40), 10) for _ in range(4000)]
        often = np.bincount(np.concatenate(drawn), minlength=40) / 4000
        # Each is 0.25 with a standard error of 0.007: beyond 4.5 of them once in 7,000.
        assert np.abs(often - 0.25).max() < 0.031

    def test_sizes_that_do_not_add_up_are_refused(self, rng):
        pairs = Clusters.by(np.arange(40) // 2)
        assert pairs.at_most(rng, np.arange(40), 9).size == 8
        with pytest.raises(wt.InputError, match="9 people cannot be drawn as whole households"):
            pairs.exactly(rng, np.arange(40), 9)

    def test_a_draw_that_got_stuck_is_made_anew(self):
        rng, three_and_two = np.random.default_rng(2), Clusters.by(np.array([0, 0, 0, 1, 1, 2, 2]))
        drawn = {tuple(three_and_two.exactly(rng, np.arange(7), 4)) for _ in range(20)}
        assert drawn == {(3, 4, 5, 6)}


class TestOneTarget:
    def test_households_are_in_or_out_as_a_whole_and_m_stays(self, city, frame, households):
        plan = plan_of(city, frame, attacks="zero-knowledge", group_size=20)
        for n in (1, 2, 4, 7):
            rounds = rounds_of(city, plan, of_size(households, n))
            own_home = set(households.members(rounds.target))
            assert len(own_home) == n
            assert not own_home & set(rounds.pool)
            assert not own_home & set(rounds.reference_rows)
            assert not set(rounds.pool) & set(rounds.reference_rows)
            assert rounds.pool.size + rounds.reference_rows.size + n == city.n_users
            assert 0 <= plan.reference_size - rounds.reference_rows.size < 4
            assert households.are_whole(rounds.reference_rows)
            for i in range(6):
                test, control = rounds.test(i), rounds.control(i)
                for drawn, is_in in ((test, i % 2 == 0), (control, False)):
                    rows = group_of(drawn)
                    assert np.unique(rows).size == rows.size == 20
                    assert households.are_whole(rows)
                    assert set(rows) & own_home == (own_home if is_in else set())
                    assert set(rows) <= own_home | set(rounds.pool)
                    assert (rows[-1] == rounds.target) == is_in
                assert test.labels == {rounds.target: i % 2 == 0}
                assert control.labels == {rounds.target: True}
            others = [set(group_of(rounds.test(i))) for i in (0, 2, 4)]
            assert len(set.intersection(*others) - own_home) < 20 - n

    def test_one_of_the_same_size_is_in_the_place_where_there_is_one(self, city, frame, households):
        plan = plan_of(city, frame)
        rounds = rounds_of(city, plan, of_size(households, 3))
        places = {frozenset(rounds.test(i).instead) for i in range(1, 60, 2)}
        assert len(places) > 10
        for place in places:
            assert len({int(households.of[row]) for row in place}) == 1
            assert len(place) == 3
        alone = rounds_of(city, plan, of_size(households, 7)).test(1)
        assert np.array_equal(group_of(alone)[-7:], alone.instead)
        assert alone.instead.size == 7
        assert households.are_whole(alone.instead)

    def test_the_same_groups_meet_every_mechanism(self, city, frame):
        plan = plan_of(city, frame, mechanisms=["raw", NOISY, BOUNDED])
        for i in range(4):
            of_each = [group_of(rounds_of(city, plan, scheme=one).test(i)) for one in plan.schemes]
            assert all(np.array_equal(of_each[0], rows) for rows in of_each)

    def test_targets_are_of_different_households(self, city, frame, households):
        plan = plan_of(city, frame, targets=100)
        assert np.unique(households.of[list(plan.targets)]).size == 100
        assert plan_of(city, frame, targets=30).targets == plan.targets[:30]
        with pytest.raises(wt.InputError, match="targets of different households") as error:
            plan_of(city, frame, targets=city.n_users - 20)
        n = np.unique(households.of).size
        assert f"Ask for {n} targets" in str(error.value)
        mates = [city.users[row] for row in households.members(of_size(households, 2))]
        with pytest.raises(wt.InputError, match="of the same household") as error:
            plan_of(city, frame, users=mates)
        assert not any(user in str(error.value) for user in mates)

    @pytest.mark.parametrize("mechanism", ["suppress(k=2)", NOISY, BOUNDED])
    def test_the_ceiling_is_the_quotient_of_the_laws(self, city, frame, households, mechanism):
        plan = plan_of(city, frame, mechanisms=mechanism)
        parsed = Mechanism.parse(mechanism)
        for n in (1, 3):
            rounds = rounds_of(city, plan, of_size(households, n))
            for i in range(4):
                drawn = rounds.test(i)
                made = drawn.publication.tables[0]
                known, place = group_of(drawn)[:-n], group_of(drawn)[-n:]
                base = made.counts - Group(made.counted.everybody, made.counted.rows[-n:]).counts()
                left = np.setdiff1d(rounds.pool, known)
                homes = [np.flatnonzero(households.of == home) for home in
                         np.unique(households.of[left])]  # fmt: skip
                blocks = [one for one in homes if one.size == n] + [
                    households.members(rounds.target)
                ]
                counts = [city.counts(one) for one in blocks]
                if parsed.bounds_visits:
                    rows = rounds.of_same_size.ravel()
                    rng = rounds.rng("would-be bounding", *plan.schemes[0].key, i)
                    kept = parsed.bound(city.select(rows), rng)
                    at = {row: j for j, row in enumerate(rows.tolist())}
                    counts = [kept.counts([at[row] for row in one.tolist()]) for one in blocks]
                really = [j for j, one in enumerate(blocks) if set(one) == set(place)]
                assert len(really) == 1
                counts[really[0]] = made.counts - base
                values = made.release.values
                laws = np.array([parsed.log_pmf(values, base + one, M).sum() for one in counts])
                expected = laws[-1] - np.logaddexp.reduce(laws[:-1]) + np.log(laws.size - 1)
                found = rounds.optima({i: drawn})[i][rounds.target]
                if np.isfinite(expected):
                    assert found == pytest.approx(expected, abs=1e-6)
                elif expected < 0:
                    assert found < -1e6
                else:
                    assert found > 1e6

    def test_where_several_stand_in_the_ceiling_knows_which(self, city, frame, households):
        plan, parsed = plan_of(city, frame, mechanisms=NOISY), Mechanism.parse(NOISY)
        rounds = rounds_of(city, plan, of_size(households, 7))
        for i in range(4):
            drawn = rounds.test(i)
            made, home = drawn.publication.tables[0], rounds.household
            base = made.counts - city.counts(group_of(drawn)[-7:])
            law_in, law_out = (parsed.log_pmf(made.release.values, base + city.counts(one), M).sum()
                               for one in (home, drawn.instead))  # fmt: skip
            found = rounds.optima({i: drawn})[i][rounds.target]
            assert found == pytest.approx(law_in - law_out, abs=1e-6)

    def test_no_ceiling_is_given_where_members_have_noise_of_their_own(self, city, frame):
        plan = plan_of(city, frame, mechanisms="cell-key(d=2, v=1, js=1)")
        scores = score_task(Population.of(city), plan, plan.tasks[0]).targets
        assert scores.filter(attack="ceiling")["score"].null_count() == 6
        assert scores.filter(attack="likelihood-ratio")["score"].null_count() == 0

    def test_the_checks_see_households_that_are_not_whole(self, city, frame, households):
        plan = plan_of(city, frame)
        rounds = rounds_of(city, plan, of_size(households, 3))
        [checks] = rounds.checks()

        def with_rows(drawn, rows):
            made = rounds.published("test", 0, rows, rng=rounds.rng("test group", M, 0))
            return replace(drawn, publication=made)

        test, control = rounds.test(0), rounds.control(0)
        rows = group_of(test)
        assert checks.see(test).fault is checks.fault_of_control(control) is None
        assert checks.see(rounds.test(1)).fault is None
        pairs = households.sizes[households.of] > 1
        spare = np.setdiff1d(rounds.pool[pairs[rounds.pool]], rows)
        torn = np.append(spare[:1], rows[1:])
        assert "group is not" in checks.see(with_rows(test, torn)).fault
        # A housemate stayed behind, or came in another's place.
        fewer = np.concatenate([rows[:-3], rounds.test(1).instead[:1], rows[-2:]])
        assert "label" in checks.see(with_rows(test, fewer)).fault
        mate = np.append(group_of(control)[:-1], rows[-2])
        assert "label" in checks.fault_of_control(with_rows(control, mate))

    @pytest.mark.parametrize("mechanism", ["suppress(k=1)", BOUNDED])
    def test_audits_pass_their_controls_and_say_what_they_are_about(self, city, frame, mechanism):
        chosen = {"mechanisms": mechanism, "targets": 20, "releases": 20, "control_releases": 10}
        result = wt.audit(city, **WORDS | chosen, together=frame, what_if=False, workers=1)
        assert result.trusted
        assert sum("Whole households" in one for one in result.cautions) == 1
        found = {one.attack: one.estimate for one in result.findings if one.metric == "auc"}
        assert found["likelihood-ratio"] <= found["ceiling"] + 0.05

    def test_several_tables_are_judged_together(self, city, frame):
        chosen = {"tables": ["finest", "epochs=1d: round(to=5)"], "mechanisms": NOISY}
        plan = plan_of(city, frame, **chosen)
        scores = score_task(Population.of(city), plan, plan.tasks[0]).targets
        assert scores.filter(attack="ceiling")["score"].null_count() == 0
        assert scores["fault"].drop_nulls().len() == 0


class TestTruth:
    def test_whole_households_are_found_more_easily_and_the_warning_goes(self):
        """Four who have the same trace: each adds to what gives the others away."""
        one_by_one = wt.simulate("milan-like", seed=7, users=2000, days=2, regions=25).traces()
        heads = np.arange(0, one_by_one.n_users - one_by_one.n_users % 4, 4)
        made = one_by_one.select(np.repeat(heads, 4))
        city = replace(made, users=tuple(f"{i:06d}" for i in range(made.n_users)), ledger=None)
        homes = pl.DataFrame({"user": city.users, "household": np.arange(made.n_users) // 4})
        words = {"mechanisms": "laplace(eps=0.3, unit=event)", "group_size": 100,
                 "attacks": "likelihood-ratio", "targets": 40, "releases": 20}  # fmt: skip
        found = {}
        for name, together in (("alone", None), ("whole", homes)):
            result = wt.audit(city, **words, together=together, what_if=False, workers=1)
            [auc] = [one for one in result.findings
                     if one.metric == "auc" and one.attack == "likelihood-ratio"]  # fmt: skip
            found[name] = auc
            warned = any("share more than half" in one for one in result.cautions)
            assert warned == (name == "alone")
        assert found["whole"].low > found["alone"].high


class TestPlan:
    def test_households_are_part_of_the_identity(self, city, frame, tmp_path):
        def identity(given, **chosen):
            return plan_of(city, given, **chosen).to_json()

        path = tmp_path / "homes.csv"
        frame.write_csv(path)
        assert "game" not in identity(None)
        assert identity(path) == identity(str(path)) == identity(frame) == identity(frame.lazy())
        assert identity(path)["game"].startswith("target(households=")
        assert identity(frame[::-1]) == identity(frame)
        split = frame.with_columns(
            household=pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("alone"))
            .otherwise("household")
        )  # fmt: skip
        assert identity(split) != identity(frame)

    def test_a_run_folder_notices_other_households(self, city, frame, tmp_path):
        chosen = {"targets": 2, "releases": 4, "what_if": False, "workers": 1}
        wt.audit(city, **WORDS, **chosen, together=frame, out=tmp_path / "run")
        again = wt.audit(city, **WORDS, **chosen, together=frame, out=tmp_path / "run")
        assert again.trusted is not False
        with pytest.raises(wt.InputError, match=r"another|differ|other"):
            wt.audit(city, **WORDS, **chosen, together=frame[:-60], out=tmp_path / "run")

    @pytest.mark.parametrize(
        ("chosen", "problem"),
        [
            ({"groups": lambda _, people, n: people[:n]}, "do not go with `groups`"),
            ({"turnover": 0.1, "weeks": 1}, "do not go with `turnover`"),
            ({"group_size": 6}, "do not hold the largest household"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, city, frame, chosen, problem):
        with pytest.raises(wt.InputError, match=problem):
            plan_of(city, frame, **chosen)

    def test_sizes_that_never_add_up_are_refused_at_once(self, city):
        n = city.n_users - city.n_users % 4
        fours = pl.DataFrame({"user": city.users, "household": np.arange(city.n_users) // 4})
        traces = city.select(np.arange(n))
        assert plan_of(traces, fours, group_size=40)
        with pytest.raises(wt.InputError, match="no sizes add up"):
            plan_of(traces, fours, group_size=42)

    def test_plan_files_and_commands_have_the_same_word(
        self, city, frame, tmp_path, monkeypatch, capsys
    ):
        homes, traces = tmp_path / "homes.csv", tmp_path / "traces.parquet"
        frame.write_csv(homes)
        city.save(traces)
        plan = tmp_path / "plan.toml"
        plan.write_text(f"together = {str(homes)!r}")
        assert read_plan_file(plan).together == str(homes)
        told = f"--mechanism raw --group-size {M} --attack likelihood-ratio --targets 2 --json"
        command = ["whosthere", "audit", str(traces), *told.split(), "--together", str(homes)]
        monkeypatch.setattr(sys, "argv", [*command, "--dry-run", "--out", str(tmp_path / "run")])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        assert '"game": "target(households=Clusters(' in capsys.readouterr().out

    @pytest.mark.slow
    def test_recommend_takes_households_too(self, city, frame):
        found = wt.recommend(
            city, group_size=M, families="suppress(k=?)", together=frame, targets=8, releases=4,
            attacks="likelihood-ratio", workers=1,
        )  # fmt: skip
        assert "households" in str(found.about) or found.cautions == ()


class TestGuarantee:
    def test_a_household_spends_what_its_members_spend(self, city, frame, households):
        plan = plan_of(city, frame, mechanisms=BOUNDED)
        [found] = guaranteed(plan, city).values()
        spends = (city.visits_per_user() > 0).astype(int)
        most = np.bincount(households.of, spends).max()
        # As many others, with one unit each, are in the place.
        assert found.worst.eps >= 2 * (most + 7)
        assert found.worst.eps <= 2 * (8 + 8)
        [alone] = guaranteed(plan_of(city, None, mechanisms=BOUNDED), city).values()
        assert alone.worst.eps == 4
        assert found.worst.auc > alone.worst.auc

    def test_a_household_and_as_many_others_are_what_is_replaced(self, city, households):
        mechanism = Mechanism.parse("discrete-laplace(eps=0.2, unit=user, max_visits=2)")
        found = guarantee_for_all([(mechanism, city)], households)
        # Each of them has one unit: k eps for k people.
        n = int(np.bincount(households.of, city.visits_per_user() > 0).max())
        most = int(households.sizes.max())
        assert Budget(0.2 * (n + most)).auc <= found.worst.auc <= Budget(0.2 * 2 * (most + 1)).auc

    def test_people_alone_have_what_they_had(self, city):
        mechanism = Mechanism.parse(NOISY)
        alone = Clusters.by(np.arange(city.n_users))
        one, other = (guarantee_for_all([(mechanism, city)], homes) for homes in (None, alone))
        # The sharper curve is only for visits to different cells, which households need not have.
        assert isinstance(other.worst.curve, Budget)
        assert not isinstance(one.worst.curve, Budget)
        assert other.worst.eps >= one.worst.eps * (1 - 1e-9)
        assert other.worst.auc >= one.worst.auc

    @pytest.mark.slow
    def test_no_ceiling_exceeds_it(self, city, frame):
        mechanism = "discrete-laplace(eps=0.05, unit=user, max_visits=1)"
        chosen = {"mechanisms": mechanism, "targets": 30, "releases": 20}
        result = wt.audit(city, **WORDS | chosen, together=frame, what_if=False, workers=1)
        found = {one.attack: one for one in result.findings if one.metric == "auc"}
        assert 0.5 < found["guarantee"].estimate < 0.9
        assert found["ceiling"].estimate < found["guarantee"].estimate + 0.03


class TestEverybody:
    @pytest.fixture
    def rounds(self, city, frame, households):
        plan = plan_of(city, frame, mechanisms=NOISY, reference_size=60)
        game = EverybodyGame(0.6, households=households)
        plan = replace(plan, game=game)
        return EverybodyRounds(Population.of(city), plan, plan.tasks[0], game)

    def test_members_share_their_label(self, rounds, households):
        assert households.are_whole(rounds.reference_rows)
        assert 57 <= rounds.reference_rows.size <= 60
        n_in = []
        for i in range(10):
            test, control = rounds.test(i), rounds.control(i)
            for drawn in (test, control):
                labels = drawn.labels_of(rounds.everybody)
                by_home = np.bincount(rounds.units, labels), np.bincount(rounds.units)
                assert (by_home[0][by_home[0] > 0] == by_home[1][by_home[0] > 0]).all()
            assert np.array_equal(group_of(test), np.flatnonzero(test.included))
            assert not np.isin(group_of(test), rounds.reference_rows).any()
            assert not np.array_equal(test.included, control.included)
            n_in.append(np.unique(households.of[group_of(test)]).size)
        # Of about 350 households, each with the chance 0.6: within 4.5 standard errors.
        n = np.unique(households.of[rounds.people]).size
        assert abs(np.mean(n_in) - 0.6 * n) < 4.5 * np.sqrt(0.24 * n / 10)

    def test_without_households_everybody_is_alone(self, rounds):
        plan = replace(rounds.plan, game=EverybodyGame(0.6))
        alone = EverybodyRounds(rounds.population, plan, rounds.task, plan.game)
        assert alone.units is None
        assert str(plan.game) == "everybody(include=0.6)"
        assert "households=" in str(rounds.game)

    @pytest.mark.parametrize("mechanism", ["suppress(k=2)", NOISY])
    def test_the_ceiling_is_with_the_household_against_without(
        self, city, rounds, households, mechanism
    ):
        parsed = Mechanism.parse(mechanism)
        scheme = make_plan(
            AuditOptions.of(**WORDS | {"mechanisms": mechanism}, targets=2), city
        ).schemes[0]
        rounds = EverybodyRounds(
            rounds.population, rounds.plan, replace(rounds.task, scheme=scheme), rounds.game
        )
        drawn = rounds.test(0)
        found = rounds.optimum_of_everybody(drawn)
        made = drawn.publication.tables[0]
        values, m = made.release.values, made.release.facts.most_count
        for place in range(0, rounds.everybody.size, 17):
            person = rounds.everybody[place]
            home = city.counts(households.members(person))
            others = made.counts - (home if drawn.included[person] else 0)
            given, without = (parsed.log_pmf(values, n, m) for n in (others + home, others))
            if np.isneginf(given).any():
                assert found[place] < -1e5
            elif np.isneginf(without).any():
                assert found[place] > 1e5
            else:
                assert found[place] == pytest.approx((given - without).sum(), abs=1e-5)

    def test_tasks_are_scored_without_a_fault(self, city, rounds):
        scores = score_task(rounds.population, rounds.plan, rounds.task)
        assert scores.targets["fault"].drop_nulls().len() == 0
        homes = dict(zip(rounds.everybody.tolist(), rounds.units.tolist(), strict=True))
        labels = scores.everybody.with_columns(unit=pl.col("person").replace_strict(homes))
        assert labels.group_by("release", "unit").agg(n=pl.col("label").n_unique())["n"].max() == 1

    def test_the_checks_see_a_household_that_is_torn(self, rounds, households):
        drawn = rounds.test(0)
        rows = group_of(drawn)
        of_two = rows[households.sizes[households.of[rows]] > 1][0]
        included = drawn.included.copy()
        included[of_two] = False
        made = rounds.published("test", 0, np.flatnonzero(included), rng=rounds.rng("x"))
        torn = replace(drawn, publication=made, included=own(included, np.bool_))
        [checks] = rounds.checks()
        assert checks.see(drawn).fault is None
        assert "household" in checks.see(torn).fault


class TestUnits:
    def test_what_members_add_is_added_up(self, city, rng):
        rows = rng.permutation(city.n_users)[:30]
        unit = np.arange(30) // 3
        made = Group(city, rows).together(unit)
        assert made.n_users == 10
        for i in range(10):
            assert np.array_equal(made.counts([i]), city.counts(rows[unit == i]))
        assert np.array_equal(made.counts(), city.counts(rows))
        again = Group.all_of(made).together(np.zeros(10, int))
        assert np.array_equal(again.counts([0]), city.counts(rows))
