"""Several tables as one publication, from the command to the report."""

import pytest

import whosthere as wt

BOTH = ("--table", "finest", "--table", "epochs=1d, counts=visits: round(to=5)")
QUICK = ("-m", 20, "--attack", "likelihood-ratio", "--targets", 3, "--releases", 2, "--workers", 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("city") / "traces.parquet"
    wt.simulate("milan-like", seed=2, users=300, regions=9, days=2).traces().save(path)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_audit_of_two_tables_from_command_to_report(path, tmp_path, whosthere):
    run, options = tmp_path / "run", (path, *BOTH, "-M", "suppress(k=2)", *QUICK)
    assert "finest: suppress(k=2)" in whosthere("audit", *options, "--out", run, "--dry-run")[1]
    code, shown, _ = whosthere("audit", *options, "--out", run)
    assert code == 0
    name = "finest: suppress(k=2) + epochs=1d, counts=visits: round(to=5)"
    assert name in shown
    result = wt.load(run)
    assert [one.setting for one in result.verdicts] == [f"{name}, m=20"]
    assert {one.change: one.tables for one in result.what_if} == {
        "only finest: suppress(k=2)": ("finest: suppress(k=2)",),
        "only epochs=1d, counts=visits: round(to=5)": ("epochs=1d, counts=visits: round(to=5)",),
    }
    page = (run / "report.html").read_text()
    assert "Which table gives most away" in page
    assert "gives most away. By itself" in page
    assert "More than one release" not in page
    # What is done is done, and more can be added.
    assert "are done already" in whosthere("audit", *options, "--out", run)[1]
    more = (*options[:-5], 4, *options[-4:], "--extend", "--out", run)
    assert whosthere("audit", *more)[0] == 0
    assert wt.load(run).n_targets == 4


def test_a_plan_file_and_python_say_the_same(path, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'mechanisms = "suppress(k=2)"\ngroup_size = 20\ntargets = 4\nreleases = 2\n'
        'attacks = "likelihood-ratio"\n[[blocks]]\n[[blocks]]\n'
        'tables = ["finest", "epochs=1d: raw"]\n'
    )
    by_file = wt.audit(path, plan=plan, what_if=False, workers=1)
    assert [one.setting for one in by_file.verdicts] == [
        "suppress(k=2), m=20",
        "finest: suppress(k=2) + epochs=1d: raw, m=20",
    ]
    days = wt.results.TableScheme(
        wt.mechanisms.Mechanism.parse("raw"), wt.results.Layout(epochs=24)
    )
    both = wt.audit(
        path,
        mechanisms="suppress(k=2)",
        tables=["finest", days],
        group_size=20,
        targets=4,
        releases=2,
        attacks="likelihood-ratio",
        what_if=False,
        workers=1,
    )
    scores = by_file.scores.filter(setting=by_file.verdicts[1].setting)["score"].to_list()
    assert both.scores["score"].to_list() == scores


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--table", "hours"), "does not say which cells a table has (--table)"),
        (("--table", "finest"), "no mechanism is given"),
        (("--table", "finest: raw", "-M", "raw"), "(--mechanism)"),
        (("--table", "epochs=5h: laplace(eps=1, unit=user-day, max_visits=1)"), "(--table)"),
        (("--table", "regions=no.csv: raw"), "no.csv"),
        (("--table", "epochs=9d: raw"), "2d at most"),
    ],
)
def test_slips_end_in_one_message(path, refused, options, said):
    assert said in refused("audit", path, *options, *QUICK, "--out", "run")
