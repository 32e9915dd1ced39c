"""Groups of a user's own: whole companies in a game, and a group that is given to publish."""

import runpy
import sys
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.judging import judge
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.prospects import obstacles
from whosthere.cli.main import main
from whosthere.data.clusters import Clusters, draw_group
from whosthere.data.reading.tables import read_clusters
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import STRONGEST

INFORMED = Path(__file__).parents[2] / "examples" / "informed_attacker.py"
SIZE = 6
WORDS = {"mechanisms": "suppress(k=1)", "group_size": 20, "attacks": "likelihood-ratio", "seed": 1}


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=7, users=400, days=1, regions=16).traces()


@pytest.fixture
def companies(city, tmp_path):
    """Write who works where: neighbours in the order of the traces, and the last few nowhere."""
    path = tmp_path / "companies.csv"
    rows = [f"{user},c{i // SIZE}" for i, user in enumerate(city.users[:-4])]
    path.write_text("\n".join(["user,group", *rows, "nobody,c0"]))
    return path


def plan_of(traces, **chosen):
    given = {**WORDS, "targets": 2, "releases": 4} | chosen
    return make_plan(AuditOptions.of(**given), traces)


def first_of(rng, people, n):
    """Draw people that follow one another."""
    start = rng.integers(people.size - n + 1)
    return np.sort(people)[start : start + n]


class TestClusters:
    def test_whole_ones_are_drawn_and_the_last_is_cut(self, rng):
        clusters = Clusters.by(np.arange(60) // 6)
        people = np.setdiff1d(np.arange(60), [7])
        sizes = np.bincount(clusters.of[people])
        for n in (1, 5, 6, 20, 59):
            group = clusters(rng, people, n)
            assert np.unique(group).size == n
            assert set(group) <= set(people)
            found = np.bincount(clusters.of[group], minlength=10)
            assert sum((found > 0) & (found < sizes)) <= 1

    def test_all_people_are_as_likely_where_clusters_are_alike(self):
        clusters = Clusters.by(np.arange(30) // 3)
        rng = np.random.default_rng(1)
        drawn = np.bincount(
            np.concatenate([clusters(rng, np.arange(30), 10) for _ in range(3000)]), minlength=30
        )
        assert np.abs(drawn / 3000 - 1 / 3).max() < 0.04

    def test_a_file_says_who_belongs_together(self, city, companies):
        of = read_clusters(companies, city.users).of
        expected = [i // SIZE for i in range(city.n_users - 4)]
        assert (of[:, None] == of)[:-4, :-4].tolist() == np.equal.outer(expected, expected).tolist()
        assert np.bincount(of)[of[-4:]].tolist() == [1] * 4

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("user,group\nnobody,a\n", "names nobody who is in the traces"),
            ("user,group\n{user},a\n{user},b\n", "has people in several groups"),
            ("user\n{user}\n", "columns user and group"),
            ("user,group\n", "has no rows"),
        ],
    )
    def test_files_that_say_nothing_are_refused(self, city, tmp_path, text, problem):
        path = tmp_path / "groups.csv"
        path.write_text(text.format(user=city.users[0]))
        with pytest.raises(wt.InputError, match=problem) as error:
            plan_of(city, groups=path)
        assert "groups.csv" in str(error.value)
        assert city.users[0] not in str(error.value)


class TestGame:
    def test_the_others_are_whole_companies_and_the_last_is_anybody(self, city, companies):
        of = read_clusters(companies, city.users).of
        lasts = []
        for one in wt.rounds(city, **WORDS, groups=companies, targets=4, releases=20):
            sizes, found = (np.bincount(of[rows], minlength=of.max() + 1)
                            for rows in (one.pool, one.others))  # fmt: skip
            assert sum((found > 0) & (found < sizes)) <= 1
            last = one.publication.group.rows[-1]
            assert (last == one.target) == one.label
            assert last not in one.others
            lasts += [] if one.label else [of[last] in of[one.others]]
        assert 0 < np.mean(lasts) < 0.5

    @pytest.mark.parametrize("by", ["file", "function"])
    def test_controls_hold_and_the_ceiling_stays_exact(self, city, companies, by):
        groups = companies if by == "file" else first_of
        chosen = {"groups": groups, "targets": 6, "releases": 20, "control_releases": 20}
        result = wt.audit(city, **WORDS, **chosen, what_if=False, workers=1)
        assert result.trusted
        assert result.verdicts[0].decision != "accept"
        assert any("not drawn uniformly" in one for one in result.cautions)
        informed = runpy.run_path(str(INFORMED))["Informed"]()
        for one in list(wt.rounds(city, **WORDS | {"mechanisms": "laplace(eps=1, unit=event)"},
                                  groups=groups, targets=2, releases=2)):  # fmt: skip
            assert one.score(informed).score == pytest.approx(one.ceiling, abs=1e-9)

    def test_it_is_part_of_the_identity(self, city, companies):
        def identity(**chosen):
            return plan_of(city, **chosen).to_json()

        usual, by_file = identity(), identity(groups=companies)
        assert "game" not in usual
        assert by_file == identity(groups=str(companies)) != usual
        companies.write_text(companies.read_text().replace(",c1\n", ",c2\n"))
        assert identity(groups=companies) != by_file

        def other(rng, people, n):
            return np.sort(people)[:n]

        class Drawer:
            def __call__(self, rng, people, n):
                return first_of(rng, people, n)

        assert identity(groups=Drawer()) == identity(groups=Drawer())
        assert identity(groups=partial(first_of)) == identity(groups=partial(first_of))
        other.__qualname__ = first_of.__qualname__
        assert identity(groups=first_of) == identity(groups=first_of) != identity(groups=other)

    @pytest.mark.parametrize(
        ("draw", "problem"),
        [
            (lambda _, people, n: people[: n - 1], "must return 19 different ones"),
            (lambda _, people, n: np.repeat(people[0], n), "1 different values"),
            (lambda _, people, n: people[:n] + 1000, "must return 19"),
            (lambda _, people, n: people[:n] + 0.5, "must return 19.* of float64"),
            ([[1, 2], [3, 4]], "list"),
            (lambda _, people, n: None, "must return 19"),
            (lambda _, people, n: np.random.default_rng().permutation(people)[:n], "from `rng`"),
        ],
    )
    def test_slips_are_found_at_once(self, city, draw, problem):
        with pytest.raises(wt.InputError, match=problem):
            plan_of(city, groups=draw)

    def test_a_frame_is_as_good_as_a_file_and_no_error_shows_it(self, city, companies):
        frame = pl.read_csv(companies, infer_schema=False)
        drawn = {plan_of(city, groups=given).game for given in (companies, frame)}
        assert len(drawn) == 1
        user = frame["user"][0]
        twice = pl.concat([frame, frame.with_columns(group=pl.lit("x"))])
        with pytest.raises(wt.InputError, match="several groups") as found:
            plan_of(city, groups=twice)
        assert user not in str(found.value)
        assert user not in repr(AuditOptions.of(mechanisms="raw", group_size=5, groups=twice))

    def test_who_may_be_in_cannot_be_changed(self, rng):
        def shuffled(rng, people, n):
            rng.shuffle(people)
            people[0] = 99
            return people[:n]

        people = np.arange(10)
        with pytest.raises(wt.InputError, match="must return 3"):
            draw_group(shuffled, rng, people, 3)
        assert (people == np.arange(10)).all()

    def test_nothing_is_accepted(self, city):
        [kept, broken] = ([Finding("raw", STRONGEST, "auc", auc, auc, auc, 50, 100, 100, None)]
                          for auc in (0.5, 0.9))  # fmt: skip
        policy = Policy("only AUC", {"auc": 0.6})
        [verdict] = judge(kept, policy, own_groups=True)
        assert verdict.decision == "cannot tell"
        assert verdict.reasons[0].startswith("The groups are not drawn uniformly")
        assert judge(kept, policy)[0].decision == "accept"
        assert judge(broken, policy, own_groups=True)[0].decision == "reject"
        plan = plan_of(city, groups=first_of)
        assert "`groups`" in obstacles(plan, plan.attacks, policy)[0]

    def test_plan_files_and_the_command_have_the_same_word(
        self, city, companies, tmp_path, monkeypatch, capsys
    ):
        plan = tmp_path / "plan.toml"
        plan.write_text(f"groups = {str(companies)!r}")
        assert read_plan_file(plan).groups == str(companies)
        city.save(tmp_path / "traces.parquet")
        told = "--mechanism raw --group-size 20 --attack likelihood-ratio --targets 2 --releases 4"
        command = ["whosthere", "audit", str(tmp_path / "traces.parquet"), *told.split(), "--json"]
        command += ["--groups", str(companies), "--dry-run", "--out", str(tmp_path / "run")]
        monkeypatch.setattr(sys, "argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        assert '"game": "target(groups=Clusters(' in capsys.readouterr().out


class TestPublish:
    def test_a_group_is_published_as_it_is_given(self, city):
        rows = [5, 3, 17]
        for given in (rows, np.array(rows, np.uint8), tuple(rows)):
            made = wt.publish(city, "raw", group=given, seed=1)
            assert made.group.rows.tolist() == [3, 5, 17]
            assert (made.release.counts == city.counts(rows)).all()
            assert made.release.group_size == 3

    @pytest.mark.parametrize(
        ("words", "problem"),
        [
            ({"group": [1, 2], "group_size": 2}, "both given"),
            ({"group": [1, 1, 2]}, "twice"),
            ({"group": [1]}, "hides nobody"),
            ({"group": []}, "hides nobody"),
            ({"group": [0, 10**6]}, "rows must lie in"),
            ({"group": [-1, 2]}, "rows must lie in"),
            ({"group": ["a", "b"]}, "whole numbers"),
            ({"group": [True, False]}, "whole numbers"),
            ({"group": [0.0, 1.0]}, "whole numbers"),
            ({"group": [[0, 1]]}, "whole numbers"),
            ({"group": {0, 1}}, "whole numbers"),
            ({"group": ["a"]}, "whole numbers"),
            ({"group": [1], "group_size": 2}, "both given"),
            ({"group": [0, 1], "audit": "run"}, "drawn at random"),
        ],
    )
    def test_what_is_no_group_is_refused(self, city, words, problem):
        with pytest.raises(wt.InputError, match=problem):
            wt.publish(city, "raw", seed=1, **words)
