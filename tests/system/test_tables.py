"""Several tables as one publication, from the command to the report."""

import json

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
        (
            ("--table", "epochs=5h: laplace(eps=1, unit=user-day, max_visits=1)"),
            "whole epochs of 5h",
        ),
        (("--table", "regions=no.csv: raw"), "no.csv"),
        (("--table", "epochs=9d: raw"), "2d at most"),
    ],
)
def test_slips_end_in_one_message(path, refused, options, said):
    assert said in refused("audit", path, *options, *QUICK, "--out", "run")


@pytest.fixture(scope="module")
def districts(path, tmp_path_factory):
    regions = wt.Traces.load(path).regions.ids
    made = tmp_path_factory.mktemp("districts") / "districts.csv"
    rows = [f"{region},{'west' if i < 4 else 'east'}" for i, region in enumerate(regions)]
    made.write_text("\n".join(["region,group", *rows]))
    return made


@pytest.fixture
def published(path, districts, folder, whosthere):
    """Three tables of most people, and what is known of somebody with many visits."""
    tables = ("finest", "epochs=1d, counts=visits: raw", f"regions={districts}, epochs=1d: raw")
    options = [word for table in tables for word in ("--table", table)]
    code, shown, _ = whosthere(
        "release", path, *options, "-M", "raw", "-m", 80, "--seed", 1, "--out", "out.parquet"
    )
    assert code == 0
    assert "epochs=1d, counts=visits: raw" in shown
    whosthere("target", path, "--min-visits", 5, "--seed", 4, "--out", "target.csv")
    return tables


def test_tables_are_released_as_files_and_attacked_together(published, path, folder, whosthere):
    releases = [wt.Release.load(folder / f"out-{i}.parquet") for i in (1, 2, 3)]
    hours, sums, east = releases
    assert sums.facts.most_added == 24
    assert (hours.counts.reshape(len(hours.regions), 2, 24).sum(axis=2) == sums.counts).all()
    assert east.regions.ids == ("east", "west")
    files = [f"out-{i}.parquet" for i in (1, 2, 3)]
    cells = [word for text in published for word in ("--table", text.partition(":")[0])]
    options = ("--target", "target.csv", "--json")
    alone = json.loads(whosthere("attack", files[0], *options)[1])
    both = json.loads(whosthere("attack", *files[:2], *options)[1])
    code, shown, _ = whosthere("attack", *files, *cells, *options)
    assert code == 0
    assert alone["score"] != both["score"] != json.loads(shown)["score"]
    learned = (*options, "-a", "knock-knock(groups=20, validation=10)", "--reference", path)
    assert whosthere("attack", *files, *cells, *learned)[0] in {0, 2}
    answer = wt.attack([folder / one for one in files[:2]], folder / "target.csv")
    assert answer.score == pytest.approx(both["score"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("out-1.parquet", "out-3.parquet"), "(--table), such as 'regions=districts.csv"),
        (("out-1.parquet", "out-2.parquet", "--table", "finest"), "cells of 1 tables"),
        (("out-1.parquet", "out-2.parquet", "--table", "x", "--table", "y"), "(--table)"),
        (("out-2.parquet", "out-1.parquet", "--table", "finest", "--table", "epochs=1d"), "clear"),
        (("out-1.parquet", "small.parquet"), "not of the same"),
        (("out-1.parquet", "out-2.parquet", "--past-in", "out-1.parquet"), "one table"),
    ],
)
def test_releases_that_are_no_publication_are_refused(
    published, path, folder, whosthere, refused, words, said
):
    assert published
    whosthere("release", path, "-M", "raw", "-m", 40, "--seed", 1, "--out", "small.parquet")
    assert said in refused("attack", *words, "--target", "target.csv")


def test_nothing_is_released_where_a_file_is_there(path, folder, refused):
    (folder / "out-2.csv").write_text("mine")
    both = ("--table", "finest: raw", "--table", "epochs=1d: raw")
    assert "out-2.csv" in refused("release", path, *both, "--out", "out.csv")
    assert "mechanism" in refused("release", path, "--table", "finest", "--out", "new.csv")
    assert "mechanism" in refused("release", path, "--out", "new.csv")


def test_a_publication_is_released_by_its_audit_alone(path, folder, whosthere, refused):
    run = ("audit", path, *BOTH, "-M", "raw", *QUICK, "--no-what-if", "--out", "run")
    assert whosthere(*run)[0] in {0, 1}
    by = ("-m", 20, "--audit", "run", "--out", "out.parquet")
    said = refused("release", path, "-M", "raw", *by)
    assert "did not try raw, m=20, but finest: raw + epochs=1d" in said
    assert "did not accept finest: raw" in refused("release", path, *BOTH, "-M", "raw", *by)


def test_tables_of_another_program_become_one_publication(folder, whosthere, refused):
    (folder / "hours.csv").write_text(
        "region,time,count\n"
        + "".join(f"r{i // 24},2024-01-01T{i % 24:02}:00,{i % 7}\n" for i in range(72))
    )
    (folder / "days.csv").write_text("region,time,count\nr0,2024-01-01,5\nr1,2024-01-02,9\n")
    words = ("import", "hours.csv", "days.csv", "-m", 50, "--tz", "UTC", "--out", "r.parquet")
    assert "2 tables have 3 mechanisms" in refused(*words, *(("-M", "raw") * 3))
    code, shown, _ = whosthere(*words, "-M", "raw", "-M", "suppress(k=1)", "--json")
    assert code == 0
    assert [one["file"] for one in json.loads(shown)["tables"]] == ["r-1.parquet", "r-2.parquet"]
    assert str(wt.Release.load("r-2.parquet").mechanism) == "suppress(k=1)"
