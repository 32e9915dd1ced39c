"""Finished audits are read from their folders as they were, and damage is reported."""

import json
from dataclasses import fields

import polars as pl
import pytest

import whosthere as wt
from whosthere.auditing.result import AuditResult
from whosthere.errors import FileError


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
    """A result that is read and one in hand are the same value."""
    found = wt.load(result.folder)
    for field in fields(AuditResult):
        read, in_hand = getattr(found, field.name), getattr(result, field.name)
        if field.name == "everybody":
            read, in_hand = read.people, in_hand.people
        same = read.equals(in_hand) if isinstance(read, pl.DataFrame) else read == in_hand
        assert same, field.name
    assert found.name == "run"
    assert found.what_if
    assert found.to_json() == result.to_json()


def test_a_folder_of_audits_names_one_of_them(result):
    fix = "Name one of the audits in it, such as .*run"
    with pytest.raises(FileError, match=f"is not the folder of an audit. {fix}"):
        wt.load(result.folder.parent)


def test_what_readers_must_know(result):
    assert (result.n_targets, result.n_tasks) == (3, 3)
    assert not result.choice.by_hand
    log = (result.folder / "log.txt").read_text()
    assert f"leaks found of {result.people_looked_at} people" in log


def test_parts_that_were_not_measured_are_empty(folder):
    for name in ("regions", "leaks", "marginals"):
        (folder / f"{name}.parquet").unlink()
    found = wt.load(folder)
    assert all(one.is_empty() for one in (found.regions, found.leaks, found.marginals))


def test_folders_without_a_finished_audit(folder, tmp_path):
    (folder / "verdicts.json").unlink()
    with pytest.raises(wt.InputError, match="not finished"):
        wt.load(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(wt.InputError, match="not the folder of an audit"):
        wt.load(folder)
    with pytest.raises(wt.InputError, match="does not exist"):
        wt.load(tmp_path / "nowhere")


def test_an_audit_of_another_version_is_refused(folder):
    whole = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(whole | {"format": whole["format"] - 1}))
    with pytest.raises(FileError, match="is an audit of another version"):
        wt.load(folder)
