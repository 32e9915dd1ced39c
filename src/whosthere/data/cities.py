"""Simulated cities: seeded records of people who live somewhere, to try attacks on.

Nothing here follows the model that an attack assumes of people (see docs/explanation/cities.md).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere import kernels
from whosthere.arrays import Bools, Floats, Ints32, Ints64, own
from whosthere.data.cells import cell_at
from whosthere.data.city.models import CITIES, CityModel
from whosthere.data.city.people import Residents, draw_events, draw_friends, draw_people, joined
from whosthere.data.city.places import CityPlaces, check_regions, make_places
from whosthere.data.epochs import Epochs, to_micros, zone
from whosthere.data.files import new_file, refuse_existing
from whosthere.data.traces import Traces, check_cell_space
from whosthere.display import Shown
from whosthere.errors import InputError, suggestion
from whosthere.seeds import check_seed
from whosthere.specs import whole

if TYPE_CHECKING:
    from whosthere.data.neighbours import Neighbours
    from whosthere.data.regions import Regions

__all__ = ["CITIES", "City", "CityModel", "simulate"]

FILES = ("records.parquet", "regions.csv", "friends.csv")
# Keeps the draws of the social graph apart from those of the city itself.
_FRIENDS = 1
# Residents are drawn in groups of about this many person-days, which bounds the working memory.
# Part of what a seed means: another value gives other cities.
_GROUP_PERSON_DAYS = 2_000_000
# What a city takes at least, in bytes: choices between regions, people, and their records.
_BYTES_PER_PAIR, _BYTES_PER_PERSON, _BYTES_PER_DAY = 24, 100, 60
_MEMORY_IF_UNKNOWN = 1 << 36
_MOST_DAYS = 36_500


@dataclass(frozen=True, eq=False, repr=False)
class City(Shown):
    """The records of a simulated city, as columns sorted by time, then user."""

    name: str
    seed: int
    """The model that it was made from, and what it was drawn from."""
    regions: Regions
    epochs: Epochs
    """What the records lie in."""
    user: Ints32
    """Person number of each record, a row of `people`, int32."""
    micros: Ints64
    """Moment of each record in microseconds since 1970 UTC, whole seconds, int64."""
    region: Ints32
    """Row of the region of each record, int32."""
    lon: Floats
    lat: Floats
    """Position of each record, degrees."""
    people: Residents
    """Where the people belong. Not for attackers, nor for anything that is published."""

    def _facts(self) -> dict[str, object]:
        return {
            "model": f"{self.name}, seed {self.seed}",
            "people": len(self.people),
            "records": int(self.user.size),
            "regions": len(self.regions),
            "epochs": str(self.epochs),
        }

    def user_ids(self) -> pl.Series:
        """Return everybody's id, in order, also of those without any record."""
        digits = max(5, len(str(len(self.people) - 1)))
        number = pl.int_range(len(self.people), eager=True).cast(pl.String)
        return ("u" + number.str.zfill(digits)).alias("user")

    def records(self) -> pl.DataFrame:
        """Return the records as a data provider would ship them, sorted by time, then user.

        Columns user, timestamp (in the city's zone), region (id), lon and lat (degrees).
        """
        return pl.DataFrame(
            {
                "user": self.user_ids().gather(self.user),
                "timestamp": pl.Series(self.micros).cast(pl.Datetime("us", self.epochs.timezone)),
                "region": pl.Series(self.regions.ids, dtype=pl.String).gather(self.region),
                "lon": self.lon,
                "lat": self.lat,
            }
        )

    def traces(self) -> Traces:
        """Return the traces that the records make, and who knows whom.

        A person without records has no row.
        """
        seen = self._seen()
        row_of_person = (np.cumsum(seen) - 1).astype(np.int32)
        cell = cell_at(self.region, self.epochs.index_of(self.micros), self.epochs.n)
        indptr, cells = kernels.group_by_row(row_of_person[self.user], cell, int(seen.sum()))
        return Traces(
            tuple(self.user_ids().filter(pl.Series(seen)).to_list()),
            own(indptr, np.int64),
            own(cells, np.int32),
            self.regions,
            self.epochs,
            friends=self.friends(),
        )

    def friends(self, *, seed: int | None = None) -> Neighbours:
        """Return a seeded social graph over the rows of `traces`: friends share places.

        `seed` is the city's own unless another is given.
        """
        rng = np.random.default_rng([self.seed if seed is None else seed, _FRIENDS])
        graph = draw_friends(self.people, rng)
        return graph.select(np.flatnonzero(self._seen()))

    def write(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write records.parquet, regions.csv and friends.csv into a folder, made if missing.

        The table of friends has the columns user and friend, and each pair once.
        """
        records, regions, friends = (Path(folder) / name for name in FILES)
        for path in (records, regions, friends):
            refuse_existing(path, force=force)
        with new_file(records, force=force) as temporary:
            self.records().write_parquet(temporary)
        self.regions.write_csv(regions, force=force)
        ids = self.user_ids().filter(pl.Series(self._seen()))
        user, friend = (ids.gather(side) for side in self.friends().pairs().T)
        with new_file(friends, force=force) as temporary:
            pl.DataFrame({"user": user, "friend": friend}).write_csv(temporary)

    def _seen(self) -> Bools:
        """Tell who left any record, shape (n_people,)."""
        return np.bincount(self.user, minlength=len(self.people)) > 0


def simulate(
    model: CityModel | str,
    *,
    seed: int = 0,
    users: int | None = None,
    regions: int | None = None,
    days: int | None = None,
) -> City:
    """Make a city; the same arguments give the same city, bit for bit.

    Parameters
    ----------
    model
        The parameters, or the name of a city in `CITIES`.
    seed
        Any whole number from 0; the same seed gives the same city.
    users, regions, days
        Sizes other than the model's own. The city's area stays the same: more regions are
        smaller ones.
    """
    if isinstance(model, str):
        if model not in CITIES:
            raise InputError(f"{model!r} is not a known city", fix=suggestion(model, CITIES))
        model = CITIES[model]
    n_users = _size("users", users, model.users)
    n_regions = _size("regions", regions, model.regions)
    n_days = _size("days", days, model.days)
    seed = check_seed(seed)
    check_regions(model, n_regions)
    check_cell_space(n_regions, n_days * 24)
    _check_size(n_users, n_regions, n_days)

    places_seed, people_seed, positions_seed = np.random.SeedSequence(seed).spawn(3)
    places = make_places(model, n_regions, np.random.default_rng(places_seed))
    people, user, second, region = _live(model, n_users, n_days, places, people_seed)
    order = np.lexsort((region, user, second))
    lon, lat = (axis[region[order]] for axis in places.regions.degrees)
    if model.layout == "grid":
        # Anywhere in its square; calls are where the antenna is.
        rng = np.random.default_rng(positions_seed)
        half_lon, half_lat = places.half_width
        lon = lon + rng.uniform(-half_lon, half_lon, region.size)
        lat = lat + rng.uniform(-half_lat, half_lat, region.size)
    midnight = datetime.combine(model.first_day, time(), tzinfo=zone(model.timezone))
    epochs = Epochs(midnight, timedelta(hours=1), n_days * 24, model.timezone)
    return City(
        name=model.name,
        seed=seed,
        regions=places.regions,
        epochs=epochs,
        user=own(user[order], np.int32),
        micros=own(to_micros(midnight) + second[order] * 1_000_000, np.int64),
        region=own(region[order], np.int32),
        lon=own(lon, np.float64),
        lat=own(lat, np.float64),
        people=people,
    )


def _live(
    model: CityModel, n_users: int, n_days: int, places: CityPlaces, seed: np.random.SeedSequence
) -> tuple[Residents, Ints32, Ints64, Ints32]:
    """Draw the people and their records (person, second since the start, region), unsorted."""
    group = max(1, _GROUP_PERSON_DAYS // n_days)
    starts = range(0, n_users, group)
    people, events = [], []
    for start, group_seed in zip(starts, seed.spawn(len(starts)), strict=True):
        rng = np.random.default_rng(group_seed)
        people.append(draw_people(model, min(group, n_users - start), places, rng))
        events.append(draw_events(model, n_days, people[-1], places, rng))
    persons, seconds, regions = zip(*events, strict=True)
    user = np.concatenate([part + np.int32(i) for i, part in zip(starts, persons, strict=True)])
    return joined(people), user, np.concatenate(seconds), np.concatenate(regions)


def _size(what: str, asked: int | None, usual: int) -> int:
    size = usual if asked is None else whole(asked, f"`{what}`")
    if size < 1:
        raise InputError(f"a city needs at least one of its {what}, not {size}")
    return size


def _check_size(users: int, regions: int, days: int) -> None:
    """Refuse a city that takes for ever or does not fit this machine, before any work is done."""
    if days > _MOST_DAYS:
        raise InputError(f"a city of {days:,} days", fix=f"Ask for {_MOST_DAYS:,} days or fewer")
    needed = _BYTES_PER_PAIR * regions**2 + users * (_BYTES_PER_PERSON + _BYTES_PER_DAY * days)
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        there = _MEMORY_IF_UNKNOWN
    if needed > there or users > np.iinfo(np.int32).max:
        raise InputError(
            f"a city of {users:,} users, {regions:,} regions and {days:,} days takes about "
            f"{needed / 1e9:,.0f} GB of memory, of {there / 1e9:,.0f} GB that are there",
            fix="Ask for fewer users, regions or days",
        )
