"""No true number about fewer than 5 people is in anything that an audit writes."""

import json
import math
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import whosthere as wt
from whosthere.data.epochs import Epochs
from whosthere.data.floor import LEAST_PEOPLE
from whosthere.data.regions import Regions
from whosthere.data.traces import Traces

N_REGIONS, N_HOURS, N_PEOPLE, RELEASES = 13, 168, 40, 4
# These people made numbers of visits that nobody else did, and that nothing else is.
SINGULAR = (1373, 977, 613, 431)
# One person was in the first region, once; three in the second; one at the last hour.
LONELY, RARE, LATE = 0, 1, N_HOURS - 1
MECHANISMS = ["raw", "laplace(eps=0.01, unit=event)"]


@pytest.fixture(scope="module")
def traces():
    rng = np.random.default_rng(3)
    ordinary = np.setdiff1d(np.arange(2 * N_HOURS, N_REGIONS * N_HOURS), _at_hour(LATE))
    visits = [*SINGULAR, *rng.integers(3, 12, N_PEOPLE - len(SINGULAR)).tolist()]
    own = [rng.choice(ordinary, n, replace=False) for n in visits]
    own[10][0] = LONELY * N_HOURS + 30
    for person in (11, 12, 13):
        own[person][:3] = RARE * N_HOURS + np.array([40, 41, 42])
    own[14][0] = 7 * N_HOURS + LATE
    return Traces(
        tuple(f"u{i:03d}" for i in range(N_PEOPLE)),
        np.append(0, np.cumsum(visits)),
        np.concatenate([np.sort(cells) for cells in own]),
        Regions([f"r{i}" for i in range(N_REGIONS)]),
        Epochs(datetime(2024, 1, 1, tzinfo=UTC), timedelta(hours=1), N_HOURS, "UTC"),
    )


def _at_hour(hour):
    return np.arange(N_REGIONS) * N_HOURS + hour


@pytest.fixture(scope="module")
def folder(traces, tmp_path_factory):
    out = tmp_path_factory.mktemp("audit")
    wt.audit(
        traces,
        mechanisms=MECHANISMS,
        group_size=20,
        attacks="likelihood-ratio",
        targets=N_PEOPLE,
        releases=RELEASES,
        workers=1,
        out=out,
    )
    return out


@pytest.fixture(scope="module")
def secrets(traces):
    """True numbers about fewer than 5 people, by what they are."""
    total = traces.n_visits
    people = np.repeat(np.arange(traces.n_users), traces.visits_per_user())
    found = {}
    for name, place in (("region", traces.cells // N_HOURS), ("hour", traces.cells % N_HOURS)):
        visits = {i: np.count_nonzero(place == i) for i in np.unique(place).tolist()}
        few = {i for i in visits if np.unique(people[place == i]).size < LEAST_PEOPLE}
        # The same number may be that of a place where more people were.
        known = {n for i, n in visits.items() if i not in few}
        found |= {f"share of {name} {i}": visits[i] / total for i in few if visits[i] not in known}
    for row, n in enumerate(SINGULAR):
        assert np.count_nonzero(traces.visits_per_user() == n) == 1
        found[f"visits of {row}"] = float(n)
        found[f"share of the visits of {row}"] = n / total
    assert {"share of region 0", "share of region 1", f"share of hour {LATE}"} <= set(found)
    return found


def leaks_of(value, secrets):
    """Return the names of secrets that a number is, or that follow from it by simple means."""
    seen = [value]
    if value > 1:
        # Sums over releases; what is guaranteed to a person with so many visits, or in place of
        # another one with as many.
        seen += [value / RELEASES, 2 * value / RELEASES]
        seen += [math.log(value) / eps / many for eps in (0.01, 1) for many in (1, 2)]
    return [
        f"{name} = {secret}"
        for name, secret in secrets.items()
        for number in seen
        if math.isclose(number, secret, rel_tol=1e-9)
    ]


def numbers_of(value):
    """Yield all numbers in a part of a JSON object or of a table."""
    if isinstance(value, dict):
        for part in value.values():
            yield from numbers_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from numbers_of(part)
    elif isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        yield float(value)


def test_search_finds_what_it_looks_for(secrets):
    assert leaks_of(1373.0, secrets)
    assert leaks_of(1373 * RELEASES / 2, secrets)
    assert leaks_of(math.exp(0.01 * 2 * 1373), secrets)
    assert leaks_of(secrets["share of region 0"], secrets)
    assert not leaks_of(1372.0, secrets)


def test_no_json_and_no_parquet_file_holds_any(folder, secrets):
    searched, found = 0, []
    for path in sorted(folder.rglob("*")):
        values = []
        if path.suffix == ".json":
            values = list(numbers_of(json.loads(path.read_text())))
        elif path.suffix == ".parquet":
            # Scores say how well people are found, not what they did; seconds say neither.
            table = pl.read_parquet(path).drop("seconds", strict=False)
            values = list(numbers_of(table.to_dict(as_series=False)))
        searched += len(values)
        for value in set(values):
            found += [f"{path.name}: {leak}" for leak in leaks_of(value, secrets)]
    assert searched > 10_000
    assert not found


def test_the_report_shows_none(folder, secrets):
    html = (folder / "report.html").read_text()
    # Positions of lines and points are numbers of a picture.
    text = re.sub(
        r'\b(?:d|points|x\d?|y\d?|cx|cy|width|height|viewBox|transform)="[^"]*"', "", html
    )
    shown = set(re.findall(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?%?", text))
    for name, secret in secrets.items():
        written = {f"{secret:,.0f}", f"{secret:.0f}"} if secret > 1 else {f"{secret:.3%}"}
        assert not written & shown, name
    assert "What an attacker estimates" in html
    lonely = secrets["share of region 0"]
    assert f"true {lonely:.2%}" not in html


def test_what_is_withheld_does_not_follow_from_the_rest(folder, traces):
    table = pl.read_parquet(folder / "marginals.parquet")
    people = np.repeat(np.arange(traces.n_users), traces.visits_per_user())
    places = {"region": traces.cells // N_HOURS, "hour": traces.cells % N_HOURS}
    for (_, axis), rows in table.group_by("setting", "axis"):
        withheld = rows.filter(pl.col("truth").is_null())
        assert withheld["estimated"].null_count() == withheld.height
        own = np.isin(places[axis], withheld["index"].to_numpy())
        assert np.unique(people[own]).size >= LEAST_PEOPLE
        share = 1 - rows["truth"].sum()
        assert share == pytest.approx(np.count_nonzero(own) / traces.n_visits)


def test_numbers_of_targets_are_shared_by_enough_people(folder, traces):
    table = pl.read_parquet(folder / "targets.parquet").unique(["target"])
    assert table.height == N_PEOPLE
    assert table["visits"].value_counts()["count"].min() >= LEAST_PEOPLE
    assert set(table["uniqueness"].to_list()) <= {i / 10 for i in range(11)}
    exact = traces.visits_per_user()[table["target"].to_numpy()]
    assert (table["visits"].to_numpy() >= exact).all()
