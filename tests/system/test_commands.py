"""Whole commands, one after the other, as a user types them."""

import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
import typer
from rich.console import Console

from whosthere import __version__
from whosthere.cli import console
from whosthere.cli.main import app
from whosthere.data.files import write_table
from whosthere.data.traces import Traces
from whosthere.privacy.release import Release

COMMANDS = [command.name or command.callback.__name__ for command in app.registered_commands]
SMALL = ["--users", "150", "--regions", "9", "--days", "3", "--seed", "7"]
NOISY = "laplace(eps=1, unit=user-day, max_visits=2) | suppress(k=1)"


@pytest.fixture
def ok(whosthere):
    """Run a command that must end well without a word of complaint; return its output."""

    def run(*arguments):
        code, out, err = whosthere(*arguments)
        assert (code, err) == (0, "")
        return out

    return run


@pytest.fixture
def city(ok, tmp_path):
    """Simulate and ingest a small city; give its folder."""
    folder = tmp_path / "city"
    ok("simulate", "milan-like", *SMALL, "--out", folder)
    records, regions, friends = (
        folder / name for name in ("records.parquet", "regions.csv", "friends.csv")
    )
    ok("ingest", records, "--regions", regions, "--friends", friends, "--out",
       folder / "traces.parquet")  # fmt: skip
    return folder


def test_from_a_simulated_city_to_a_release_and_back(ok, city, tmp_path):
    facts = json.loads(ok("inspect", city / "traces.parquet", "--json"))
    assert (facts["kind"], facts["regions"], facts["timezone"]) == ("traces", 9, "Europe/Rome")
    assert 0 < facts["users"] <= 150
    assert facts["epochs"] <= 72
    records = json.loads(ok("inspect", city / "records.parquet", "--json"))
    assert records["rows"] == facts["ledger"]["records_read"]

    ours, table = tmp_path / "release.csv", tmp_path / "plain.csv"
    common = ["--group-size", 80, "--mechanism", NOISY]
    said = ok("release", city / "traces.parquet", *common, "--seed", 1, "--out", ours)
    assert "This is a trial, and nothing is guaranteed." in said
    assert "share of visits dropped by bounding" in said
    shown = json.loads(ok("inspect", ours, "--json"))
    release = Release.load(ours)
    assert shown["group_size"] == release.group_size == 80
    assert shown["mechanism"] == NOISY
    assert shown["total_count"] == release.counts.sum()
    assert shown["description"] in said
    assert shown["epochs"] == facts["epochs"]

    table.write_bytes(ours.read_bytes())
    again = tmp_path / "again.parquet"
    regions = ["--regions", city / "regions.csv", "--timezone", "Europe/Rome"]
    ok("import", table, *common, *regions, "--out", again)
    assert Release.load(again) == release


def test_the_same_seeds_give_the_same_bytes(ok, city, tmp_path):
    ok("simulate", "milan-like", *SMALL, "--out", tmp_path / "twin")
    assert (tmp_path / "twin" / "records.parquet").read_bytes() == (
        city / "records.parquet"
    ).read_bytes()
    for seed, names in ((5, ("a", "b")), (6, ("c",))):
        for name in names:
            out = tmp_path / f"{name}.parquet"
            ok("release", city / "traces.parquet", "-m", 80, "-M", NOISY, "--seed", seed, "-o", out)
    a, b, c = ((tmp_path / f"{name}.parquet").read_bytes() for name in "abc")
    assert a == b != c


def test_a_release_of_everybody_is_measured_as_json(ok, city, tmp_path):
    out = tmp_path / "raw.parquet"
    said = json.loads(ok("release", city / "traces.parquet", "-M", "raw", "-o", out, "--json"))
    assert said["group_size"] == Traces.load(city / "traces.parquet").n_users
    assert said["file"] == str(out)
    assert said["visits_dropped"] == 0
    assert said["utility"]["mean_absolute_error"] == 0
    assert said["utility"]["top_regions_kept"] == 1
    hidden = ["-M", "suppress(k=1000)", "-o", out, "--force"]
    said = json.loads(ok("release", city / "traces.parquet", *hidden, "--json"))
    assert said["utility"]["nonzero_lost"] == 1
    assert said["utility"]["space_distance"] is None
    assert "not defined" in ok("release", city / "traces.parquet", *hidden)


def test_the_ledger_is_printed_and_kept(ok, city):
    out = city / "strict.parquet"
    window = ["--from", "2013-11-01T12:00", "--to", "2013-11-03", "--min-visits", 2]
    said = ok("ingest", city / "records.parquet", *window, "--out", out)
    assert "From records to visits" in said
    ledger = json.loads(ok("inspect", out, "--json"))["ledger"]
    reasons = [entry["reason"] for entry in ledger["entries"]]
    assert reasons == [
        "outside the time window",
        "repeats of a visit",
        "of users with fewer than 2 visits",
    ]
    for entry in ledger["entries"]:
        [line] = [line for line in said.splitlines() if f"- {entry['reason']} " in line]
        assert f"{-entry['records']:,} " in line
        assert f"{-entry['users']:,} " in line
    lost = sum(entry["records"] for entry in ledger["entries"])
    assert ledger["records_read"] == ledger["visits"] + lost


def test_friends_go_from_the_city_into_the_traces(ok, city, tmp_path):
    pairs = pl.read_csv(city / "friends.csv")
    traces = Traces.load(city / "traces.parquet")
    assert traces.friends.n_edges == pairs.height > 0
    facts = json.loads(ok("inspect", city / "traces.parquet", "--json"))
    assert facts["friendships"] == facts["ledger"]["friends"]["kept"] == pairs.height
    assert f"{pairs.height:,}" in ok("inspect", city / "traces.parquet")

    (tmp_path / "f.csv").write_text(f"a,b\n{traces.users[0]},{traces.users[1]}\nsomebody,else\n")
    out = tmp_path / "few.parquet"
    said = ok("ingest", city / "records.parquet", "--friends", tmp_path / "f.csv", "-o", out)
    assert "1 friendships kept of 2 rows (1 with users who are not in the traces" in said
    assert Traces.load(out).friends.n_edges == 1

    said = ok("ingest", city / "records.parquet", "--out", out, "--force")
    assert "friendships" not in said
    assert json.loads(ok("inspect", out, "--json"))["friendships"] is None
    assert "not known" in ok("inspect", out)


def test_simulate_names_its_files_and_the_next_step(ok, tmp_path):
    said = ok("simulate", "milan-like", *SMALL, "--out", tmp_path / "new")
    for name in ("records.parquet", "regions.csv", "friends.csv"):
        assert (tmp_path / "new" / name).exists()
        assert str(tmp_path / "new" / name) in said
    [step] = [line.split("whosthere ")[1] for line in said.splitlines() if "Next:" in line]
    ok(*step.split())


@pytest.fixture
def points(rng, tmp_path):
    """Make 200 records of 10 users around Milan, where areas, antennas and squares lie."""
    lon, lat = rng.uniform(9.0, 9.2, 200).round(5), rng.uniform(45.4, 45.6, 200).round(5)
    table = pl.DataFrame(
        {
            "user_id": [f"u{i}" for i in rng.integers(0, 10, 200)],
            "timestamp": 1_622_505_600 + rng.integers(0, 86_400, 200),
            "longitude": lon,
            "latitude": lat,
        }
    )
    table.write_csv(tmp_path / "points.csv")
    (tmp_path / "antennas.csv").write_text(
        "antenna_id,lon,lat\nwest,9.05,45.5\neast,9.15,45.5\nabroad,20,50\n"
    )
    halves = [("west", 9.0, 9.1), ("east", 9.1, 9.2)]
    features = [
        {
            "type": "Feature",
            "properties": {"name": name},
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[a, 45.4], [b, 45.4], [b, 45.6], [a, 45.6], [a, 45.4]]],
            },
        }
        for name, a, b in halves
    ]
    collection = {"type": "FeatureCollection", "features": features}
    (tmp_path / "areas.geojson").write_text(json.dumps(collection))
    return table


def test_regions_by_antennas_and_by_areas(ok, points, tmp_path):
    ok("ingest", tmp_path / "points.csv", "--antennas", tmp_path / "antennas.csv", "-o",
       tmp_path / "a.parquet")  # fmt: skip
    ok("ingest", tmp_path / "points.csv", "--polygons", tmp_path / "areas.geojson", "--polygon-id",
       "name", "-o", tmp_path / "p.parquet")  # fmt: skip
    nearest, inside = (Traces.load(tmp_path / f"{name}.parquet") for name in "ap")
    assert nearest.regions.ids == ("west", "east", "abroad")
    assert inside.regions.ids == ("west", "east")
    west = points.filter(pl.col("longitude") < 9.1)
    hours = west.with_columns(pl.col("timestamp") // 3600).select("user_id", "timestamp").unique()
    assert nearest.counts()[0].sum() == inside.counts()[0].sum() == hours.height
    assert np.array_equal(nearest.counts()[:2], inside.counts())
    ok("ingest", tmp_path / "points.csv", "--antennas", tmp_path / "antennas.csv", "--reach-km", 8,
       "-o", tmp_path / "n.parquet")  # fmt: skip
    assert Traces.load(tmp_path / "n.parquet").n_visits < nearest.n_visits


@pytest.mark.parametrize(
    ("option", "numbers"),
    [
        (["--grid-km", "5"], {20, 25}),
        (["--grid", "3x4"], {12}),
        (["--grid", "1X2"], {2}),
        (["--h3", "7"], range(20, 200)),
    ],
)
def test_regions_over_the_data(ok, points, tmp_path, option, numbers):
    out = tmp_path / "t.parquet"
    said = ok("ingest", tmp_path / "points.csv", *option, "--epoch", "1d", "--out", out)
    traces = Traces.load(out)
    assert len(traces.regions) in numbers
    assert f"{len(traces.regions):,} regions, 1 epochs of 1d" in said
    assert traces.regions.have_positions
    assert traces.n_users == 10
    assert traces.ledger.records_read == 200


def test_regions_that_the_records_name(ok, city, tmp_path):
    ok("ingest", city / "records.parquet", "--out", tmp_path / "named.parquet")
    named = Traces.load(tmp_path / "named.parquet")
    assert not named.regions.have_positions
    assert set(named.regions.ids) <= set(Traces.load(city / "traces.parquet").regions.ids)


def test_a_table_of_others_with_its_own_words(ok, tmp_path):
    (tmp_path / "t.csv").write_text("Ort;Zeit;Zahl\nA;2021-06-01 00:00;<5\nA;2021-06-01 01:00;8\n")
    names = ["--region-column", "Ort", "--time-column", "Zeit", "--count-column", "Zahl"]
    marking = "suppress(k=4, shown=mark)"
    ok("import", tmp_path / "t.csv", *names, "-m", 20, "-M", marking, "--withheld", "<5", "--tz",
       "Africa/Accra", "-o", tmp_path / "r.parquet")  # fmt: skip
    assert Release.load(tmp_path / "r.parquet").counts.tolist() == [[0, 8]]
    (tmp_path / "w.csv").write_text("region,2021-06-01\nA,7\n")
    ok("import", tmp_path / "w.csv", "--wide", "--epoch", "1d", "-m", 20, "-M", "raw", "--tz",
       "Africa/Accra", "-o", tmp_path / "w.parquet")  # fmt: skip
    assert Release.load(tmp_path / "w.parquet").counts.tolist() == [[7]]


def test_inspect_shows_no_user(ok, city):
    users = Traces.load(city / "traces.parquet").users
    for file in ("traces.parquet", "records.parquet", "regions.csv", "friends.csv"):
        for form in ([], ["--json"]):
            said = ok("inspect", city / file, *form)
            assert not any(user in said for user in users)


def test_inspect_keeps_tables_of_different_columns_apart(ok, city, monkeypatch):
    monkeypatch.chdir(city)
    (city / "traces.parquet").unlink()
    shutil.copy("friends.csv", "more friends.csv")
    facts = json.loads(ok("inspect", ".", "--json"))
    assert "rows" not in facts
    friends = facts["tables"]["friends.csv and 1 more"]
    assert friends == {
        "rows": 2 * pl.read_csv("friends.csv").height,
        "columns": ["user", "friend"],
    }
    assert facts["tables"]["regions.csv"]["rows"] == 9
    shown = ok("inspect", ".")
    assert "9 rows: region, lon, lat" in shown
    assert re.search(r"files not read +│ +none", shown)


def test_inspect_says_what_it_counts_and_what_a_file_is(ok, city, tmp_path):
    traces = city / "traces.parquet"
    n = int((Traces.load(traces).visits_per_user() >= 10).sum())
    assert re.search(rf"users with at least 10 visits +│ +{n}\b", ok("inspect", traces))
    (tmp_path / "manifest.json").write_text("{}")
    scores = pl.DataFrame({"attack": ["x"], "score": [0.5]})
    scores.write_parquet(tmp_path / "scores.parquet")
    write_table(scores, tmp_path / "task.parquet", kind="scores", metadata={})
    for name, kind in (("scores", "table of an audit"), ("task", "scores file of whosthere")):
        assert json.loads(ok("inspect", tmp_path / f"{name}.parquet", "--json"))["kind"] == kind


def test_inspect_reads_folders(ok, city, monkeypatch):
    monkeypatch.chdir(city)
    (city / "parts").mkdir()
    (city / "records.parquet").rename("parts/1.parquet")
    rows = json.loads(ok("inspect", "parts", "--json"))["rows"]
    (city / "parts" / "1.parquet").rename("records.parquet")
    (city / "traces.parquet").unlink()
    (city / "regions.csv").unlink()
    (city / "friends.csv").unlink()
    assert json.loads(ok("inspect", ".", "--json"))["rows"] == rows


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(ok, command):
    said = ok(command, "--help")
    assert f"  whosthere {command}" in re.split("\nExamples?\n", said)[1]


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_in_groups_and_cuts_no_name(ok, monkeypatch, command, width):
    parser = typer.main.get_command(app)
    params = (parser.commands[command] if command else parser).params
    shown = io.StringIO()
    narrow = Console(file=shown, force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(console, "out", narrow)
    assert not ok(*filter(None, [command]), "--help").strip()
    said = shown.getvalue()
    assert max(len(line) for line in said.splitlines()) <= width
    assert "…" not in said
    assert not re.search("<[a-z]", said)
    for option in (name for one in params for name in (*one.opts, *one.secondary_opts)):
        assert not option.startswith("-") or re.search(rf"^  .*{option}\b", said, re.MULTILINE)
    groups = re.findall(r"^([A-Z].*)\n  \S", said, re.MULTILINE)
    assert len(groups) >= min(len(params) // 4, 4)
    if not command:
        assert {"Prepare", "Audit", "One release", "Look", "Study"} <= set(groups)


def test_defaults_are_shown(ok):
    said = " ".join(ok("attack", "--help").split())
    assert "[default: likelihood-ratio]" in said
    assert "default 0.5" in said
    assert "[required]" in said


def test_no_arguments_show_the_help(whosthere):
    _, out, err = whosthere()
    assert "Usage: whosthere" in out + err
    for command in COMMANDS:
        assert f" {command} " in out + err


def test_the_mechanisms_and_the_version(ok):
    said = ok("mechanisms")
    for name in ("suppress(k=1)", "laplace(eps=1, unit=event)", "flowkit", "opensafely", "mds"):
        assert name in said
    assert ok("--version").strip() == f"whosthere {__version__}"


def test_the_module_runs_as_a_program(tmp_path):
    command = [sys.executable, "-m", "whosthere", "inspect", tmp_path / "none.csv"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_every_command_has_json():
    parser = typer.main.get_command(app)
    for name, command in parser.commands.items():
        assert "--json" in [option for one in command.params for option in one.opts], name


def test_results_are_printed_as_json(ok, city, tmp_path):
    def shown(*arguments):
        return json.loads(ok(*arguments, "--json"))

    simulated = shown("simulate", "milan-like", *SMALL, "--out", tmp_path / "again")
    records = simulated["files"][0]
    assert simulated["records"] == pl.read_parquet(records).height
    traces = tmp_path / "traces.parquet"
    read = shown("ingest", records, "--out", traces)
    assert read["file"] == str(traces)
    assert read["ledger"]["records_read"] == simulated["records"]
    assert read["regions"] == len(Traces.load(traces).regions)
    known = shown("target", traces, "--min-visits", "1", "--out", tmp_path / "target.csv")
    assert known["known"] == "all"
    assert known["visits"] == known["visits_in_all"] > 0
    table = tmp_path / "counts.csv"
    table.write_text("region,time,count\na,2024-01-01T00:00Z,3\na,2024-01-01T01:00Z,0\n")
    made = ("-m", "9", "-M", "raw", "--out", tmp_path / "release.parquet")
    assert shown("import", table, *made)["nonzero_cells"] == 1
    listed = shown("mechanisms")
    assert {one["name"] for one in listed["steps"]} >= {"raw", "suppress", "laplace"}
    assert {one["name"] for one in listed["presets"]} >= {"flowkit", "mds"}
    assert shown("attacks")["attacks"][0]["parameters"][0].keys() >= {"key", "default", "meaning"}
    assert "ssc" in shown("paper", "--list")["experiments"]
