"""`whosthere check`: a table from the web, read with the options of `import`."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest

import whosthere as wt


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Write a table of 12 regions over 24 hours; counts of 1 and 2 are marked."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("whosthere.game.table_check._PEOPLE", 40)
    rows = ["place;when;people"]
    for region in range(12):
        for hour in range(24):
            count = (region * 7 + hour * 5) % 11 * (region % 4 + 1) // 2
            shown = "<3" if 0 < count < 3 else count
            rows.append(f"r{region};2024-05-01 {hour:02}:00Z;{shown}")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return (
        "t.csv",
        "--region-column",
        "place",
        "--time-column",
        "when",
        "--count-column",
        "people",
    )


MARKED = ("--withheld", "<3", "-M", "suppress(k=2, shown=mark)")


def test_a_table_is_checked_and_a_page_is_written(whosthere, table, tmp_path):
    code, out, err = whosthere("check", *table, *MARKED, "--visits", 4, "-o", "c.html", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert [one["visits"] for one in said["findings"]] == ["4", "4"]
    assert "verdict" not in said
    assert "gives no verdict" in (tmp_path / "c.html").read_text()
    code, out, err = whosthere("check", *table, *MARKED, "--visits", 4, "-o", "c.html")
    assert code == 2
    assert "--force" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--withheld", "<3"), "suppress(k=2, shown=mark)"),
        ((*MARKED, "--visits", "many"), "is no number of visits"),
        ((*MARKED, "--visits", "500"), "Give smaller numbers of visits (--visits)"),
        ((*MARKED, "-m", "5"), "group"),
        ((*MARKED, "-o", "page.txt"), ".html"),
    ],
)
def test_what_cannot_be_checked_is_said_in_one_message(whosthere, table, options, said):
    code, _, err = whosthere("check", *table, *options)
    assert code == 2
    assert said in err
    assert "Traceback" not in err


def written(counts, header="region,{}", rows=()):
    """Write counts, shape (regions, days from 1 May 2024), as a wide table with more rows."""
    days = [f"2024-05-{day:02}" for day in range(1, counts.shape[1] + 1)]
    body = [f"r{i},{','.join(map(str, row))}" for i, row in enumerate(counts.tolist())]
    Path("t.csv").write_text("\n".join([header.format(",".join(days)), *body, *rows]) + "\n")


@pytest.mark.parametrize("corrections", [0, 5])
def test_cumulative_counts_are_refused_and_their_differences_read(
    whosthere, table, rng, corrections
):
    new = rng.poisson(9, (20, 15))
    new[:corrections, 7] = -30
    written(1_000 + new.cumsum(axis=1))
    for command in (("check",), ("import", "-m", 9_000, "-o", "r.parquet")):
        code, _, err = whosthere(*command, "t.csv", "-M", "raw", "--tz", "UTC")
        assert code == 2
        assert "its counts hardly ever fall" in err
        assert f"and {corrections} fall" in err
        assert "each count less the one before" in err
    written(np.abs(new))
    code, _, err = whosthere("check", "t.csv", "-M", "raw", "--tz", "UTC", "--visits", 2)
    assert code == 0, err


def test_a_morning_in_which_all_counts_rise_is_not_cumulative(whosthere, table):
    hours = ",".join(f"2024-05-01 {hour:02}:00Z" for hour in range(4, 10))
    body = [f"r{i},{','.join(str(5 + i + h * h) for h in range(6))}" for i in range(30)]
    Path("t.csv").write_text("\n".join([f"region,{hours}", *body]))
    code, _, err = whosthere("check", "t.csv", "-M", "raw", "--visits", 2)
    assert code == 0, err


def test_what_makes_an_estimate_wrong_is_said_first(whosthere, table, rng):
    """Totals beside withheld counts, and a day that is not in the table."""
    counts = rng.poisson(9, (20, 15))
    shown = np.where(counts < 5, "<5", counts.astype(str))
    totals = f"Total,{','.join(map(str, counts.sum(axis=0)))}"
    written(shown, rows=[totals])
    whole = Path("t.csv").read_text()
    given = ("t.csv", "--tz", "UTC", "--visits", 2)
    withheld = ("-M", "suppress(k=4, shown=mark)")
    code, out, err = whosthere("check", *given, *withheld, "-o", "c.html")
    assert code == 0, err
    assert out.startswith("Warning: the table has totals, which are left out. They can give away")
    assert "They can give away" in Path("c.html").read_text()
    said = whosthere("check", *given, *withheld, "--json")[1]
    assert "totals" in json.loads(said)["warnings"][0]
    # Totals of true counts tell nothing more, and neither does a table without them.
    written(counts, rows=[totals])
    assert "Warning" not in whosthere("check", *given, "-M", "raw")[1]
    Path("t.csv").write_text(whole.replace(totals, ""))
    assert "Warning" not in whosthere("check", *given, *withheld)[1]
    Path("t.csv").write_text(whole.replace(totals, "").replace("2024-05-07", "2024-06-07"))
    out = whosthere("check", *given, *withheld)[1]
    assert out.startswith("Warning: 23 of 38 epochs have no row in the table.")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make traces of 300 people, a release of all of them, and another program's table of it."""
    folder = tmp_path_factory.mktemp("made")
    traces = wt.simulate("milan-like", seed=7, users=300, regions=16, days=2).traces()
    traces.save(folder / "traces.parquet")
    release = wt.publish(traces, "suppress(k=1)", seed=1).release
    release.save(folder / "release.parquet")
    release.to_frame().write_csv(folder / "counts.csv")
    (folder / "policy.toml").write_text("[limits]\ntpr_at_fpr_1pct = 1.0\n")
    return folder


QUICK = ("--releases", "20", "--no-what-if")


def test_with_traces_it_is_a_verdict_on_this_very_table(whosthere, made, tmp_path):
    given = (made / "release.parquet", made / "traces.parquet", *QUICK)
    page, people = tmp_path / "c.html", tmp_path / "people.csv"
    code, out, err = whosthere(
        "check", *given, "-o", page, "--people", people, "--fail-on", "reject", "--json"
    )
    assert code == 3, err
    said = json.loads(out)
    assert said["verdict"]["decision"] == "reject"
    assert said["exposed"][0]["attack"] == "likelihood-ratio"
    assert "Who would be found in this release?" in page.read_text()
    assert people.read_text().startswith("row,attack,score,without,chance,again\n")
    assert stat.S_IMODE(people.stat().st_mode) == 0o600
    code, out, err = whosthere("check", *given, "--policy", made / "policy.toml")
    assert code == 0, err
    assert "ACCEPT" in out
    assert "people found" in out
    code, out, err = whosthere("check", *given, "--people", people, "--with-ids", "--force")
    assert code == 0, err
    assert people.read_text().startswith("row,user,attack,")
    assert "user" not in out


def test_another_programs_table_is_checked_by_the_same_people(whosthere, made):
    codes = [
        whosthere("check", *given, *QUICK, "--json")[1]
        for given in (
            (made / "release.parquet", made / "traces.parquet"),
            (made / "counts.csv", made / "traces.parquet", "-M", "suppress(k=1)"),
        )
    ]
    one, other = map(json.loads, codes)
    assert one["exposed"] == other["exposed"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("release.parquet", "--people", "p.csv"), "--people needs the traces"),
        (("release.parquet", "--fail-on", "reject"), "--fail-on needs the traces"),
        (("release.parquet", "release.parquet"), "is a release, and no traces"),
        (("release.parquet", "traces.parquet", "--visits", "3"), "--visits is for a table without"),
        (("release.parquet", "traces.parquet", "--with-ids"), "(--people)"),
        (("release.parquet", "traces.parquet", "--fail-on", "x"), "--fail-on 'x' is not known"),
        (("release.parquet", "traces.parquet", "--group", "no.txt"), "no.txt: does not exist"),
        (("release.parquet", "traces.parquet", "--releases", "500"), "(--releases)"),
        (("release.parquet", "traces.parquet", "--attack", "knock-knock"), "knock-knock cannot"),
        (("release.parquet", "traces.parquet", "-o", "p.txt"), ".html"),
        (("release.parquet", "traces.parquet", "--people", "traces.parquet", "--force"), "input"),
        (("counts.csv", "traces.parquet"), "suppress(k=1)"),
        (("traces.parquet", "traces.parquet", "-M", "raw"), "traces.parquet"),
    ],
)
def test_what_cannot_be_checked_with_traces_is_refused(whosthere, made, monkeypatch, given, said):
    monkeypatch.chdir(made)
    before = sorted(made.iterdir())
    code, out, err = whosthere("check", *given)
    assert code == 2
    assert said in err
    assert err.count("error:") == 1
    assert out == ""
    assert sorted(made.iterdir()) == before
