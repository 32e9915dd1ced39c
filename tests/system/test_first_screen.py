"""The first screen of an audit: which numbers it has, that it is short, and how it can gate."""

import io
import json
import shutil
from dataclasses import replace

import numba
import polars as pl
import pytest
from rich.console import Console

import whosthere as wt
from whosthere.auditing.estimate import Cost
from whosthere.auditing.policy import Policy
from whosthere.auditing.run import PreparedAudit
from whosthere.auditing.verdict import Verdict
from whosthere.cli import console
from whosthere.cli.screen import Line, show_lines
from whosthere.errors import InputError
from whosthere.inference.finding import Finding
from whosthere.search.search import PreparedSearch
from whosthere.search.tester import TrialFailedError

POLICY = Policy.default()
SETTING = "suppress(k=1), m=2000"
QUICK = ("-m", "20", "-a", "likelihood-ratio", "--releases", "4", "--targets", "3",
         "--no-what-if", "--workers", "1")  # fmt: skip


def finding(metric, estimate, low, high, attack="likelihood-ratio", **more):
    return Finding(SETTING, attack, metric, estimate, low, high, 55, 550, 550, **more)


FOUND = (
    finding("auc", 0.72, 0.70, 0.74),
    finding("pooled_auc", 0.71, 0.69, 0.73),
    finding("tpr_at_fpr_1pct", 0.082, 0.0685, 0.095),
    finding("auc", 0.60, 0.55, 0.62, attack="knock-knock"),
    finding("tpr_at_fpr_1pct", 0.02, 0.0, 0.03, attack="knock-knock"),
    finding("tpr_at_fpr_1pct", 1.0, 1.0, 1.0, attack="ceiling"),
)
REJECTED = Verdict(
    SETTING,
    "reject",
    ("Because.",),
    left={"pattern_correlation": 0.98},
    group_size=2000,
    protection="counts of 1 are published as 0",
)


def cells(verdict=REJECTED, findings=FOUND, policy=POLICY):
    return Line(verdict, findings, policy, "suppress(k=1)").cells


def test_a_line_has_people_found_the_number_that_decides_and_what_is_left():
    """Of the attacks the best, of the people in a release, at a false-alarm rate of 1 %."""
    assert cells() == (
        "REJECT",
        "suppress(k=1)",
        "finds 164 of 2,000 (137 to 190; guessing 20)",
        "mean AUC 0.72, limit 0.60",
        "pattern 0.98",
    )


def test_a_share_is_no_number_of_people_where_some_were_left_out():
    about_some = replace(REJECTED, who="people with 20 or more visits")
    assert cells(about_some)[2] == "finds 8.2 % (6.9 to 9.5; guessing 1)"


def test_what_cannot_be_told_says_how_far_it_may_reach_and_why():
    verdict = replace(REJECTED, decision="cannot tell")
    found = (
        finding("auc", 0.55, 0.5, 0.58, high_to_decide=0.59),
        finding("pooled_auc", 0.599, 0.5, 0.62, high_to_decide=0.63),
    )
    line = Line(verdict, found, POLICY, "x")
    assert line.cells[2:4] == (
        "finds: not known",
        "AUC over everybody 0.599 (up to 0.63), limit 0.60",
    )
    assert line.below == (verdict.protection, "Because.")


def test_a_fine_limit_is_not_rounded():
    assert cells(policy=Policy("fine", {"auc": 0.7199}))[3] == "mean AUC 0.7200, limit 0.7199"
    assert cells(policy=Policy("other", {"auc_p90": 0.5}))[3] == ""


@pytest.mark.parametrize(
    ("decision", "useless", "name", "why"),
    [
        ("accept", False, ("ACCEPT", "x"), ()),
        ("accept", True, ("USELESS", "x"), ("Because.",)),
        ("reject", True, ("REJECT", "x (useless)"), ()),
    ],
)
def test_what_is_useless_is_not_taken_for_a_yes(decision, useless, name, why):
    verdict = replace(REJECTED, decision=decision, useless=useless)
    line = Line(verdict, FOUND, POLICY, "x")
    assert line.cells[:2] == name
    assert line.below == (verdict.protection, *why)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_is_broken_in_a_narrow_terminal(monkeypatch, width):
    shown = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(console, "out", shown)
    accepted = replace(REJECTED, decision="accept")
    show_lines([Line(one, FOUND, POLICY, "suppress(k=1)") for one in (REJECTED, accepted)])
    said = shown.file.getvalue().splitlines()
    assert max(map(len, said)) <= width
    for part in cells()[1:]:
        assert sum(part in line for line in said) == 2
    # A line for each protection and one of words, where there is room.
    assert width < 120 or len([line for line in said if line]) == 4


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("city")
    wt.simulate("milan-like", seed=2, users=300, regions=9, days=1).write(folder)
    return folder / "records.parquet"


@pytest.fixture(scope="module")
def traces(records):
    path = records.with_name("traces.parquet")
    wt.read_records(records).save(path)
    return path


@pytest.fixture
def policy(tmp_path):
    def written(limit):
        path = tmp_path / f"{limit}.toml"
        path.write_text(f"[limits]\nauc = {limit}\n")
        return path

    return written


def test_an_audit_fits_on_a_screen(traces, tmp_path, whosthere):
    run = tmp_path / "run"
    two = ("-M", "suppress(k=1)", "-M", "suppress(k=3)")
    code, shown, progress = whosthere("audit", traces, *QUICK, *two, "--out", run)
    assert code == 0
    assert "finds" in shown
    assert f"The report is {run / 'report.html'}. The folder is private: its" in shown
    assert len(shown.splitlines()) < 24
    assert len(progress.splitlines()) < 5
    assert "What will be run" not in shown
    assert "Guaranteed" not in shown
    for words in ("counts of 1 are published as 0", "counts of 3 or fewer are published as 0"):
        assert shown.count(words) == 1
    details = whosthere("audit", traces, *QUICK, *two, "--out", run, "--details")[1]
    for words in ("What will be run", "Guaranteed: ", "Left to publish"):
        assert words in details
    assert "- mean AUC: " not in details
    assert "- mean AUC: " in whosthere("audit", traces, *QUICK, *two, "--out", run, "--explain")[1]
    assert "Guaranteed: " in whosthere("inspect", run)[1]


@pytest.mark.parametrize(
    ("limit", "fail_on", "ends"),
    [
        (0.1, None, 0),
        (0.1, "reject", 3),
        (0.1, "cannot-tell", 3),
        (0.9, "reject", 0),
        (0.9, "cannot-tell", 3),
    ],
)
def test_a_verdict_can_stop_a_pipeline(traces, tmp_path, whosthere, policy, limit, fail_on, ends):
    chosen = () if fail_on is None else ("--fail-on", fail_on)
    rest = ("-M", "raw", "--policy", policy(limit), "--out", tmp_path / "run", "--json")
    code, shown, _ = whosthere("audit", traces, *QUICK, *rest, *chosen)
    decision = json.loads(shown)["verdicts"][0]["decision"]
    assert decision == ("reject" if limit == 0.1 else "cannot tell")
    assert code == ends


def test_an_unknown_decision_is_refused(traces, tmp_path, whosthere):
    rest = ("-M", "raw", "--out", tmp_path / "run", "--fail-on", "accept")
    code, _, said = whosthere("audit", traces, *QUICK, *rest)
    assert code == 2
    assert "Use reject or cannot-tell" in said
    assert not (tmp_path / "run").exists()


def test_records_are_audited_directly_and_resume(records, traces, tmp_path, whosthere):
    run, rest = tmp_path / "run", ("-M", "raw")
    code, shown, _ = whosthere("audit", records, *QUICK, *rest, "--out", run)
    assert code == 0
    people = wt.Traces.load(traces)
    assert shown.startswith(
        f"Read {pl.read_parquet(records).height:,} records of {people.n_users} "
    )
    assert "user from 'user'" in shown
    kept = run / "traces.parquet"
    assert kept.read_bytes() == traces.read_bytes()
    assert whosthere("audit", traces, *QUICK, *rest, "--out", tmp_path / "other")[0] == 0
    found = (run / "findings.json").read_bytes()
    assert found == (tmp_path / "other" / "findings.json").read_bytes()
    next((run / "tasks").iterdir()).unlink()
    code, shown, _ = whosthere("audit", records, *QUICK, *rest, "--out", run)
    assert code == 0
    assert "2 of 3 tasks are done already" in shown
    assert (run / "findings.json").read_bytes() == found


def test_records_can_be_searched_directly(records, traces, tmp_path, whosthere, monkeypatch):
    """As traces can, by the command and from Python, and saying what was read."""
    searched = []

    def run(self, **_):
        searched.append(self.terms.everybody)
        raise TrialFailedError("this is enough")

    monkeypatch.setattr(PreparedSearch, "run", run)
    chosen = ("-m", "20", "-a", "likelihood-ratio", "--targets", "3", "--releases", "4")
    code, shown, said = whosthere("recommend", records, *chosen, "--out", tmp_path / "run")
    assert (code, shown[:5]) == (1, "Read ")
    assert "this is enough" in said
    with pytest.raises(TrialFailedError):
        wt.recommend(str(records), group_size=20, targets=3, releases=4, workers=1)
    expected = wt.Traces.load(traces)
    for found in searched:
        assert found.users == expected.users
        assert (found.cells == expected.cells).all()
    assert len(searched) == 2


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("by", ["python", "command"])
def test_one_process_compiles_before_several_begin(
    traces, tmp_path, whosthere, monkeypatch, capsys, workers, by
):
    """Others load what it compiled; and it is said once, even where nothing else is."""
    done = []

    def tried(*_, **__):
        numba.njit(lambda number: number + 1)(1)
        done.append("tried")
        return Cost(1.0, 0)

    def run(*_, **__):
        done.append("run")
        raise InputError("this is enough")

    monkeypatch.setattr("whosthere.auditing.run.estimate_cost", tried)
    monkeypatch.setattr(PreparedAudit, "run", run)
    if by == "python":
        with pytest.raises(InputError):
            wt.audit(traces, mechanisms="raw", group_size=20, targets=3, workers=workers)
        said = capsys.readouterr().err
    else:
        rest = ("-M", "raw", "--out", tmp_path / "run", "--json", "--workers", workers)
        _, _, said = whosthere("audit", traces, *QUICK, *rest)
    assert done == ["tried", "run"][2 - workers :]
    assert said.count("Compiling for this machine") == workers - 1


def test_a_dry_run_on_records_writes_nothing(records, tmp_path, whosthere):
    rest = ("-M", "raw", "--out", tmp_path / "run", "--dry-run", "--json")
    code, shown, _ = whosthere("audit", records, *QUICK, *rest)
    assert code == 0
    assert json.loads(shown)["releases"] == 4
    assert not (tmp_path / "run").exists()


def test_other_records_are_refused_and_leave_the_folder_as_it_is(records, tmp_path, whosthere):
    run, copy = tmp_path / "run", tmp_path / "records.parquet"
    shutil.copy(records, copy)
    assert whosthere("audit", copy, *QUICK, "-M", "raw", "--out", run)[0] == 0
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    pl.read_parquet(copy)[:-9].write_parquet(copy)
    code, _, said = whosthere("audit", copy, *QUICK, "-M", "raw", "--out", run)
    assert code == 2
    assert "the traces have changed" in said
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}


@pytest.mark.parametrize("given", ["several", "pattern", "folder"])
def test_several_files_are_one_table(records, traces, tmp_path, given, whosthere, capsys):
    table = pl.read_parquet(records)
    (tmp_path / "in").mkdir()
    paths = [tmp_path / "in" / f"{i}.parquet" for i in range(2)]
    for i, path in enumerate(paths):
        table[i::2].write_parquet(path)
    run = tmp_path / "run"
    if given == "pattern":
        options = {"attacks": "likelihood-ratio", "releases": 4, "targets": 3, "what_if": False}
        pattern = str(tmp_path / "in" / "*.parquet")
        wt.audit(pattern, mechanisms="raw", group_size=20, out=run, workers=1, **options)
        assert capsys.readouterr().err.startswith("Read ")
    else:
        inputs = paths if given == "several" else [tmp_path / "in"]
        assert whosthere("audit", *inputs, *QUICK, "-M", "raw", "--out", run)[0] == 0
    kept, expected = wt.Traces.load(run / "traces.parquet"), wt.Traces.load(traces)
    assert kept.users == expected.users
    assert (kept.cells == expected.cells).all()


@pytest.mark.parametrize(
    ("table", "option"),
    [
        ({"user": ["a"], "time": ["2024-01-01 10:00"], "region": ["x"]}, "--timezone"),
        ({"user": ["a"], "time": ["2024-01-01T10:00Z"], "lon": [1.0], "lat": [2.0]}, "region"),
        ({"who": ["a"], "time": ["2024-01-01T10:00Z"], "region": ["x"]}, "--user-column"),
    ],
)
def test_what_has_to_be_asked_is_asked_by_ingest(tmp_path, whosthere, table, option):
    path = tmp_path / "records.csv"
    pl.DataFrame(table).write_csv(path)
    code, _, said = whosthere("audit", path, *QUICK, "-M", "raw", "--out", tmp_path / "run")
    assert code == 2
    assert option in said
    assert "whosthere ingest" in said
    assert not (tmp_path / "run").exists()


def test_results_among_records_are_refused(records, tmp_path, whosthere):
    shutil.copy(records, tmp_path)
    code, _, said = whosthere("audit", tmp_path, *QUICK, "-M", "raw", "--out", tmp_path / "run")
    assert code == 2
    assert "lies in a folder of records" in said
    assert not (tmp_path / "run").exists()


def test_a_run_folder_can_be_extended_from_its_own_traces(records, tmp_path, whosthere):
    run = tmp_path / "run"
    assert whosthere("audit", records, *QUICK, "-M", "raw", "--out", run)[0] == 0
    kept = run / "traces.parquet"
    more = ("--targets", "4", "-M", "raw", "--out", run, "--extend")
    assert whosthere("audit", kept, *QUICK, *more)[0] == 0
    assert kept.exists()
    assert json.loads(whosthere("inspect", run, "--json")[1])["verdicts"][0]["look"] == 2


@pytest.mark.parametrize("given", ["empty.csv", "mixed", "nothing*.csv", "gone.csv"])
def test_what_no_option_would_help_is_not_sent_to_ingest(tmp_path, whosthere, given, traces):
    (tmp_path / "empty.csv").touch()
    inputs = [traces, tmp_path / "empty.csv"] if given == "mixed" else [tmp_path / given]
    code, _, said = whosthere("audit", *inputs, *QUICK, "-M", "raw", "--out", tmp_path / "run")
    assert code == 2
    assert "ingest" not in said
    assert said.count("\n") == 1


def test_what_matches_nothing_is_refused(tmp_path):
    with pytest.raises(wt.InputError, match="matches no file"):
        wt.audit(str(tmp_path / "*.csv"), mechanisms="raw", group_size=20)
