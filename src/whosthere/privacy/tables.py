"""Tables of counts by region and time that other programs made, as releases."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from whosthere.data.columns import Columns
from whosthere.data.epochs import Epochs, from_micros, zone
from whosthere.data.labels import sorted_order
from whosthere.data.regions import Regions
from whosthere.data.sources import open_sources, readable
from whosthere.data.times import to_utc_micros
from whosthere.data.traces import check_cell_space
from whosthere.errors import EmptyError, InputError, RecordsError
from whosthere.privacy.facts import Facts
from whosthere.privacy.release import Release

if TYPE_CHECKING:
    import os

    from whosthere.data.sources import Source
    from whosthere.privacy.mechanism import Mechanism

# What a table may write in place of a count that was withheld.
USUAL_MARKERS = ("", "*", "-", ".", "NA", "N/A", "NaN", "null", "suppressed", "redacted")


@dataclass(frozen=True, kw_only=True)
class TableReader:
    """How a table of counts is to be read.

    Parameters
    ----------
    columns
        Names of the columns where they are unusual.
    wide
        Whether each epoch has a column of its own, not a row for each region and epoch.
    epoch_length
        How long each epoch lasts; by default the smallest step between two times.
    timezone
        IANA name of the local zone, needed where times carry none. By default the zone that a
        column of datetimes carries, else UTC.
    regions
        All regions that were published; by default those that the table names.
    markers
        What stands for a withheld count, beside `USUAL_MARKERS`; it is read as 0, as is a
        missing row.
    """

    columns: Columns = field(default_factory=Columns)
    wide: bool = False
    epoch_length: timedelta | None = None
    timezone: str | None = None
    regions: Regions | None = None
    markers: tuple[str, ...] = ()

    def read(
        self, path: str | os.PathLike[str], *, group_size: int, mechanism: Mechanism
    ) -> Release:
        """Read a table and what is public about it as a Release."""
        try:
            source, *others = open_sources(path)
            if others:
                raise RecordsError("is a folder of several tables", fix="Name one file")
            rows = self._rows(source)
            local = self.timezone or getattr(rows["time"].dtype, "time_zone", None) or "UTC"
            cells = self._cells(rows, source)
            epochs = self._epochs(cells["micros"], local)
            return self._release(cells, epochs, group_size, mechanism)
        except InputError as error:
            if error.where is not None:
                raise
            raise RecordsError(error.problem, where=Path(path), fix=error.fix) from error

    def _rows(self, source: Source) -> pl.DataFrame:
        """Return region, time and count as the table has them, and the row that they stand in."""
        with readable(source.path):
            table = source.frame.collect()
        rows = self._melted(table) if self.wide else self._named(table)
        if not rows.height:
            raise EmptyError("has no counts")
        return rows

    def _cells(self, rows: pl.DataFrame, source: Source) -> pl.DataFrame:
        """Return a row for each published count: region (text), micros (UTC) and count."""
        zone(self.timezone or "UTC")
        with readable(source.path):
            regions = rows["region"].cast(pl.String)
            micros = to_utc_micros(rows["time"], self.timezone)
            counts = self._counts(rows["count"])
        for column, bad, problem in (
            ("region", regions.is_null(), "is no region"),
            ("time", micros.is_null(), "is not a time"),
            ("count", counts.is_null(), "is not a count"),
        ):
            if bad.any():
                first = bad.arg_max() or 0
                raise RecordsError(
                    f"{rows[column][first]!r} {problem}",
                    where=source.place(rows["row"][first]),
                    fix=_FIXES[column],
                )
        cells = pl.DataFrame({"region": regions, "micros": micros, "count": counts})
        twice = cells.select("region", "micros").is_duplicated()
        if twice.any():
            first = twice.arg_max() or 0
            raise RecordsError(
                f"region {regions[first]!r} has more than one count for {rows['time'][first]}",
                fix="Sum or remove the repeated rows",
            )
        return cells

    def _named(self, table: pl.DataFrame) -> pl.DataFrame:
        names = self.columns.require(("region", "time", "count"), table.columns)
        return table.select(
            pl.col(name).alias(role) for role, name in names.items()
        ).with_row_index("row")

    def _melted(self, table: pl.DataFrame) -> pl.DataFrame:
        region = self.columns.find("region", table.columns) or table.columns[0]
        times = [name for name in table.columns if name != region]
        if not times:
            raise EmptyError("has no counts")
        columns = (
            pl.DataFrame({"region": table[region], "count": table[time].cast(pl.String)})
            .with_row_index("row")
            .with_columns(pl.lit(time).alias("time"))
            for time in times
        )
        return pl.concat(columns)

    def _counts(self, column: pl.Series) -> pl.Series:
        if column.dtype.is_integer():
            return column.fill_null(0).cast(pl.Int64, strict=False)
        text = column.cast(pl.String).str.strip_chars()
        withheld = text.is_null() | text.is_in([*USUAL_MARKERS, *self.markers])
        whole = text.cast(pl.Float64, strict=False)
        whole = pl.select(pl.when(whole == whole.round()).then(whole)).to_series()
        return whole.cast(pl.Int64, strict=False).zip_with(
            ~withheld, pl.repeat(0, len(text), eager=True)
        )

    def _release(
        self, cells: pl.DataFrame, epochs: Epochs, group_size: int, mechanism: Mechanism
    ) -> Release:
        regions = self.regions or Regions(_in_order(cells["region"].unique().to_list()))
        row = cells["region"].replace_strict(regions.index, default=-1, return_dtype=pl.Int64)
        if (row < 0).any():
            unknown = cells["region"].filter(row < 0)[0]
            raise RecordsError(
                f"region {unknown!r} is not in the regions table", fix="Add it to the table"
            )
        column = epochs.index_of(cells["micros"].to_numpy())
        check_cell_space(len(regions), epochs.n)
        given = cells["count"].to_numpy()
        if np.abs(given).max() > np.iinfo(np.int32).max:
            raise RecordsError(
                f"a count of {np.abs(given).max()} is too large", fix="Correct the counts"
            )
        counts = np.zeros((len(regions), epochs.n), dtype=np.int32)
        counts[row.to_numpy(), column] = given
        return Release(counts, Facts(regions, epochs, group_size, mechanism))

    def _epochs(self, micros: pl.Series, timezone: str) -> Epochs:
        times = micros.unique().sort()
        length = self.epoch_length
        if length is None:
            if len(times) < 2:
                raise RecordsError("has a single time", fix="Give the length of an epoch")
            length = timedelta(microseconds=int(np.diff(times.to_numpy()).min()))
        first, last = from_micros(times[0]), from_micros(times[-1])
        epochs = Epochs(first, length, (last - first) // length + 1, timezone)
        if ((times - times[0]) % (length // timedelta(microseconds=1)) != 0).any():
            raise RecordsError(
                f"its times do not fall on steps of {length}",
                fix="Give the length of an epoch; days of 23 or 25 hours cannot be read",
            )
        return epochs


_FIXES = {
    "region": "Fill the region in, or say which column holds it",
    "time": "Use ISO 8601 text or Unix seconds, or say which column holds it",
    "count": "Use whole numbers; say what stands for a withheld count",
}


def _in_order(ids: list[str]) -> list[str]:
    return [ids[i] for i in sorted_order(ids)]
