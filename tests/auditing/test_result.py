"""Results: tables, JSON and pictures that say what the findings say."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import whosthere as wt
from whosthere.auditing.result import SHOWN, shown
from whosthere.inference.scores import comparable_scores
from whosthere.inference.vocabulary import GUARANTEE, METRICS

ATTACKS = ("likelihood-ratio", "contradiction-rule")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    people = wt.simulate("milan-like", seed=7, users=200, days=1, regions=25).traces()
    return wt.audit(
        people,
        mechanisms=("raw", "suppress(k=1)"),
        group_size=(8, 10),
        knowledge=("all", "regions(top=2)"),
        attacks=ATTACKS,
        targets=4,
        releases=8,
        out=tmp_path_factory.mktemp("result") / "run",
        workers=1,
    )


class TestFrame:
    def test_a_row_for_every_finding_in_order(self, result):
        frame = result.to_frame()
        assert frame.height == len(result.findings)
        for row, finding in zip(frame.to_dicts(), result.findings, strict=True):
            assert {name: row[name] for name in finding.to_json()} == finding.to_json()

    @pytest.mark.parametrize("table", ["to_frame", "scores", "targets"])
    def test_settings_are_taken_apart(self, result, table):
        columns = ("mechanism", "group_size", "knowledge")
        found = getattr(result, table)
        rows = (found() if callable(found) else found).to_dicts()
        seen = {row["setting"]: [row[one] for one in columns] for row in rows}
        assert len(seen) == 8
        for setting, (mechanism, group_size, knowledge) in seen.items():
            known = "" if knowledge == "all" else f", knows {knowledge}"
            assert setting == f"{mechanism}, m={group_size}{known}"

    def test_no_findings(self, result):
        empty = replace(result, findings=()).to_frame()
        assert empty.height == 0
        assert empty.schema == result.to_frame().schema


class TestPictures:
    @staticmethod
    def lines(figure):
        return {
            (axis.get_title(), line.get_label()): line.get_xydata()
            for axis in figure.axes
            for line in axis.get_lines()
            if not line.get_label().startswith("_")
        }

    def test_the_area_below_a_roc_is_the_pooled_auc(self, result):
        drawn = self.lines(result.plot("roc"))
        assert drawn.keys() == set(result.scores.select("setting", "attack").unique().iter_rows())
        for (setting, attack), points in drawn.items():
            rows = result.scores.filter(setting=setting, attack=attack)
            pooled = roc_auc_score(rows["label"], comparable_scores(rows))
            assert np.trapezoid(points[:, 1], points[:, 0]) == pytest.approx(pooled)

    def test_every_person_has_a_step_from_the_best_found_on(self, result):
        for (setting, attack), points in self.lines(result.plot("people")).items():
            aucs = result.targets.filter(setting=setting, attack=attack)["auc"]
            assert points[:-1, 1].tolist() == aucs.sort(descending=True).to_list()
            assert (points[0, 0], points[-1, 0]) == (0, 1)

    def test_what_cannot_be_drawn(self, result):
        with pytest.raises(wt.InputError, match="Did you mean 'roc'"):
            result.plot("rok")
        nothing = replace(result, scores=pl.DataFrame(), targets=pl.DataFrame())
        for what in ("roc", "people"):
            with pytest.raises(wt.InputError, match="every task failed"):
                nothing.plot(what)


class TestTargets:
    def test_mean_auc_is_the_finding(self, result):
        means = result.targets.group_by("setting", "attack").agg(pl.col("auc").mean())
        found = {(row["setting"], row["attack"]): row["auc"] for row in means.to_dicts()}
        wanted = {
            (one.setting, one.attack): one.estimate
            for one in result.findings
            if one.metric == "auc" and one.attack != GUARANTEE
        }
        assert found.keys() == wanted.keys()
        assert all(found[place] == pytest.approx(wanted[place]) for place in wanted)


class TestJson:
    def test_strict_and_whole(self, result):
        found = json.loads(json.dumps(result.to_json(), allow_nan=False))
        assert found["trusted"] is result.trusted
        assert found["failed_tasks"] == 0
        assert len(found["findings"]) == len(result.findings)
        assert [one["setting"] for one in found["verdicts"]] == list(result.plan["contests"])

    def test_failures_are_counted(self, result):
        assert replace(result, failed_tasks=2).to_json()["failed_tasks"] == 2

    def test_is_what_the_folder_holds(self, result):
        as_json = result.to_json()
        for name in ("findings", "verdicts"):
            written = json.loads((result.folder / f"{name}.json").read_text())
            assert written == (as_json.pop("findings") if name == "findings" else as_json)


class TestToLookAt:
    def test_repr_has_every_decision(self, result):
        for verdict in result.verdicts:
            assert f"{verdict.setting}: {verdict.decision}" in repr(result)

    def test_html_has_every_setting_and_attack(self, result):
        page = result._repr_html_()
        for setting in result.plan["contests"]:
            assert setting in page
        for attack in (*ATTACKS, *(METRICS[name].words for name in SHOWN)):
            assert attack in page
        assert "<script" not in page

    def test_where_it_is_kept(self, result):
        assert result.folder is not None
        nowhere = replace(result, folder=None)
        assert nowhere.folder is None
        assert nowhere.findings is result.findings

    def test_nothing_is_kept_unless_asked_for(self):
        people = wt.simulate("milan-like", seed=7, users=200, days=1, regions=25).traces()
        kept = wt.audit(
            people,
            mechanisms="raw",
            group_size=8,
            attacks="likelihood-ratio",
            targets=1,
            releases=2,
            workers=1,
        )
        assert kept.folder is None


class TestShown:
    @pytest.fixture
    def finding(self, result):
        return next(one for one in result.findings if one.metric == "auc")

    def test_value_and_interval(self, finding):
        full = replace(finding, estimate=0.71234, low=0.6, high=0.8)
        assert shown(full) == "0.712 0.60\N{EN DASH}0.80"
        assert shown(full, between="\n") == "0.712\n0.60\N{EN DASH}0.80"

    def test_without_an_interval(self, finding):
        assert shown(replace(finding, estimate=0.71234, low=None, high=None)) == "0.71"

    def test_what_cannot_be_told(self, finding):
        assert shown(replace(finding, estimate=None, low=None, high=None)) == "not resolvable"
        assert shown(None) == ""
