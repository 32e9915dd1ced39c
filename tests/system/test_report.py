"""`whosthere report`, `compare` and the reports of `audit` and `recommend`, as commands."""

import json

import pytest

import whosthere as wt
from whosthere.data.cities import simulate


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with traces and two small finished audits, made by the front door."""
    folder = tmp_path_factory.mktemp("reports")
    traces = simulate("milan-like", seed=7, users=200, regions=9, days=1).traces()
    traces.save(folder / "traces.parquet")
    for name, size in (("before", 20), ("after", 40)):
        wt.audit(
            traces,
            mechanisms=["raw", "suppress(k=1)"],
            group_size=size,
            attacks="likelihood-ratio",
            targets=3,
            releases=4,
            workers=1,
            out=folder / name,
        )
    return folder


@pytest.fixture
def folder(runs, monkeypatch):
    monkeypatch.chdir(runs)
    return runs


def test_an_audit_from_python_has_its_report(runs):
    assert "raw, m=20" in (runs / "before" / "report.html").read_text(encoding="utf-8")


def test_an_audit_by_command_has_its_report_and_says_where(whosthere, folder, tmp_path):
    out = tmp_path / "run"
    code, said, _ = whosthere(
        "audit", "traces.parquet", "-m", 20, "-M", "raw", "-a", "likelihood-ratio", "--targets", 2,
        "--releases", 4, "--workers", 1, "--out", out,
    )  # fmt: skip
    assert code == 0
    assert str(out / "report.html") in said
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_with_json_nothing_else_is_printed(whosthere, folder, tmp_path):
    code, said, _ = whosthere(
        "audit", "traces.parquet", "-m", 20, "-M", "raw", "-a", "likelihood-ratio", "--targets", 2,
        "--releases", 4, "--workers", 1, "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert code == 0
    assert json.loads(said)["verdicts"]
    assert (tmp_path / "run" / "report.html").exists()


def test_report_is_written_anew_or_elsewhere(whosthere, folder, tmp_path):
    before = (folder / "before" / "report.html").read_text(encoding="utf-8")
    (folder / "before" / "report.html").unlink()
    assert whosthere("report", "before")[0] == 0
    assert (folder / "before" / "report.html").read_text(encoding="utf-8") == before
    assert whosthere("report", "before")[0] == 0
    page = tmp_path / "page.html"
    assert whosthere("report", "before", "--out", page)[0] == 0
    assert page.read_text(encoding="utf-8") == before
    assert whosthere("report", "before", "--out", page)[0] == 2
    assert whosthere("report", "before", "--out", page, "--force")[0] == 0


def test_compare_in_the_terminal_and_as_a_page(whosthere, folder, tmp_path):
    page = tmp_path / "both.html"
    code, said, _ = whosthere("compare", "before", "after", "--out", page)
    assert code == 0
    for word in ("before", "after", "raw, m=20 / m=40", "mean AUC", "AUC over everybody"):
        assert word in said
    assert "not measured" not in said
    assert "(by likelihood-ratio alone)" in said
    assert "2 audits side by side" in page.read_text(encoding="utf-8")


def test_compare_as_json(whosthere, folder, tmp_path):
    page = tmp_path / "both.html"
    code, said, _ = whosthere("compare", "before", "after", "before", "--json", "--out", page)
    assert code == 0
    found = json.loads(said)
    assert [one["name"] for one in found["audits"]] == ["1: before", "after", "3: before"]
    judged = json.loads((folder / "before" / "verdicts.json").read_text(encoding="utf-8"))
    assert found["audits"][0]["verdicts"] == judged["verdicts"]
    changes = {(one["setting"], one["metric"]): one for one in found["changes"]}
    # The second audit has another group size, and the third is the first.
    change = changes["raw, m=20 / m=40", "auc"]
    assert change["settings"] == ["raw, m=20", "raw, m=40", "raw, m=20"]
    assert change["against_first"][1] == "cannot tell"
    assert change["values"][0] == change["values"][2] is not None
    assert change["values"][1]["setting"] == "raw, m=40"
    assert page.exists()


def test_recommend_writes_its_report(whosthere, folder, tmp_path):
    page = tmp_path / "choice.html"
    code, said, _ = whosthere(
        "recommend", "traces.parquet", "-m", 20, "-F", "suppress(k=?)", "-a", "likelihood-ratio",
        "--targets", 3, "--releases", 4, "--workers", 1, "--report", page,
    )  # fmt: skip
    assert code == 0
    assert str(page) in said
    assert "The steps of each family" in page.read_text(encoding="utf-8")
    again = whosthere("recommend", "traces.parquet", "-m", 20, "--report", page)
    assert again[0] == 2
    assert "exists already" in again[2]


def test_results_are_not_replaced_by_pages(refused, folder):
    for name in ("findings.json", "findings.html", "tasks/page.html", "manifest.json"):
        said = refused("report", "before", "--out", f"before/{name}", "--force")
        assert "folder of an audit" in said or "ends in .html" in said
    for name in ("before/report.html", "after/report.html", "after/new.html"):
        said = refused("compare", "before", "after", "--out", name, "--force")
        assert "folder of an audit" in said
    with pytest.raises(wt.InputError, match="folder of an audit"):
        wt.report(["before", "after"], out="after/new.html")


@pytest.mark.parametrize("name", ["page", "page.htm", "page.json", "traces.parquet"])
def test_a_page_is_called_html(refused, folder, name):
    for command in (("report", "before"), ("compare", "before", "after")):
        assert "ends in .html" in refused(*command, "--out", name, "--force")
    recommend = ("recommend", "traces.parquet", "-m", 20, "--report", name, "--force")
    assert "ends in .html" in refused(*recommend)


def test_the_report_of_a_run_may_be_named(whosthere, folder):
    assert whosthere("report", "before", "--out", "before/report.html")[0] == 2
    assert whosthere("report", "before", "--out", "before/report.html", "--force")[0] == 0


class TestRefused:
    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "empty").mkdir()
        (tmp_path / "begun").mkdir()
        (tmp_path / "page.html").mkdir()
        (tmp_path / "begun" / "manifest.json").write_text('{"plan": {}}')
        return tmp_path

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("report", "nowhere"), "does not exist"),
            (("report", "empty"), "not the folder of an audit"),
            (("report", "begun"), "not finished"),
            (("compare", "empty"), "at least two"),
            (("compare", "empty", "begun"), "not the folder of an audit"),
            (("compare", "empty", "begun", "--out", "page.html"), "is a folder"),
        ],
    )
    def test_what_is_no_finished_audit(self, refused, arguments, message):
        assert message in refused(*arguments)
