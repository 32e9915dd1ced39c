"""A release is made by an audit only if that accepted exactly what is published."""

import json
import shutil
from dataclasses import replace
from types import MappingProxyType

import pytest

import whosthere as wt
from whosthere import NotAuditedWarning
from whosthere.auditing.loading import load
from whosthere.cli.main import main
from whosthere.errors import FileError, InputError
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.shapes import Map

M, SAFE = 20, "suppress(k=50)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Traces, and an audit of them that accepts one of two protections."""
    folder = tmp_path_factory.mktemp("accepted")
    wt.simulate("milan-like", seed=1, users=300, regions=4, days=1).traces().save(
        folder / "t.parquet"
    )
    wt.audit(
        folder / "t.parquet",
        mechanisms=[SAFE, "raw"],
        group_size=M,
        attacks="likelihood-ratio",
        targets=20,
        releases=4,
        policy={"auc": 0.8},
        what_if=False,
        workers=1,
        seed=1,
        out=folder / "run",
    )
    return folder


@pytest.fixture(scope="module")
def accepted(folder):
    found = load(folder / "run")
    assert [one.decision for one in found.verdicts] == ["accept", "reject"]
    return found


@pytest.fixture
def traces(folder):
    return folder / "t.parquet"


def test_what_was_accepted_says_by_which_audit_policy_and_date(folder, accepted, traces, tmp_path):
    made = wt.publish(traces, SAFE, group_size=M, audit=folder / "run")
    for name in ("release.parquet", "release.csv"):
        made.release.save(tmp_path / name)
        found = wt.Release.load(tmp_path / name).audited
        assert found == made.release.audited
    assert found.audit == accepted.identity
    assert (found.policy, found.limits) == ("custom", {"auc": 0.8})
    assert found.begun == accepted.manifest["begun"]
    assert len(found.released) == len("2026-11-18")
    assert (found.about, found.attacker_knows) == ("everybody", "all their visits")
    described = json.loads((tmp_path / "release.csv-metadata.json").read_text())
    assert described["audit"]["audit"] == accepted.identity
    # Of traces in memory, and of a result in memory, it is the same.
    again = wt.publish(wt.Traces.load(traces), SAFE, group_size=M, audit=accepted)
    assert replace(again.release.audited, released=found.released) == found


@pytest.mark.parametrize(
    ("mechanism", "group_size", "message"),
    [
        ("raw", M, r"did not accept raw, m=20 \(its verdict: reject\)"),
        (
            "suppress(k=49)",
            M,
            r"did not try suppress\(k=49\), m=20, but suppress\(k=50\), m=20 and",
        ),
        (SAFE, M - 1, r"did not try suppress\(k=50\), m=19"),
        (SAFE, None, "audit of groups, and this would be of all"),
    ],
)
def test_anything_else_is_refused(accepted, traces, mechanism, group_size, message):
    with pytest.raises(InputError, match=message):
        wt.publish(traces, mechanism, group_size=group_size, audit=accepted)


def test_other_traces_are_refused(accepted, traces):
    others = wt.simulate("milan-like", seed=2, users=300, regions=4, days=1).traces()
    with pytest.raises(InputError, match="is an audit of other traces"):
        wt.publish(others, SAFE, group_size=M, audit=accepted)
    everybody = wt.Traces.load(traces)
    with pytest.raises(InputError, match="of groups, and this would be of all"):
        wt.publish(everybody, SAFE, group_size=everybody.n_users, audit=accepted)


def test_every_knowledge_must_have_been_accepted(accepted, traces):
    first, second = accepted.verdicts
    settings = accepted.manifest["settings"]
    name = f"{first.setting}, knows share(0.5)"
    more = {**settings[0], "setting": name, "knowledge": "share(0.5)"}
    for decision in ("reject", "cannot tell"):
        tried = replace(
            accepted,
            manifest={**accepted.manifest, "settings": [*settings, more]},
            verdicts=(first, second, replace(first, setting=name, decision=decision)),
        )
        with pytest.raises(InputError, match=rf"did not accept .*, knows share.*: {decision}\)"):
            wt.publish(traces, SAFE, group_size=M, audit=tried)


def test_an_audit_of_a_part_of_the_time_is_refused(accepted, traces):
    plan = {**accepted.plan, "first_epoch": 3}
    part = replace(accepted, manifest={**accepted.manifest, "plan": plan})
    with pytest.raises(InputError, match="an audit of a part of the time"):
        wt.publish(traces, SAFE, group_size=M, audit=part)


@pytest.fixture(scope="module")
def series(folder):
    """An audit of a table, over merged regions, that is published every six hours."""
    return wt.audit(
        folder / "t.parquet",
        mechanisms=[SAFE, "raw"],
        tables="regions=2",
        group_size=M,
        weeks=(1, 3),
        every="6h",
        attacks="likelihood-ratio",
        targets=20,
        releases=4,
        policy={"auc": 0.8},
        what_if=False,
        workers=1,
        seed=1,
        out=folder / "series",
    )


class TestSeries:
    HOW = MappingProxyType({"tables": "regions=2", "group_size": M, "every": "6h"})

    @pytest.mark.parametrize("times", [1, 2, 3])
    def test_as_long_as_it_lasts_it_is_one_publication(self, folder, series, traces, times):
        assert [one.lasts for one in series.series] == [3, 1]
        made = wt.publish(traces, SAFE, weeks=times, audit=folder / "series", **self.HOW)
        assert made.release.audited.audit == series.identity
        assert made.release.audited.attacker_knows == "all their visits"
        assert made.release.epochs == wt.Traces.load(traces).epochs.part(0, 6 * times)
        assert len(made.release.regions) == 2

    def test_no_longer_than_was_tried(self, series, traces):
        with pytest.raises(InputError, match=r"did not try .* 4 periods of 6h, m=20, but"):
            wt.publish(traces, SAFE, weeks=4, audit=series, **self.HOW)
        with pytest.raises(InputError, match="published again and again"):
            wt.publish(traces, SAFE, tables="regions=2", group_size=M, audit=series)
        with pytest.raises(InputError, match="did not try"):
            wt.publish(traces, SAFE, weeks=1, audit=series, **{**self.HOW, "every": "3h"})

    def test_what_was_not_accepted_earlier_is_refused(self, series, traces):
        wt.publish(traces, "raw", weeks=1, audit=series, **self.HOW)
        with pytest.raises(InputError, match=r"not accept raw .* 3 periods .*verdict: cannot tell"):
            wt.publish(traces, "raw", weeks=2, audit=series, **self.HOW)
        first, second, *others = series.verdicts
        assert [first.decision, second.decision] == ["accept", "accept"]
        unclear = replace(series, verdicts=(replace(first, decision="reject"), second, *others))
        for times in (1, 2, 3):
            with pytest.raises(InputError, match=r"did not accept .* 1 period of 6h"):
                wt.publish(traces, SAFE, weeks=times, audit=unclear, **self.HOW)

    def test_people_who_come_and_go_are_others(self, series, traces):
        plan = {**series.plan, "game": "target(turnover=0.1)"}
        moving = replace(series, manifest={**series.manifest, "plan": plan})
        with pytest.raises(InputError, match="people who come and go"):
            wt.publish(traces, SAFE, weeks=1, audit=moving, **self.HOW)

    def test_other_merged_regions_are_others(self, series, traces):
        code = dict.fromkeys(series.plan["code"], "another")
        other = replace(series, manifest={**series.manifest, "plan": {**series.plan, "code": code}})
        with pytest.raises(InputError, match="did not try"):
            wt.publish(traces, SAFE, weeks=2, audit=other, **self.HOW)

    @pytest.mark.parametrize(
        ("how", "message"),
        [
            ({"every": "6h"}, "`every` is about tables that are published again and again"),
            ({"weeks": 0, "every": "6h"}, "0 weeks publish nothing"),
            ({"weeks": 1}, "the data cover 0 weeks"),
            ({"weeks": 1, "every": "soon"}, "not a length of time"),
        ],
    )
    def test_what_cannot_be_published_is_refused(self, traces, how, message):
        with pytest.raises(InputError, match=message):
            wt.publish(traces, SAFE, group_size=M, seed=1, **how)


class _Mine(Map):
    """A step of a user's own, which is called like one of ours."""

    name = SAFE

    def apply(self, values, within):
        return values.copy()

    def describe(self):
        return "Nothing is done."


def test_a_step_of_the_same_name_with_other_code_is_refused(accepted, traces):
    mine = Mechanism((_Mine(),))
    assert str(mine) == SAFE
    with pytest.raises(InputError, match="did not try"):
        wt.publish(traces, mine, group_size=M, audit=accepted)


def test_without_an_audit_there_is_a_warning(traces):
    with pytest.warns(NotAuditedWarning, match=r"Audit the protection first.*\(`audit`\)"):
        made = wt.publish(traces, SAFE, group_size=M)
    assert made.release.audited is None
    assert "not audited" in made.release._repr_html_()
    with pytest.warns(NotAuditedWarning, match="Make an audit of everybody"):
        wt.publish(traces, SAFE)
    # A release with a seed is a trial anyway.
    wt.publish(traces, SAFE, group_size=M, seed=1)


def test_on_the_command_line(folder, series, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(folder)

    def run(*arguments):
        out = tmp_path / "r.parquet"
        command = ["whosthere", "release", "t.parquet", "--force", "-o", str(out), *arguments]
        monkeypatch.setattr("sys.argv", command)
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    code, out, _ = run("-M", SAFE, "-m", str(M), "--audit", "run")
    assert code == 0
    assert "Audit: accepted by the audit" in out
    assert "by the policy 'custom'" in out
    assert "Warning: Safe, but useless: " in out
    code, _, err = run("-M", "raw", "-m", str(M), "--audit", "run")
    assert code == 2
    assert "error: run: did not accept raw, m=20" in err
    code, _, err = run("-M", SAFE, "--audit", "run")
    assert code == 2
    assert "Publish as many people as were audited (--group-size), or make an audit" in err
    code, out, _ = run("-M", SAFE, "-m", str(M))
    assert code == 0
    assert "Warning: this release was not audited" in out
    assert "(--audit)" in out
    often = ("-M", SAFE, "-m", str(M), "--every", "6h", "--table", "regions=2")
    assert run(*often, "--weeks", "2", "--audit", "series")[0] == 0
    code, _, err = run(*often, "--weeks", "4", "--audit", "series")
    assert (code, "series: did not try" in err) == (2, True)
    code, out, _ = run("-M", SAFE, "-m", str(M), "--audit", "run", "--json")
    assert json.loads(out)["audit"]["limits"] == {"auc": 0.8}


def test_an_unfinished_audit_accepts_nothing(folder, traces, tmp_path):
    (tmp_path / "manifest.json").write_text((folder / "run" / "manifest.json").read_text())
    with pytest.raises(FileError, match="not finished"):
        wt.publish(traces, SAFE, group_size=M, audit=tmp_path)


def test_without_its_scores_an_audit_accepts_nothing(folder, traces, tmp_path):
    run = shutil.copytree(folder / "run", tmp_path / "run")
    next((run / "tasks").iterdir()).unlink()
    with pytest.raises(FileError, match=r"lacks the scores of 1 task\. Repeat the command"):
        wt.publish(traces, SAFE, group_size=M, audit=run)


def test_a_trial_with_a_seed_cannot_be_accepted(accepted, traces):
    with pytest.raises(InputError, match="with a seed is a trial"):
        wt.publish(traces, SAFE, group_size=M, audit=accepted, seed=1)
