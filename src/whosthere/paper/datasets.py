"""The data that the study is made on, each with the numbers that go with it.

The real Milan data are geolocated tweets: `social-pulse-milano.geojson` of the Telecom Italia Big
Data Challenge (Harvard Dataverse, doi:10.7910/DVN/9IZALB), read as the paper describes them. The
file is not part of whosthere, and nothing downloads it.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack
from zoneinfo import ZoneInfo

import polars as pl

from whosthere.data.cities import simulate
from whosthere.data.reading.opening import read_single
from whosthere.data.reading.read import read_records
from whosthere.data.reading.source import readable
from whosthere.errors import EmptyError, FileError, InputError, suggestion

if TYPE_CHECKING:
    from whosthere.data.traces import Traces
    from whosthere.paper.choices import StudyChoices

Published: TypeAlias = Literal["milan", "cdr"]
"""The paper's two data sets."""


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """What an experiment needs to know of the data.

    Attributes
    ----------
    name
        What results call it.
    like
        The paper's data set whose numbers and claims it is compared with.
    min_visits
        How many visits targets have at least.
    usual_reference
        How many people knock-knock has real traces of in the paper.
    max_visits
        Visits that a user may contribute in a day, under user-day noise (the paper's Delta).
    group_size
        People in a release, where an experiment does not vary it.
    reference_size
        Another number of people that knock-knock has real traces of. Where there is none, it is
        the paper's, or half of all people where that leaves fewer than a group.
    """

    name: str
    like: Published
    min_visits: int
    usual_reference: int
    max_visits: int
    group_size: int = 1000
    reference_size: int | None = None

    def reference_among(self, n_users: int) -> int:
        """Return how many people are the reference."""
        if self.reference_size is not None:
            return self.reference_size
        others = n_users - 1
        is_enough = others - self.usual_reference >= self.group_size
        return self.usual_reference if is_enough else others // 2

    def largest_group(self, n_users: int) -> int:
        """Return how many people a release can have: some are the reference, others are tested."""
        reference = self.reference_among(n_users)
        return min(reference - 1, n_users - 1 - reference)


_MILAN = Dataset(name="milan", like="milan", min_visits=10, usual_reference=2500, max_visits=10)
_CDR = Dataset(name="cdr", like="cdr", min_visits=1, usual_reference=5000, max_visits=20)
LIKE = {"milan": _MILAN, "cdr": _CDR}
"""The numbers that the paper gives for each of its data sets."""
PRESETS = {f"{name}-like": replace(one, name=f"{name}-like") for name, one in LIKE.items()}
"""Data that need no file: simulated cities."""
_NUMBERS = ("group_size", "min_visits", "reference_size", "max_visits")
_CITY_SEED = 1
_ENDINGS = (".geojson", ".geojson.gz")
# What each record has, and how far one has to read to see it.
_POINT, _BEGINNING = b"geomPoint", 2**16
# Side of a cell of the grid: 100 of them cover the box, 2.56 square kilometres each.
_CELL_KM = 1.6
# Along each axis, this share of the tweets is kept, and the grid covers them.
_MIDDLE = 0.99
_WEEK = [datetime(2013, 11, day, tzinfo=ZoneInfo("Europe/Rome")) for day in (1, 8)]


def find_dataset(**chosen: Unpack[StudyChoices]) -> tuple[Dataset, Path | None]:
    """Return the data set of a name, or of a file with the numbers of one of the paper's.

    The path is None where the data are simulated. A file of traces is like Milan where nothing
    is said; simulated cities and the real Milan file have their own numbers. Those that are given
    replace them.
    """
    numbers: dict[str, Any] = {name: n for name in _NUMBERS if (n := chosen.get(name)) is not None}
    dataset, path = _named(chosen.get("dataset") or "milan-like", chosen.get("like"))
    return replace(dataset, **numbers), path


def _named(given: str, like: str | None) -> tuple[Dataset, Path | None]:
    if like is not None and like not in LIKE:
        raise InputError(f"the paper has no data set {like!r}", fix=suggestion(like, LIKE))
    path = None if given in PRESETS else Path(given)
    if path is not None and not path.exists():
        raise InputError(
            f"there is no data set {given!r}, and no such file",
            fix=f"Give {', '.join(PRESETS)}, a file from `whosthere ingest`, or the real Milan "
            "file",
        )
    if path is not None and not is_milan_file(path):
        return replace(LIKE[like or "milan"], name=path.stem), path
    dataset = PRESETS.get(given, _MILAN)
    if like not in (None, dataset.like):
        raise InputError(
            f"{dataset.name} has the numbers of {dataset.like}, not those of {like}",
            fix=f"Leave it out (`like`), or change single numbers; {like} is for a file of traces",
        )
    return dataset, path


def is_milan_file(path: Path) -> bool:
    """Tell whether a file is the real data; any other GeoJSON is refused."""
    if not path.name.lower().endswith(_ENDINGS):
        return False
    with readable(path), (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        beginning = file.read(_BEGINNING)
    if _POINT not in beginning:
        raise FileError(
            "is GeoJSON, but not the Milan file: its records have no `geomPoint`",
            where=path,
            fix="Make traces of other records with `whosthere ingest`, and give these",
        )
    return True


def made_traces(dataset: Dataset, milan: Path | None) -> Traces:
    """Return the traces of a simulated city, always the same, or of the real Milan file.

    Of the latter, the first week of November 2013 is read over the paper's grid, in hours.
    """
    if milan is None:
        return simulate(dataset.name, seed=_CITY_SEED).traces()
    return read_records(
        _tweets(milan),
        grid_km=_CELL_KM,
        timezone="Europe/Rome",
        user_column="user",
        time_column="timestamp",
        start=_WEEK[0],
        end=_WEEK[1],
        drop_invalid=True,
    )


def _tweets(milan: Path) -> pl.DataFrame:
    """Read the tweets of the week, of which 99 % along each axis are kept: those in the middle."""
    first, end = (moment.timestamp() for moment in _WEEK)
    second, degrees = pl.col("timestamp").cast(pl.Float64, strict=False), pl.col("lon", "lat")
    low, high = degrees.quantile((1 - _MIDDLE) / 2), degrees.quantile((1 + _MIDDLE) / 2)
    with readable(milan):
        tweets = read_single(milan).select("user", "timestamp", "lon", "lat")
        week = tweets.filter(second.is_between(first, end, closed="left"))
        if week.is_empty():
            raise EmptyError("has no tweets of the first week of November 2013", where=milan)
        return week.filter(pl.all_horizontal(degrees.is_between(low, high)))
