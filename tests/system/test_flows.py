"""Origin-destination tables, from records of trips to verdict, release and attack."""

import csv
import re

import numpy as np
import pytest

import whosthere as wt
from whosthere.data.flows import Pairs
from whosthere.display import first_screen

PLACES = 5


@pytest.fixture(scope="module")
def rides(tmp_path_factory):
    """Return a file of trips: 60 people, each with a way to work and some other trips."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("trips") / "rides.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["user", "started_at", "ended_at", "start_station_id", "end_station_id"])
        for user in range(60):
            home, work = rng.choice(PLACES, 2, replace=False)
            for day in range(1, 8):
                other = rng.integers(0, PLACES, 2)
                for hour, (a, b) in ((8, (home, work)), (9, (home, work)), (17, other)):
                    times = (f"2024-01-0{day}T{hour:02d}:{minute}:00Z" for minute in (10, 30))
                    rows.writerow([f"u{user:02d}", *times, f"s{a}", f"s{b}"])
    return path


@pytest.fixture(scope="module")
def traces(rides):
    return wt.read_records(rides, flows="trips", epoch="1d")


def test_flows_from_records_to_attack(rides, tmp_path, whosthere):
    made, release = tmp_path / "flows.parquet", tmp_path / "release.csv"
    code, shown, _ = whosthere(
        "ingest", rides, "--flows", "trips(max_gap=1h)", "--epoch", "1d", "--out", made
    )
    assert code == 0
    assert "destination from 'end_station_id'" in shown
    assert "From records to trips" in shown
    traces = wt.Traces.load(made)
    assert traces.n_visits == 60 * 7 * 3
    assert traces.most_added >= 2
    code, *_ = whosthere("release", made, "-M", "suppress(k=1)", "-m", 40, "--out", release)
    assert code == 0
    published = wt.Release.load(release)
    assert isinstance(published.regions, Pairs)
    assert published.facts.most_added == traces.most_added
    known = tmp_path / "known.csv"
    assert whosthere("target", made, "--user", "u07", "--out", known)[0] == 0
    assert whosthere("attack", release, "--target", known)[0] == 0
    assert whosthere("check", release)[0] == 0
    code, shown, _ = whosthere("inspect", made)
    assert code == 0


@pytest.mark.parametrize(
    "mechanism", ["suppress(k=1)", "laplace(eps=1, unit=user-day, max_visits=2)"]
)
def test_an_audit_of_flows_passes_its_controls(traces, tmp_path, mechanism):
    result = wt.audit(
        traces,
        mechanisms=mechanism,
        group_size=20,
        targets=4,
        releases=4,
        min_visits=2,
        attacks=["likelihood-ratio", "knock-knock"],
        workers=1,
        what_if=False,
        out=tmp_path / "run",
    )
    assert result.trusted
    page = (tmp_path / "run" / "report.html").read_text()
    pages = [page, wt.report([result, result]).html, first_screen(result)]
    for text in (re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", one, flags=re.S) for one in pages):
        assert "trips" in text
        assert not re.search(r"(?<!max_)(?<!min-)visit", text)
    assert f"{traces.n_visits:,} trips, {PLACES**2} pairs" in page
    # What can be copied stays.
    assert ("max_visits=2" in page) == ("max_visits" in mechanism)
    assert "--min-visits 2" in page
    assert 'id="word-visits-kept"' in page


def test_a_check_of_flows_speaks_of_trips(traces, tmp_path):
    release = wt.publish(traces, "suppress(k=1)", group_size=40, seed=1).release
    page = wt.report(wt.check(release, visits=[5])).html
    assert "by number of trips" in page
    assert "5 trips" in page


def test_reports_of_visits_speak_of_visits(tmp_path):
    people = wt.simulate("milan-like", seed=2, users=100, regions=4, days=1).traces()
    result = wt.audit(people, mechanisms="raw", group_size=20, targets=3, releases=4,
                      attacks="likelihood-ratio", workers=1, what_if=False)  # fmt: skip
    assert "trip" not in re.sub(r"<(style|script).*?</\1>", " ", wt.report(result).html, flags=re.S)
