"""The real Milan file: a small one of its format, as the paper's description of it says."""

import gzip
import json

import numpy as np
import pytest

from whosthere.auditing.work import ThisProcess
from whosthere.errors import FileError, InputError
from whosthere.paper.datasets import LIKE, find_dataset, made_traces
from whosthere.paper.study import prepare_study

NOVEMBER = 1_383_260_400
"""Midnight of 1 November 2013 in Milan, in seconds since 1970."""
N_USERS, HOURS = 120, 24 * 8


def tweet(rng, user, hour):
    """One feature of the file: the point lies under `geomPoint.geom`, and there is no geometry."""
    second = NOVEMBER + 3600 * hour + int(rng.integers(3600))
    return {
        "created": "2013-11-01T00:00:00",
        "timestamp": str(second),
        "user": f"{user:010x}",
        "language": "it",
        "entities": [],
        "municipality": {"name": "Milano"},
        "geomPoint.geom": {
            "type": "Point",
            "coordinates": [9.18 + 0.05 * rng.normal(), 45.46 + 0.03 * rng.normal()],
        },
    }


def nested(feature):
    """The same with the point inside an object, as other copies of the file have it."""
    point = feature.pop("geomPoint.geom")
    return feature | {"geomPoint": {"geom": point}}


@pytest.fixture(params=[lambda one: one, nested], ids=["flat", "nested"])
def file(request, tmp_path):
    rng = np.random.default_rng(0)
    features = [
        request.param(tweet(rng, user, hour))
        for user in range(N_USERS)
        for hour in rng.integers(HOURS, size=15)
    ]
    path = tmp_path / "social-pulse-milano.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return path


def test_the_first_week_over_a_grid(file):
    traces = made_traces(LIKE["milan"], file)
    assert traces.epochs.n == 168
    assert traces.epochs.timezone == "Europe/Rome"
    assert str(traces.epochs.starts[0]) == "2013-10-31T23:00:00.000000"
    assert N_USERS * 0.9 < traces.n_users <= N_USERS
    # The eighth day and what is outside the box are left out.
    assert N_USERS * 15 * 0.75 < traces.n_visits < N_USERS * 15 * 7 / 8
    km = traces.regions.positions_km
    near = np.sort(np.hypot(*(km - km[0]).T))[1]
    assert near == pytest.approx(1.6, rel=0.02)


def prepared(file, folder):
    return prepare_study(
        ["ssc"],
        folder / "study",
        dataset=str(file),
        group_size=20,
        min_visits=2,
        reference_size=50,
        scale="smoke",
    )


def test_a_study_of_it(file, tmp_path):
    result = prepared(file, tmp_path).run(workers=ThisProcess(), figures=False)
    assert set(result.results["dataset"]) == {"milan"}
    assert (tmp_path / "study" / "milan.parquet").exists()


def test_another_file_is_not_taken_for_the_one_the_study_was_begun_with(file, tmp_path):
    prepared(file, tmp_path).run(workers=ThisProcess(), figures=False)
    assert prepared(file, tmp_path).n_left == 0
    features = json.loads(file.read_text())
    features["features"].pop()
    file.write_text(json.dumps(features))
    with pytest.raises(FileError, match="study of another file"):
        prepared(file, tmp_path)


@pytest.mark.parametrize("name", ["amsterdam.geojson", "amsterdam.geojson.gz"])
def test_other_geojson_is_not_taken_for_it(tmp_path, name):
    feature = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [4.9, 52.4]}}
    text = json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    with pytest.raises(FileError, match=r"not the Milan file.*whosthere ingest"):
        find_dataset(dataset=str(path))


def test_what_is_no_gzip_cannot_be_read(tmp_path):
    path = tmp_path / "milan.geojson.gz"
    path.write_text("geomPoint")
    with pytest.raises(InputError, match="cannot be read"):
        find_dataset(dataset=str(path))


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ("timestamp", "cannot be read"),
        ("user", "cannot be read"),
        (None, "no tweets of the first week of November 2013"),
    ],
)
def test_a_copy_without_what_is_needed_is_refused(tmp_path, without, message):
    late = tweet(np.random.default_rng(0), user=1, hour=24 * 7)
    late.pop(without, None)
    path = tmp_path / "milan.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [late]}))
    with pytest.raises(InputError, match=rf"milan\.geojson.*{message}"):
        made_traces(LIKE["milan"], path)
