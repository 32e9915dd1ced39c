"""Simulated cities: sizes, determinism, calibrated facts, and people who live somewhere."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from whosthere.data.cities import CITIES, City, simulate
from whosthere.data.city.places import Choices
from whosthere.data.reading.tables import among, read_regions
from whosthere.errors import FileError, InputError

HOUR_MICROS = 3_600_000_000


@pytest.fixture(scope="module")
def milan() -> City:
    return simulate("milan-like", seed=7)


@pytest.fixture(scope="module")
def cdr() -> City:
    return simulate("cdr-like", seed=7)


@pytest.fixture(scope="module", params=CITIES)
def small_city(request) -> City:
    return simulate(request.param, seed=7, users=500)


@pytest.fixture(scope="module", params=["milan", "cdr"])
def city(request) -> City:
    return request.getfixturevalue(request.param)


def local_hours(city: City):
    """Hour of the first day's midnight on, by the local clock of cities without clock changes."""
    start = city.epochs.starts[0].astype(np.int64)
    return (city.micros - start) // HOUR_MICROS


# What a city is made of


def test_the_named_cities_have_the_sizes_of_the_papers_data(milan, cdr):
    assert list(CITIES) == ["milan-like", "cdr-like"]
    assert (len(milan.people), len(milan.regions), milan.epochs.n) == (5_000, 100, 168)
    assert (len(cdr.people), len(cdr.regions), cdr.epochs.n) == (11_000, 500, 720)
    assert milan.epochs.start == datetime(2013, 10, 31, 23, tzinfo=UTC)
    assert cdr.epochs.start == datetime(2021, 6, 1, 5, tzinfo=UTC)
    assert milan.epochs.length == cdr.epochs.length == timedelta(hours=1)
    assert (milan.epochs.n_days, cdr.epochs.n_days) == (7, 30)


def test_the_parameters_are_those_of_all_numbers_that_were_published():
    """Whoever changes one makes benchmarks/cities.md and what the docs show of cities again."""
    parameters = json.dumps([asdict(model) for model in CITIES.values()], default=str)
    assert hashlib.sha256(parameters.encode()).hexdigest().startswith("5fdce12258be929b")


def test_milan_like_is_a_grid_of_squares_of_1600_metres(milan):
    assert milan.regions.ids[:2] == ("r00c00", "r00c01")
    assert milan.regions.ids[-1] == "r09c09"
    at_km = milan.regions.positions_km.reshape(10, 10, 2)
    np.testing.assert_allclose(np.diff(at_km[..., 0], axis=1), 1.6, rtol=1e-9)
    np.testing.assert_allclose(np.diff(at_km[..., 1], axis=0), 1.6, rtol=1e-9)


def test_antennas_lie_in_a_disc_of_150_square_km_and_denser_in_the_middle(cdr):
    assert cdr.regions.ids[0] == "a0001"
    model = CITIES["cdr-like"]
    km = 111.195
    east = (cdr.regions.lon - model.lon) * km * np.cos(np.radians(model.lat))
    north = (cdr.regions.lat - model.lat) * km
    away = np.hypot(east, north)
    radius = np.sqrt(150 / np.pi)
    assert away.max() < radius * 1.03
    assert len({*zip(cdr.regions.lon, cdr.regions.lat, strict=True)}) == 500
    # Half the radius holds a quarter of the area.
    assert (away < radius / 2).mean() > 0.35


def test_records_stay_inside_regions_and_epochs(city):
    assert city.region.min() >= 0
    assert city.region.max() < len(city.regions)
    assert city.epochs.index_of(city.micros).min() >= 0
    assert not (city.micros % 1_000_000).any()
    assert city.user.min() >= 0
    assert city.user.max() < len(city.people)
    sizes = {a.size for a in (city.user, city.micros, city.region, city.lon, city.lat)}
    assert len(sizes) == 1


def test_positions_are_anywhere_in_the_square_or_the_antennas_own(milan, cdr):
    half_lat = np.diff(milan.regions.lat.reshape(10, 10), axis=0)[0, 0] / 2
    half_lon = np.diff(milan.regions.lon.reshape(10, 10), axis=1)[0, 0] / 2
    off_lon = (milan.lon - milan.regions.lon[milan.region]) / half_lon
    off_lat = (milan.lat - milan.regions.lat[milan.region]) / half_lat
    for off in (off_lon, off_lat):
        assert np.abs(off).max() < 1 + 1e-9
        assert off.std() == pytest.approx(1 / np.sqrt(3), rel=0.02)
    np.testing.assert_array_equal(cdr.lon, cdr.regions.lon[cdr.region])
    np.testing.assert_array_equal(cdr.lat, cdr.regions.lat[cdr.region])


def test_arrays_cannot_be_written_to(milan):
    for array in (milan.user, milan.micros, milan.region, milan.lon, milan.people.home):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


# Records, traces and files


def test_records_are_what_a_provider_would_ship(small_city):
    city = small_city
    records = city.records()
    assert records.schema == {
        "user": pl.String,
        "timestamp": pl.Datetime("us", city.epochs.timezone),
        "region": pl.String,
        "lon": pl.Float64,
        "lat": pl.Float64,
    }
    assert records.null_count().sum_horizontal().item() == 0
    assert records.select("timestamp", "user").equals(
        records.select("timestamp", "user").sort("timestamp", "user")
    )
    assert records["user"].str.contains(r"^u\d{5}$").all()
    assert set(records["region"].unique()) <= set(city.regions.ids)


def test_traces_are_the_distinct_visits_of_the_records(small_city):
    city = small_city
    region_row = pl.Series(city.regions.ids).to_frame("region").with_row_index("row")
    visits = (
        city.records()
        .join(region_row, on="region")
        .with_columns(
            epoch=(
                pl.col.timestamp.dt.convert_time_zone("UTC") - city.epochs.start
            ).dt.total_hours()
        )
        .select("user", cell=pl.col.row.cast(pl.Int64) * city.epochs.n + pl.col.epoch)
        .unique()
        .sort("user", "cell")
    )
    per_user = visits.group_by("user", maintain_order=True).len()
    traces = city.traces()
    assert traces.users == tuple(per_user["user"])
    np.testing.assert_array_equal(np.diff(traces.indptr), per_user["len"].to_numpy())
    np.testing.assert_array_equal(traces.cells, visits["cell"].to_numpy())
    assert traces.regions == city.regions
    assert traces.epochs == city.epochs


def test_people_without_records_are_not_in_the_traces():
    city = simulate("milan-like", seed=1, users=200, days=1)
    traces = city.traces()
    assert 0 < traces.n_users < 200
    assert set(traces.users) == set(city.records()["user"])
    assert (traces.visits_per_user() > 0).all()


def test_a_city_without_any_record_is_empty_and_whole():
    quiet = replace(CITIES["milan-like"], sessions_a_week=1e-12, seen_weekly=False)
    city = simulate(quiet, seed=1, users=3)
    assert city.records().height == 0
    assert city.traces().n_users == 0
    assert len(city.traces().friends) == 0


def test_files_hold_the_records_and_the_regions(tmp_path):
    city = simulate("cdr-like", seed=1, users=50, regions=30, days=2)
    city.write(tmp_path / "new" / "city")
    folder = tmp_path / "new" / "city"
    assert {p.name for p in folder.iterdir()} == {"records.parquet", "regions.csv", "friends.csv"}
    assert pl.read_parquet(folder / "records.parquet").equals(city.records())
    assert read_regions(folder / "regions.csv") == city.regions
    pairs = pl.read_csv(folder / "friends.csv")
    assert pairs.columns == ["user", "friend"]
    traces = city.traces()
    graph, entry = among(pairs, traces.users)
    assert (entry.unknown, entry.repeated) == (0, 0)
    np.testing.assert_array_equal(graph.pairs(), traces.friends.pairs())


def test_friends_belong_to_the_seed_and_to_people_with_records():
    city = simulate("milan-like", seed=1, users=200, days=1)
    traces = city.traces()
    assert traces.n_users < 200
    assert len(traces.friends) == traces.n_users
    assert traces.friends.n_edges > 0
    own, same, other = (city.friends(seed=seed) for seed in (None, 1, 2))
    np.testing.assert_array_equal(own.pairs(), traces.friends.pairs())
    np.testing.assert_array_equal(own.pairs(), same.pairs())
    assert not np.array_equal(own.pairs(), other.pairs())


def test_a_city_shows_in_one_line(milan):
    n = milan.user.size
    assert repr(milan) == (
        f"<City: milan-like, seed 7, 5,000 people, {n:,} records, 100 regions, {milan.epochs}>"
    )
    assert repr(milan.people) == "<Residents: 5,000>"
    assert f"{n:,}" in milan._repr_html_()


def test_existing_files_are_not_replaced_unless_forced(tmp_path):
    city = simulate("milan-like", seed=1, users=20)
    (tmp_path / "regions.csv").write_text("precious")
    with pytest.raises(FileError, match="exists already"):
        city.write(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["regions.csv"]
    assert (tmp_path / "regions.csv").read_text() == "precious"
    city.write(tmp_path, force=True)
    assert read_regions(tmp_path / "regions.csv") == city.regions


# Seeds and sizes


@pytest.mark.parametrize("name", CITIES)
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        simulate(name, seed=seed, users=300).write(tmp_path / folder)
    records = [(tmp_path / f / "records.parquet").read_bytes() for f in "abc"]
    assert records[0] == records[1]
    assert records[0] != records[2]
    for file in ("regions.csv", "friends.csv"):
        a, b = ((tmp_path / f / file).read_bytes() for f in "ab")
        assert a == b


def test_another_seed_gives_another_city():
    a, b = (simulate("cdr-like", seed=s, users=100) for s in (1, 2))
    assert not np.array_equal(a.regions.lon, b.regions.lon)
    assert not np.array_equal(a.people.home, b.people.home)


@pytest.mark.parametrize(("name", "regions"), [("milan-like", 49), ("cdr-like", 60)])
def test_sizes_can_be_chosen(name, regions):
    city = simulate(name, seed=1, users=123, regions=regions, days=9)
    assert (len(city.people), len(city.regions), city.epochs.n) == (123, regions, 216)
    assert city.user.max() < 123


@pytest.mark.parametrize("name", CITIES)
def test_the_smallest_city_is_one_person_in_one_region(name):
    city = simulate(name, seed=1, users=1, regions=1, days=7)
    assert set(city.region) == {0}
    assert city.traces().users == ("u00000",)


def test_people_drawn_in_several_groups_are_all_there(monkeypatch):
    monkeypatch.setattr("whosthere.data.cities._GROUP_PERSON_DAYS", 700)
    city = simulate("milan-like", seed=1, users=250)
    assert len(city.people) == 250
    assert np.unique(city.user).size == 250
    assert np.unique(city.people.sessions_a_week).size == 250


def test_ids_of_many_users_keep_their_order():
    city = simulate("milan-like", seed=1, users=100_001, days=1, regions=4)
    ids = city.user_ids()
    assert ids[0] == "u000000"
    assert ids[-1] == "u100000"
    assert ids.is_sorted()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("milan", {}, "Did you mean 'milan-like'"),
        ("atlantis", {}, "Known: milan-like, cdr-like"),
        ("milan-like", {"users": 0}, "users"),
        ("milan-like", {"regions": -4}, "regions"),
        ("milan-like", {"days": 0}, "days"),
        ("milan-like", {"regions": 500}, r"Use 484 \(22 x 22\) or 529 \(23 x 23\)"),
        ("cdr-like", {"days": 10_000_000}, "more than"),
        ("cdr-like", {"seed": -1}, "seed"),
    ],
)
def test_wrong_input_is_refused_with_a_remedy(name, options, message):
    with pytest.raises(InputError, match=message):
        simulate(name, **{"seed": 1, **options})


# Calibrated facts, as ranges; benchmarks/cities.md has the exact table


def test_milan_like_people_visit_about_six_times_a_week_with_a_heavy_tail(milan):
    visits = milan.traces().visits_per_user()
    assert visits.size == 5_000
    assert 5.2 < visits.mean() < 6.4
    assert 600 < (visits >= 10).sum() < 1_200
    assert visits.max() > 10 * visits.mean()


def test_cdr_like_people_visit_six_times_as_often_as_milan_like_targets(milan, cdr):
    milan_visits, cdr_visits = (c.traces().visits_per_user() for c in (milan, cdr))
    ratio = cdr_visits.mean() / milan_visits[milan_visits >= 10].mean()
    assert 5.3 < ratio < 6.7
    assert cdr_visits.min() < 10


def test_everybody_is_seen_in_every_whole_week(city):
    weekly = city.traces().visits_per_period(city.epochs.weeks)
    assert weekly[:, : city.epochs.n_days // 7].min() >= 1


def test_nearly_all_non_zero_counts_of_a_thousand_people_are_at_most_five(city):
    traces = city.traces()
    rng = np.random.default_rng(0)
    suppressed = np.zeros(6)
    for _ in range(5):
        counts = traces.counts(rng.choice(traces.n_users, 1000, replace=False))
        nonzero = counts[counts > 0]
        suppressed += [np.mean(nonzero <= k) / 5 for k in range(6)]
    assert suppressed[5] > 0.975
    assert 0.68 < suppressed[1] < 0.77
    assert (np.diff(suppressed) > 0).all()


def test_places_are_unequal(city):
    popularity = np.sort(city.traces().counts().sum(axis=1))[::-1]
    busiest_tenth = popularity[: popularity.size // 10].sum() / popularity.sum()
    assert 0.33 < busiest_tenth < 0.44
    assert (popularity > 0).mean() > 0.95


def test_nights_are_quiet(city):
    hour = np.bincount(local_hours(city) % 24, minlength=24)
    assert 2 <= hour.argmin() <= 5
    assert 10 <= hour.argmax() <= 22
    assert 5 < hour.max() / hour.min() < 30


# Residents who live somewhere, not the model that an attack assumes


def test_people_have_a_few_places_that_they_come_back_to(city):
    traces = city.traces()
    top, three, distinct = [], [], []
    for row in np.flatnonzero(traces.visits_per_user() >= 10)[:500]:
        counts = np.sort(np.unique(traces.trace(row) // city.epochs.n, return_counts=True)[1])
        top.append(counts[-1] / counts.sum())
        three.append(counts[-3:].sum() / counts.sum())
        distinct.append(counts.size)
    assert 0.3 < np.median(top) < 0.6
    assert 0.6 < np.median(three) < 0.95
    assert 4 <= np.median(distinct) <= 25


def test_workers_spend_nights_at_home_and_working_hours_at_work(cdr):
    hour = local_hours(cdr)
    model = CITIES["cdr-like"]
    weekday = (model.first_day.weekday() + hour // 24) % 7
    at_night = hour % 24 < 6
    at_work_time = (weekday < 5) & (hour % 24 >= 10) & (hour % 24 < 16)
    night, day = (top_region(cdr, chosen) for chosen in (at_night, at_work_time))
    workers = (cdr.people.work >= 0) & (night >= 0) & (day >= 0)
    others = (cdr.people.work < 0) & (night >= 0) & (day >= 0)
    assert workers.sum() > 4_000
    assert (night != day)[workers].mean() > 0.75
    assert (night == cdr.people.home)[workers].mean() > 0.75
    assert (day == cdr.people.work)[workers].mean() > 0.75
    assert (day == cdr.people.home)[others].mean() > 0.5


def top_region(city: City, chosen):
    """Region of most of the chosen records of each person with at least three, else -1."""
    top = (
        pl.DataFrame({"user": city.user[chosen], "region": city.region[chosen]})
        .group_by("user")
        .agg(n=pl.len(), region=pl.col.region.mode().min())
        .filter(pl.col.n >= 3)
    )
    regions = np.full(len(city.people), -1)
    regions[top["user"].to_numpy()] = top["region"].to_numpy()
    return regions


def test_work_is_nearer_to_home_than_chance(cdr):
    people = cdr.people
    workers = people.work >= 0
    at = cdr.regions.positions_km
    apart = np.hypot(*(at[people.home[workers]] - at[people.work[workers]]).T)
    shuffled = np.random.default_rng(0).permutation(people.work[workers])
    by_chance = np.hypot(*(at[people.home[workers]] - at[shuffled]).T)
    assert np.median(apart) < 0.85 * np.median(by_chance)


def test_records_come_in_bursts(city):
    gaps = (
        pl.DataFrame({"user": city.user, "second": city.micros // 1_000_000})
        .with_columns(gap=pl.col.second.diff().over("user"))
        .drop_nulls("gap")
        .group_by("user")
        .agg(mean=pl.col.gap.mean(), std=pl.col.gap.std(), n=pl.len())
        .filter(pl.col.n >= 20)
    )
    burstiness = (gaps["std"] - gaps["mean"]) / (gaps["std"] + gaps["mean"])
    # Poisson records have 0, regular ones -1.
    assert burstiness.median() > 0.15
    assert (burstiness > 0).mean() > 0.9


def test_weekends_differ_from_weekdays_at_the_workplaces(milan):
    weekday = (CITIES["milan-like"].first_day.weekday() + local_hours(milan) // 24) % 7
    at_work = milan.people.work[milan.user] == milan.region
    assert at_work[weekday < 5].mean() > 1.4 * at_work[weekday >= 5].mean()


# Parts


def test_choices_follow_the_weights_of_their_row():
    choices = Choices(np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0]]))
    rows = np.repeat([0, 1], 40_000)
    drawn = choices.draw(rows, np.random.default_rng(0))
    assert drawn.dtype == np.int32
    shares = np.bincount(drawn[:40_000], minlength=3) / 40_000
    np.testing.assert_allclose(shares, [0.25, 0.0, 0.75], atol=0.01)
    assert set(drawn[40_000:]) == {1}


def test_the_day_and_its_hours_are_complete():
    for model in CITIES.values():
        assert len(model.working_hours) == len(model.free_hours) == 24
        starts = [start for start, *_ in model.day_parts]
        assert starts[0] == 0
        assert starts == sorted(starts)
        assert all(home + work <= 1 for _, home, work, _ in model.day_parts)


def test_importing_cities_does_not_import_scipy():
    code = "import sys, whosthere.data.cities; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
