"""What changes of regions and epochs would do: the same people, by the same engine."""

import json
import shutil
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from whosthere.auditing.follow_up import (
    MOST_SETTINGS,
    WhatIf,
    changes_to_try,
    merged_regions,
    riskiest,
)
from whosthere.auditing.interruption import InterruptedAudit
from whosthere.auditing.options import AuditOptions
from whosthere.auditing.planning import make_plan
from whosthere.auditing.run import prepare_audit
from whosthere.auditing.verdict import Verdict
from whosthere.auditing.work import LocalProcesses, ThisProcess
from whosthere.data.cities import simulate
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.regions import Regions
from whosthere.game import leaks
from whosthere.game.rounds import Population
from whosthere.game.target import TargetRounds
from whosthere.inference.finding import Finding
from whosthere.inference.vocabulary import OF_UTILITY, UTILITY
from whosthere.privacy.scheme import Layout

OPTIONS = AuditOptions.of(
    mechanisms=("raw", "suppress(k=1)"),
    group_size=60,
    attacks="likelihood-ratio",
    targets=6,
    releases=4,
)


@pytest.fixture(scope="module")
def city():
    return simulate("milan-like", seed=7, users=400, days=1, regions=25).traces()


@pytest.fixture(scope="module")
def path(city, tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    city.save(path)
    return path


@pytest.fixture(scope="module")
def result(path, tmp_path_factory):
    return prepare_audit(path, OPTIONS, tmp_path_factory.mktemp("audit") / "run").run()


@pytest.fixture(scope="module", autouse=True)
def few_people():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaks, "PEOPLE_TO_LOOK_AT", 30)
        yield


class Counting(ThisProcess):
    """Somebody who counts what is to be done, and gives up after some of it."""

    def __init__(self, most=10**9):
        self.most = most
        self.done = 0

    def do(self, job, tasks):
        for outcome in super().do(job, tasks):
            if self.done == self.most:
                raise KeyboardInterrupt
            self.done += 1
            yield outcome


class TestWhatIsTried:
    def auc(self, setting, estimate):
        return Finding(setting, "likelihood-ratio", "auc", estimate, 0.4, 0.9, 6, 12, 12)

    def test_the_riskiest_that_are_not_accepted(self, city):
        mechanisms = [f"suppress(k={k})" for k in range(1, 7)]
        plan = make_plan(
            AuditOptions.of(
                mechanisms=mechanisms, group_size=60, attacks="likelihood-ratio", targets=2
            ),
            city,
        )
        names = [str(setting) for setting in plan.settings]
        findings = [
            self.auc(name, auc) for name, auc in zip(names, (0.9, 0.5, 0.8, 0.6), strict=False)
        ]
        decided = ["accept", *["reject", "cannot tell"] * 3]
        verdicts = [Verdict(name, one, ()) for name, one in zip(names, decided, strict=False)]
        chosen = [str(setting) for setting in riskiest(plan, findings, verdicts)]
        assert chosen == [names[2], names[3], names[1]]
        assert len(chosen) <= MOST_SETTINGS

    def test_nothing_where_all_is_accepted_or_the_attack_was_not_made(self, city, result):
        plan = make_plan(OPTIONS, city)
        accepted = [replace(one, decision="accept") for one in result.verdicts]
        assert riskiest(plan, result.findings, accepted) == ()
        others = [one for one in result.findings if one.attack != "likelihood-ratio"]
        assert riskiest(plan, others, result.verdicts) == ()

    def test_leaky_regions_are_merged_and_epochs_joined(self, city, result):
        [(_, merged), longer] = changes_to_try(result.leaks, city.regions, city.epochs).items()
        numbers = np.array(merged.regions)
        leak = result.leaks.filter(axis="region").group_by("index").agg(pl.col("leak").sum())
        top = leak.sort("leak", descending=True)["index"][0]
        assert (numbers == numbers[top]).sum() > 1
        assert len(set(numbers.tolist())) < len(city.regions)
        assert longer == ("epochs of 4h instead of 1h", Layout(epochs=4))

    def test_what_leaks_nowhere_is_not_merged(self, city, result):
        hidden = result.leaks.with_columns(leak=pl.lit(None, pl.Float64))
        assert len(changes_to_try(hidden, city.regions, city.epochs)) == 1
        assert changes_to_try(hidden, city.regions, city.epochs.part(0, 1)) == {}

    def test_each_is_merged_with_the_nearest(self):
        regions = Regions(list("abcde"), [9.0, 9.01, 9.1, 9.111, 9.2], [45.0] * 5)
        assert merged_regions([0], regions) == (0, 0, 1, 2, 3)
        assert merged_regions([0, 3], regions) == (0, 0, 1, 1, 2)
        assert len(set(merged_regions([0, 1, 2, 3, 4], regions))) == 2

    def test_regions_at_one_place(self):
        regions = Regions(list("abc"), [9.0, 9.0, 9.5], [45.0] * 3)
        for leaky in (0, 1):
            assert merged_regions([leaky], regions) == (0, 0, 1)

    @pytest.mark.parametrize(
        ("leaky", "merged"),
        [([1, 3], (0, 1, 2, 1)), ([3, 0, 2], (0, 1, 0, 0)), ([0, 1, 2, 3], (0, 0, 1, 1))],
    )
    def test_without_positions_with_one_another(self, leaky, merged):
        assert merged_regions(leaky, Regions(list("abcd"))) == merged


def test_only_what_a_publisher_may_ask_for(tmp_path):
    """Epochs of four days end with four daily tables, not with three; nor can they bound days."""
    hours = simulate("milan-like", seed=7, users=200, days=4, regions=9).traces()
    path = tmp_path / "traces.parquet"
    Layout(epochs=24)(hours).save(path)
    noise = "laplace(eps=9, unit=user-day, max_visits=2)"
    options = {"group_size": 20, "attacks": "likelihood-ratio", "targets": 4, "releases": 4}
    every_day = AuditOptions.of(mechanisms="raw", weeks=(3, 4), every="1d", **options)
    at_once = AuditOptions.of(mechanisms=("raw", noise), **options)
    found = [
        prepare_audit(path, one, tmp_path / name).run()
        for name, one in (("series", every_day), ("once", at_once))
    ]
    assert {one.setting for run in found for one in run.what_if if "epochs" not in one.change} == {
        *("raw over 3 days, m=20", "raw over 4 days, m=20", "raw, m=20", f"{noise}, m=20")
    }
    longer = [one.setting for run in found for one in run.what_if if "epochs" in one.change]
    assert longer == ["raw over 4 days, m=20", "raw, m=20"]


class TestResult:
    def test_before_is_what_the_audit_found(self, result):
        assert len(result.what_if) == 4
        found = {(one.setting, one.attack, one.metric): one for one in result.findings}
        for one in result.what_if:
            before = found[one.setting, "likelihood-ratio", "auc"]
            assert one.before == (before.estimate, before.low, before.high)
            for metric in OF_UTILITY:
                expected = found[one.setting, UTILITY, metric].estimate
                assert one.utility_before[metric] == expected
            assert 0 <= one.after.low <= one.after.estimate <= one.after.high <= 1
            assert set(one.utility_after) == set(OF_UTILITY)

    def test_detail_that_is_lost_is_lost(self, result):
        """Coarse counts are compared with the truth of the cells before the change."""
        for one in result.what_if:
            if one.setting.startswith("raw"):
                assert one.utility_before["pattern_correlation"] == pytest.approx(1)
                assert 0 < one.utility_after["pattern_correlation"] < 0.99

    def test_groups_are_of_the_same_people(self, city, result):
        plan = make_plan(OPTIONS, city)
        coarse = Population.of(city).under(Layout(epochs=4))
        for i in range(4):
            before, after = (
                TargetRounds(people, plan, plan.tasks[0]).test(i)
                for people in (Population.of(city), coarse)
            )
            rows = (trial.publication.only.group.rows.tolist() for trial in (before, after))
            assert next(rows) == next(rows)

    def test_is_written_and_read(self, result):
        written = json.loads((result.folder / "what_if.json").read_text())
        assert written == [one.to_json() for one in result.what_if]
        assert WhatIf.each(written) == result.what_if
        assert written[0].keys() == {
            "setting", "change", "metric", "before", "after", "utility_before", "utility_after"
        }  # fmt: skip

    def test_not_where_it_is_not_wanted(self, path, result, tmp_path):
        out = shutil.copytree(result.folder, tmp_path / "run")
        (out / "what_if.json").unlink()
        found = prepare_audit(path, OPTIONS, out).run(what_if=False)
        assert found.what_if == ()
        assert not (out / "what_if.json").exists()


class TestKept:
    def files(self, folder):
        names = ("leaks.parquet", "marginals.parquet", "what_if.json", "regions.parquet")
        return {name: (folder / name).read_bytes() for name in names}

    def test_two_processes_find_the_same(self, path, result, tmp_path):
        run = prepare_audit(path, OPTIONS, tmp_path / "run").run(workers=LocalProcesses(2))
        assert self.files(tmp_path / "run") == self.files(result.folder)
        assert run.what_if == result.what_if

    def test_nothing_of_one_person_is_written(self, result):
        tables = {path.name: pl.read_parquet(path) for path in result.folder.glob("**/*.parquet")}
        assert tables["leaks.parquet"].drop_nulls()["targets"].min() >= LEAST_PEOPLE
        for name, table in tables.items():
            assert "person" not in table.columns, name
            assert ("leak" in table.columns) == (name == "leaks.parquet")

    def test_nothing_is_done_twice(self, path, result):
        before = self.files(result.folder)
        again = Counting()
        found = prepare_audit(path, OPTIONS, result.folder).run(workers=again)
        assert again.done == 0
        assert self.files(result.folder) == before
        assert found.leaks.equals(result.leaks)
        assert found.marginals.equals(result.marginals)
        assert found.what_if == result.what_if

    def test_an_interruption_at_any_stage_is_made_up_for(self, path, result, tmp_path):
        out = tmp_path / "run"
        # While scoring; while looking closer, after the rest of the scores; while trying changes.
        for most in (5, 7 + 3, 12 + 2):
            with pytest.raises(InterruptedAudit, match=r"(12|5) of 12 tasks are"):
                prepare_audit(path, OPTIONS, out).run(workers=Counting(most))
        prepare_audit(path, OPTIONS, out).run()
        assert self.files(out) == self.files(result.folder)

    def test_a_look_that_fails_is_made_again(self, path, result, tmp_path):
        class Clumsy(ThisProcess):
            def do(self, job, tasks):
                for outcome in super().do(job, tasks):
                    failed = job.others is not None and outcome.task == tasks[3]
                    yield replace(outcome, scores=None, failure="a test") if failed else outcome

        out = shutil.copytree(result.folder, tmp_path / "run")
        for name in self.files(out):
            (out / name).unlink()
        found = prepare_audit(path, OPTIONS, out).run(workers=Clumsy())
        assert found.leaks.height == found.marginals.height == 0
        assert found.leaks.schema == result.leaks.schema
        assert "a test" in (out / "log.txt").read_text()
        assert found.findings == result.findings
        prepare_audit(path, OPTIONS, out).run()
        assert self.files(out) == self.files(result.folder)

    def test_damaged_files_are_made_again(self, path, result, tmp_path):
        out = shutil.copytree(result.folder, tmp_path / "run")
        (out / "leaks.parquet").write_bytes(b"PAR1")
        (out / "what_if.json").write_text('[{"setting": 1}]')
        prepare_audit(path, OPTIONS, out).run()
        assert self.files(out) == self.files(result.folder)
