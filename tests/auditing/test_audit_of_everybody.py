"""Audits of everybody: the same folder, seeds, workers and verdicts as for groups."""

import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.plan_file import read_plan_file
from whosthere.auditing.planning import make_plan
from whosthere.auditing.policy import Policy
from whosthere.auditing.prospects import prospects
from whosthere.auditing.risk import TABLES, EverybodysRisk, everybodys_risk, groupings_of
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.work import LocalProcesses
from whosthere.cli.main import main
from whosthere.errors import FileError, InputError
from whosthere.game.everybody import EverybodyGame, _EverybodyPlayer
from whosthere.game.rounds import Population
from whosthere.inference.naming import named
from whosthere.inference.panel import Panel
from whosthere.inference.vocabulary import CEILING
from whosthere.reporting.sections.overview import advice
from whosthere.reporting.sections.sure import sure_section

SAFE = "suppress(k=500)"
WORDS = {
    "mechanisms": ["suppress(k=1)", SAFE],
    "everybody": True,
    "include": 0.5,
    "releases": 12,
    "seed": 3,
}


@pytest.fixture(scope="module")
def city():
    return wt.simulate("milan-like", seed=5, users=2400, regions=9, days=1).traces()


@pytest.fixture(scope="module")
def path(city, tmp_path_factory):
    file = tmp_path_factory.mktemp("city") / "traces.parquet"
    city.save(file)
    return file


@pytest.fixture(scope="module")
def found(path, tmp_path_factory):
    return wt.audit(path, out=tmp_path_factory.mktemp("audit") / "run", workers=1, **WORDS)


def prepared(path, out, **chosen):
    return prepare_audit(path, AuditOptions.of(**(WORDS | chosen)), out)


def scores(result):
    files = sorted((result.folder / "everybody").glob("*.parquet"))
    return {one.name: pl.read_parquet(one) for one in files}


def same(one, other):
    assert one.keys() == other.keys()
    assert all(one[name].equals(other[name]) for name in one)


class TestWhatIsFound:
    def test_everybody_is_asked_and_judged(self, found, city):
        reject, useless = found.verdicts
        assert (reject.decision, useless.decision) == ("reject", "accept")
        assert useless.useless
        asked = {one.n_targets for one in found.findings if one.metric == "auc"}
        assert asked == {city.n_users}
        assert found.include == 0.5
        assert found.trusted
        assert f"All {city.n_users}" in found.asked.replace(",", "") or city.n_users % 5

    def test_the_advice_is_about_all_people_and_not_about_groups(self, found):
        accepted = replace(found.verdicts[1], useless=False)
        what, _ = advice(replace(found, verdicts=(accepted,)))
        assert "once and of all people together" in what
        assert "groups" not in what

    def test_each_round_tests_all_people(self, found, city):
        tests = pl.concat([one for name, one in scores(found).items() if "block" in name],
                          how="diagonal")  # fmt: skip
        first = tests.drop_nulls(
            "likelihood-ratio in suppress(k=1), m=" + str(found.verdicts[0].group_size)
        )
        by_round = first.group_by("release").agg(pl.len(), pl.col("label").sum())
        assert by_round.height == WORDS["releases"]
        assert set(by_round["len"]) == {city.n_users}
        # Binomial; 5 standard errors at 12 rounds are seen by chance in 1 of 100,000 cases.
        reach = 5 * np.sqrt(city.n_users) / 2
        assert (by_round["label"] - city.n_users / 2).abs().max() < reach

    def test_a_row_for_each_person_and_none_in_what_may_leave(self, found, city):
        risk = found.everybody
        assert risk.people.height == 2 * city.n_users
        assert set(risk.people["person"]) == set(range(city.n_users))
        for table in (risk.spread, risk.groups, risk.named, risk.curves):
            assert "person" not in table.columns
        assert (risk.groups["people"] >= 5).all()
        assert (risk.groups["people"] % 5 == 0).all()
        ends = risk.named.select("value", "low", "high").to_numpy()
        assert (ends % 5 == 0).all()
        assert (np.diff(ends[:, [1, 0, 2]], axis=1) >= 0).all()
        assert {"visits", "uniqueness", "region of most visits"} == set(risk.groups["by"])

    def test_curves_are_of_all_who_are_asked_in_the_report_and_in_pictures(self, found):
        setting = found.verdicts[0].setting
        rates = {one.attack: one for one in found.findings
                 if (one.setting, one.metric) == (setting, "tpr_at_fpr_10pct")}  # fmt: skip
        drawn = {curve.key.words: curve for panel in sure_section(found).curves[:1]
                 for curve in panel.figures["linear"].curves}  # fmt: skip
        assert drawn.keys() == {"likelihood-ratio", CEILING}
        (axis, *_) = found.plot("roc").axes
        lines = {line.get_label(): line.get_xydata() for line in axis.get_lines()}
        for attack, curve in drawn.items():
            at = curve.fpr.tolist().index(0.1)
            ends = curve.low[at], curve.tpr[at], curve.high[at]
            assert ends == (rates[attack].low, rates[attack].estimate, rates[attack].high)
            assert [0.1, rates[attack].estimate] in lines[attack].tolist()

    def test_curves_are_drawn_where_no_target_was_out(self, found):
        """Everybody was asked, whoever the targets are."""
        one_label = replace(found, scores=found.scores.filter("label"))
        for result in (found, one_label):
            assert len(sure_section(result).curves) == 2

    def test_of_few_people_the_page_is_about_everybody_too(self, found):
        """Too few for percentiles, and for a section of their own; nobody is a target."""
        few = replace(found, everybody=EverybodysRisk())
        page = wt.report(few).html
        assert "everybody, or of many people a random sample" in page
        assert "the targets, and others" not in page
        assert not re.search(r"\b1 rows", page)

    def test_only_what_has_a_value_can_be_drawn(self, found):
        """What was not resolvable is not offered as what may be meant."""
        unknown = [replace(one, estimate=None) if one.metric == "accuracy" else one
                   for one in found.findings]  # fmt: skip
        with pytest.raises(InputError, match="no 'accuracy' was measured") as caught:
            replace(found, findings=tuple(unknown)).plot("accuracy")
        assert str(caught.value).count("accuracy") == 1

    def test_people_with_more_visits_are_easier_to_find(self, found):
        groups = found.everybody.groups.filter(by="visits", setting=found.verdicts[0].setting)
        assert groups["auc"][0] < groups["auc"][-1]

    def test_what_is_read_is_what_was_written(self, found):
        again = wt.load(found.folder)
        assert again.to_json() == found.to_json()
        for name in TABLES:
            assert getattr(again.everybody, name).equals(getattr(found.everybody, name))
        page = wt.report(again).html
        assert "Everybody&#39;s risk" in page or "Everybody's risk" in page
        assert "--everybody" in page
        assert "--group-size" not in page.split("How to repeat")[-1].split("</pre>")[0]

    def test_no_id_is_in_any_file(self, found, city):
        ids = {user for user in city.users if len(user) > 4}
        for file in found.folder.rglob("*"):
            if file.suffix in {".json", ".txt", ".html"}:
                text = file.read_text(encoding="utf-8")
                assert not any(user in text for user in ids), file.name


class TestTheEngine:
    def test_workers_change_nothing(self, found, path, tmp_path):
        with LocalProcesses(2) as workers:
            other = prepared(path, tmp_path / "run").run(workers=workers, what_if=False)
        same(scores(found), scores(other))
        assert [one.to_json() for one in other.findings] == [
            one.to_json() for one in found.findings
        ]

    def test_an_interrupted_audit_resumes(self, found, path, tmp_path):
        def stop(what, done, _total):
            if what == "tasks" and done == 3:
                raise KeyboardInterrupt

        begun = prepared(path, tmp_path / "run")
        with pytest.raises(KeyboardInterrupt, match="3 of"):
            begun.run(on_progress=stop)
        kept = {one.name: one.stat().st_mtime_ns for one in (tmp_path / "run/tasks").iterdir()}
        assert len(kept) == 3
        other = prepared(path, tmp_path / "run").run(what_if=False)
        same(scores(found), scores(other))
        assert other.findings == found.findings
        now = {one.name: one.stat().st_mtime_ns for one in (tmp_path / "run/tasks").iterdir()}
        assert kept.items() <= now.items()

    def test_scores_without_their_task_are_made_again(self, found, path, tmp_path):
        """As after a machine stopped between the two files of a task."""
        first = prepared(path, tmp_path / "run").run(what_if=False)
        (tmp_path / "run/tasks/block-0-scheme-0.parquet").unlink()
        (tmp_path / "run/verdicts.json").unlink()
        again = prepared(path, tmp_path / "run").run(what_if=False)
        same(scores(found), scores(again))
        assert again.findings == first.findings

    def test_more_releases_and_attacks_are_added(self, found, path, tmp_path):
        prepared(path, tmp_path / "run", releases=4).run(what_if=False, leaks=False)
        options = AuditOptions.of(**WORDS)
        other = prepare_audit(path, options, tmp_path / "run", extend=True)
        result = other.run(what_if=False, leaks=False)
        same(scores(found), scores(result))
        attacks = ["likelihood-ratio", "likelihood-ratio(rates=rank-one)"]
        options = AuditOptions.of(**(WORDS | {"attacks": attacks}))
        more = prepare_audit(path, options, tmp_path / "run", extend=True)
        result = more.run(what_if=False, leaks=False)
        for name, table in scores(found).items():
            assert scores(result)[name].select(table.columns).equals(table)
        assert {one.attack for one in result.findings if one.metric == "accuracy"} == set(attacks)

    def test_another_chance_is_another_audit(self, found, path):
        with pytest.raises(FileError, match="include"):
            prepared(path, found.folder, include=0.6)

    def test_leaks_and_what_if(self, found):
        assert found.what_if
        assert {one.setting for one in found.what_if} == {found.verdicts[0].setting}
        assert found.leaks.filter(axis="region")["leak"].fill_null(0).sum() > 0


class TestFaults:
    """What would make numbers wrong is seen."""

    def test_an_attack_that_looks_at_labels_fails_the_control(self, path, tmp_path, monkeypatch):
        said = _EverybodyPlayer.said

        def peeking(self, drawn):
            answer = said(self, drawn)
            return answer._replace(everybody=drawn.labels_of(self.rows).astype(np.float64))

        monkeypatch.setattr(_EverybodyPlayer, "said", peeking)
        result = prepared(path, tmp_path / "run").run(what_if=False, leaks=False)
        assert result.trusted is False
        assert all(one.decision == "cannot tell" for one in result.verdicts)

    def test_an_attack_above_the_ceiling_fails(self, path, tmp_path, monkeypatch):
        """One that finds who is in where a coin says nothing else."""
        said = _EverybodyPlayer.said

        def knowing(self, drawn):
            answer = said(self, drawn)
            if drawn.key[0] == "control":
                return answer
            return answer._replace(everybody=drawn.labels_of(self.rows).astype(np.float64))

        monkeypatch.setattr(_EverybodyPlayer, "said", knowing)
        result = prepared(path, tmp_path / "run").run(what_if=False, leaks=False)
        assert result.trusted is False


class TestByFile:
    def test_groups_of_people(self, path, city, tmp_path):
        file = tmp_path / "people.csv"
        rows = [f"{user},{'AB'[i % 2]},{18 + i % 5}" for i, user in enumerate(city.users)]
        file.write_text("\n".join(["user,tariff,age", *rows]))
        result = wt.audit(path, by=file, workers=1, what_if=False, **(WORDS | {"releases": 4}))
        groups = result.everybody.groups.filter(setting=result.verdicts[0].setting)
        assert groups.filter(by="tariff")["group"].to_list() == ["A", "B"]
        assert groups.filter(by="age")["group"].to_list() == ["18", "19", "20", "21", "22"]

    def test_people_whom_it_leaves_out_are_told_and_not_counted(self, path, city, tmp_path):
        users = [*city.users[:-7], "Nobody"]
        frame = pl.DataFrame({"user": users}).with_columns(tariff=pl.lit("A"))
        options = AuditOptions.of(**WORDS)
        said = prepare_audit(path, options, tmp_path / "run", by=frame).plan.cautions
        assert any("say nothing of about 10 of the people" in one for one in said)
        assert any("name about 5 people who are not in the traces" in one for one in said)
        assert not any("Nobody" in one for one in said)

    def test_needs_everybody(self, path, tmp_path):
        frame = pl.DataFrame({"user": ["1"], "tariff": ["A"]})
        with pytest.raises(InputError, match="only where everybody is asked"):
            wt.audit(path, mechanisms=SAFE, group_size=20, by=frame, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"everybody": None}, "groups have a size"),
        ({"include": 1.0}, "is no chance of being in"),
        ({"include": 0}, "is no chance of being in"),
        ({"group_size": 20}, "`group_size` says nothing"),
        ({"users": ["1"]}, "`users` says nothing"),
        ({"turnover": 0.1, "weeks": 1}, "`turnover` says nothing"),
    ],
)
def test_refusals(wrong, message):
    with pytest.raises(InputError, match=message):
        AuditOptions.of(**(WORDS | wrong))


class TestPlan:
    def test_the_usual_attack_is_the_likelihood_ratio(self, city):
        plan = make_plan(AuditOptions.of(mechanisms=SAFE, everybody=True), city)
        assert [str(one) for one in plan.attacks] == ["likelihood-ratio"]
        assert plan.game == EverybodyGame(0.9)
        assert plan.schemes[0].group_size == round(0.9 * city.n_users)
        assert (plan.releases, plan.control_releases, plan.reference_size) == (100, 2, 0)

    def test_attacks_that_learn_have_people_set_aside(self, city):
        options = AuditOptions.of(
            mechanisms="suppress(k=1)", everybody=True, attacks="knock-knock", targets=3
        )
        plan = make_plan(options, city)
        aside = plan.game.rounds(*population_of(city, plan)).reference_rows
        assert aside.size == plan.reference_size > 0
        assert not set(plan.targets) & set(aside.tolist())

    def test_a_file_says_the_same(self, tmp_path):
        file = tmp_path / "plan.toml"
        file.write_text('everybody = true\ninclude = 0.5\nmechanisms = "raw"\n')
        assert read_plan_file(file) == AuditOptions.of(
            mechanisms="raw", everybody=True, include=0.5
        )

    @pytest.mark.parametrize(
        ("chosen", "message"),
        [
            ({"include": 0.001}, "may leave nobody in a release"),
            ({"include": 0.99999}, "may leave nobody out of a release"),
            ({"include": 0.9, "attacks": "zero-knowledge", "targets": 1, "releases": 2}, "out of"),
            ({"min_visits": 16, "targets": 1}, "nothing is said of fewer than 5"),
        ],
    )
    def test_people_must_be_both_in_and_out(self, city, chosen, message):
        """Beforehand: releases of nobody end an audit, as do scores of one label alone."""
        visits = city.visits_per_user()
        few = city.select(np.append(np.flatnonzero(visits < 8)[:300], np.argsort(visits)[-2:]))
        with pytest.raises(InputError, match=message):
            make_plan(AuditOptions.of(**(WORDS | chosen)), few)

    def test_what_is_proposed_is_accepted(self, city):
        for include in (0.001, 0.99999):
            with pytest.raises(InputError) as found:
                make_plan(AuditOptions.of(**(WORDS | {"include": include})), city)
            proposed = float(re.search(r"such as (0\.\d+)", str(found.value)).group(1))
            make_plan(AuditOptions.of(**(WORDS | {"include": proposed})), city)

    @pytest.mark.parametrize("n", [3, 30])
    def test_few_people(self, city, n):
        few = city.select(np.arange(n))
        options = AuditOptions.of(**(WORDS | {"targets": 1}))
        if n == 30:
            assert make_plan(options, few).choice.eligible == 30
        else:
            with pytest.raises(InputError, match="fewer than 5 people, and only 3"):
                make_plan(options, few)

    def test_whoever_is_set_aside_is_not_asked(self, city):
        options = AuditOptions.of(**(WORDS | {"reference_size": 400}))
        choice = make_plan(options, city).choice
        assert choice.eligible == choice.people == city.n_users - 400

    def test_few_households(self, city):
        by = pl.DataFrame({"user": city.users, "household": [i % 2 for i in range(city.n_users)]})
        with pytest.raises(InputError, match=r"fewer than 5 households .*only 2"):
            make_plan(AuditOptions.of(**(WORDS | {"together": by, "targets": 1})), city)


def population_of(city, plan):
    return Population.of(city), plan, plan.tasks[0]


class TestRelease:
    def test_all_people_by_an_audit_of_everybody(self, found, path):
        made = wt.publish(path, SAFE, audit=found.folder)
        assert made.release.audited.audit == found.identity

    def test_nothing_else(self, found, path):
        with pytest.raises(InputError, match="did not accept suppress"):
            wt.publish(path, "suppress(k=1)", audit=found.folder)
        with pytest.raises(InputError, match="audit of everybody, and this would be of 20"):
            wt.publish(path, SAFE, group_size=20, audit=found.folder)

    def test_scores_of_everybody_that_were_changed_are_noticed(self, found, path, tmp_path):
        folder = shutil.copytree(found.folder, tmp_path / "copy")
        changed = next((folder / "everybody").iterdir())
        pl.read_parquet(changed).reverse().write_parquet(changed)
        with pytest.raises(InputError, match=f"{changed.name}: is not as it was written"):
            wt.publish(path, SAFE, audit=folder)


def test_trained_attacks_are_made_on_some(city):
    result = wt.audit(
        city,
        mechanisms="suppress(k=1)",
        everybody=True,
        include=0.5,
        attacks=["knock-knock(groups=20, validation=10)", "likelihood-ratio"],
        targets=8,
        releases=6,
        seed=1,
        workers=1,
        what_if=False,
    )
    n = {one.attack: one.n_targets for one in result.findings if one.metric == "auc"}
    assert n["likelihood-ratio"] > 100
    assert n["knock-knock(groups=20, validation=10)"] == 8
    assert result.asked.endswith(" people who are not set aside")
    assert result.trusted is not False


def test_everybody_is_asked_whatever_is_known(city):
    """Places alone say less than half of the visits."""
    result = wt.audit(
        city,
        mechanisms="suppress(k=1)",
        everybody=True,
        include=0.5,
        knowledge=["regions", "share(0.5)"],
        targets=12,
        releases=10,
        seed=1,
        workers=1,
        what_if=False,
    )
    places, visits = result.verdicts
    found = {one.setting: one for one in result.findings if one.metric == "auc"
             and one.attack == "likelihood-ratio"}  # fmt: skip
    assert found[places.setting].n_targets == found[visits.setting].n_targets > 100
    assert found[places.setting].estimate < found[visits.setting].estimate
    assert set(result.leaks["setting"]) == {places.setting, visits.setting}


def test_on_the_command_line(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["whosthere", "audit", str(path), *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    usual = ("-M", "suppress(k=1)", "--releases", "4", "--workers", "1", "--no-what-if")
    code, out, _ = run(*usual, "--everybody", "-o", "run")
    assert code == 0
    assert "each in a release with a chance of 0.9" in out
    code, _, err = run(*usual, "--include", "0.5", "-m", "20", "-o", "other")
    assert code == 2
    assert "--everybody" in err
    code, out, _ = run(*usual, "--everybody", "-o", "dry", "--dry-run")
    assert code == 0
    assert "all of which test everybody" in out


@pytest.mark.slow
def test_a_search_for_everybody(city):
    found = wt.recommend(
        city, everybody=True, include=0.5, families="suppress(k=?)", releases=20, seed=1, workers=1
    )
    assert found.candidates
    best = found.recommended
    if best is not None:
        assert best.confirmed


def test_what_a_plan_can_decide_is_said_beforehand(city):
    def said(releases):
        options = AuditOptions.of(**(WORDS | {"mechanisms": SAFE, "releases": releases}))
        plan = make_plan(options, city)
        return prospects(plan, plan.settings[0], Policy.default())

    assert str(said(40)) == "can accept and reject"
    few = said(2)
    assert few.accept == 0
    assert few.why_not


@pytest.mark.parametrize(("n", "shown"), [(12, {0.5}), (50, {0.1, 0.25, 0.5, 0.75, 0.9})])
def test_percentiles_are_about_enough_people_at_either_end(n, shown):
    rng = np.random.default_rng(1)
    labels = rng.random((20, n)) < 0.5
    panel = Panel(rng.normal(size=(20, n)).astype(np.float32), labels)
    groups = {"all": ["one"] * n}
    rows = range(7, 7 + n)
    asked = SimpleNamespace(tests=lambda: panel, people=lambda: pl.Series(rows))
    risk = everybodys_risk(SimpleNamespace(everybody={("here", "attack"): asked}), groups)
    assert risk.people["person"].to_list() == list(rows)
    assert set(risk.spread["percentile"]) == shown


def test_ends_of_how_many_are_named_are_rounded_outwards():
    rng = np.random.default_rng(2)
    for n in (203, 211, 217):
        labels = rng.random((30, n)) < 0.5
        panel = Panel((rng.normal(size=labels.shape) + 2 * labels).astype(np.float32), labels)
        asked = SimpleNamespace(
            tests=lambda panel=panel: panel, people=lambda n=n: pl.Series(range(n))
        )
        scores = SimpleNamespace(everybody={("here", "attack"): asked})
        for row in everybodys_risk(scores, {"all": ["one"] * n}).named.iter_rows(named=True):
            exact = named(panel, row["precision"])
            assert exact.low - 5 < row["low"] <= exact.low
            assert exact.high <= row["high"] < exact.high + 5


def test_groups_that_are_given_stand_beside_those_of_everybody(city):
    """Whatever they are called; of all people there are, some are asked."""
    rows = [str(row) for row in range(city.n_users)]
    given = pl.DataFrame({"visits": rows, "by": ["y"] * city.n_users})
    alone, both = (groupings_of(city, np.array([3, 8, 9]), 100, one) for one in (None, given))
    assert both == alone | {"visits (given)": ["3", "8", "9"], "by": ["y"] * 3}


@pytest.mark.parametrize("weights", [None, [1, 1, 1, 1, 3]])
def test_the_region_of_most_visits(weights):
    """Also of what counts several times, such as trips, too; the first of equals."""
    three = wt.Traces(
        ("a", "b", "c"),
        np.array([0, 3, 5, 5]),
        np.array([0, 2, 3, 1, 2], np.int32),
        wt.Regions(["north", "south"]),
        wt.Epochs.from_json(
            {"start": "2024-05-01T00:00:00+00:00", "length": "1h", "n": 2, "timezone": "UTC"}
        ),
        weights=None if weights is None else np.array(weights, np.int32),
    )
    found = groupings_of(three, np.arange(3), 2)
    one = "north" if weights is None else "south"
    assert found["region of most visits"] == ["south", one, "others"]
    assert found["visits"] == ["2 to 4", "2 to 4", "0"]
    # Nobody else is in three of the cells; in the fourth, one of the two who may be in is.
    assert found["uniqueness"][:2] == ["0.8 to 1", "0.6 to 0.8"]


def test_what_counts_several_times_is_audited(city, tmp_path):
    """Such as trips between two places in a day."""
    twice = 1 + (np.arange(city.cells.size) % 7 == 0)
    trips = replace(city, weights=twice.astype(np.int32), most_added=2)
    chosen = WORDS | {"mechanisms": "suppress(k=1)", "releases": 4}
    result = wt.audit(trips, out=tmp_path / "run", workers=1, what_if=False, **chosen)
    assert result.trusted is not False
    assert not result.everybody.groups.is_empty()
    assert not result.leaks.is_empty()
