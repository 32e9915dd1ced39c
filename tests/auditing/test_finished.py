"""Finished audits are read from their folders as they were, and damage is reported."""

import json

import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.finished import FinishedAudit


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    people = wt.simulate("milan-like", seed=7, users=200, days=1, regions=25).traces()
    return wt.audit(
        people,
        mechanisms="suppress(k=1)",
        group_size=8,
        attacks="likelihood-ratio",
        targets=3,
        releases=4,
        out=tmp_path_factory.mktemp("finished") / "run",
        workers=1,
    )


@pytest.fixture
def folder(result, tmp_path):
    """A copy that a test may damage."""
    for path in result.folder.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_what_was_written_is_read(result):
    found = FinishedAudit.load(result.folder)
    assert found.name == "run"
    assert found.findings == result.findings
    assert found.verdicts == result.verdicts
    assert found.policy == result.policy
    assert found.trusted is result.trusted
    assert found.plan == json.loads(json.dumps(result.plan.to_json()))
    assert found.scores.equals(result.scores)
    assert found.targets.equals(result.targets)


def test_what_readers_must_know_is_in_the_manifest(result):
    found = FinishedAudit.load(result.folder)
    assert found.choice == result.plan.choice
    assert found.n_targets == len(result.plan.targets)
    assert found.cautions == result.plan.cautions
    log = (result.folder / "log.txt").read_text()
    assert f"leaks found of {found.people_looked_at} people" in log


def test_a_result_in_memory_holds_the_same(result):
    found = FinishedAudit.of(result.kept_in(None))
    kept = FinishedAudit.load(result.folder)
    assert found.findings == kept.findings
    assert found.plan == result.plan.to_json()
    assert FinishedAudit.of(result).manifest == kept.manifest
    for name in ("regions", "leaks", "marginals"):
        assert getattr(found, name).equals(getattr(kept, name)), name
    assert json.loads(json.dumps(found.what_if)) == list(kept.what_if) != []


def test_parts_that_were_not_measured_are_none(folder):
    for name in ("regions", "leaks", "marginals"):
        (folder / f"{name}.parquet").unlink()
    found = FinishedAudit.load(folder)
    assert (found.regions, found.leaks, found.marginals) == (None, None, None)


def test_verdicts_of_older_versions_are_read(folder):
    path = folder / "verdicts.json"
    older = json.loads(path.read_text())
    for verdict in older["verdicts"]:
        del verdict["guaranteed"], verdict["meaning"]
        verdict["something_newer"] = 1
    path.write_text(json.dumps(older))
    assert FinishedAudit.load(folder).verdicts[0].guaranteed == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("manifest.json", "[]"),
        ("manifest.json", "{}"),
        ("verdicts.json", "{"),
        ("verdicts.json", '{"policy": 3}'),
        ("verdicts.json", '{"verdicts": [], "policy": {"name": "x", "limits": {"auc": 7}}}'),
        ("findings.json", '[{"metric": "auc"}]'),
        ("findings.json", "7"),
        ("what_if.json", '{"a": 1}'),
        ("scores.parquet", "no table"),
    ],
)
def test_damage_is_reported_with_its_file(folder, name, content):
    (folder / name).write_text(content)
    with pytest.raises(wt.InputError) as caught:
        FinishedAudit.load(folder)
    assert name in str(caught.value)


def test_missing_columns_are_named(folder):
    pl.read_parquet(folder / "targets.parquet").drop("auc").write_parquet(
        folder / "targets.parquet"
    )
    with pytest.raises(wt.InputError, match="lacks the column auc"):
        FinishedAudit.load(folder)


def test_folders_without_a_finished_audit(folder, tmp_path):
    (folder / "verdicts.json").unlink()
    with pytest.raises(wt.InputError, match="not finished"):
        FinishedAudit.load(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(wt.InputError, match="not the folder of an audit"):
        FinishedAudit.load(folder)
    with pytest.raises(wt.InputError, match="does not exist"):
        FinishedAudit.load(tmp_path / "nowhere")
