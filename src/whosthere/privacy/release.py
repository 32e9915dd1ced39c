"""What is published: counts of people per region and epoch, and what is public about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from whosthere.data.arrays import frozen
from whosthere.data.epochs import Epochs
from whosthere.data.files import existing, new_file, read_table, refuse_existing, write_table
from whosthere.data.regions import Regions
from whosthere.errors import FileError, InputError
from whosthere.privacy.mechanism import Mechanism

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

KIND = "release"


@dataclass(frozen=True, eq=False)
class Release:
    """Published counts and what is public about how they came about.

    Nothing here is secret: neither who was counted, nor the true counts, nor a seed.

    Parameters
    ----------
    counts
        Published counts, shape (n_regions, n_epochs), int32, within 0..group_size.
    group_size
        How many people were counted over, m.
    regions, epochs
        What the rows and columns mean.
    mechanism
        What was done to the true counts.
    """

    counts: NDArray[np.int32]
    group_size: int
    regions: Regions
    epochs: Epochs
    mechanism: Mechanism

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", frozen(self.counts, np.int32))
        expected = (len(self.regions), self.epochs.n)
        if self.counts.shape != expected:
            raise InputError(
                f"counts of shape {self.counts.shape} do not fit "
                f"{expected[0]} regions x {expected[1]} epochs"
            )
        if self.group_size < 1:
            raise InputError(f"a group of {self.group_size} people", fix="Give at least 1")
        if self.counts.min() < 0 or self.counts.max() > self.group_size:
            raise InputError(
                f"published counts reach from {self.counts.min()} to {self.counts.max()}, "
                f"outside 0 to the group size {self.group_size}",
                fix="Correct the group size, or the counts",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return (
            np.array_equal(self.counts, other.counts)
            and self.group_size == other.group_size
            and self.regions == other.regions
            and self.epochs == other.epochs
            and self.mechanism == other.mechanism
        )

    def __hash__(self) -> int:
        return hash((self.group_size, self.epochs, self.mechanism, self.counts.tobytes()))

    def to_table(self) -> pl.DataFrame:
        """Return one row per cell: region, epoch_start (in the local zone) and count."""
        starts = pl.Series(self.epochs.starts).dt.replace_time_zone("UTC")
        local = starts.dt.convert_time_zone(self.epochs.timezone)
        cell = np.arange(self.counts.size)
        return pl.DataFrame(
            {
                "region": pl.Series(self.regions.ids, dtype=pl.String).gather(
                    cell // self.epochs.n
                ),
                "epoch_start": local.gather(cell % self.epochs.n),
                "count": self.counts.reshape(-1),
            }
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write one row per cell, as Parquet or CSV by the path's ending.

        A Parquet file carries the description inside. Beside a CSV file it is written to
        ``NAME.csv-metadata.json``.
        """
        path = Path(path)
        if path.suffix == ".parquet":
            table = self.to_table().to_arrow()
            write_table(table, path, kind=KIND, metadata=self._describe(), force=force)
        elif path.suffix == ".csv":
            description = _description_path(path)
            refuse_existing(path, force=force)
            head = {"kind": KIND, **self._describe()}
            with new_file(description, force=force) as temporary:
                temporary.write_text(json.dumps(head, indent=1, allow_nan=False), encoding="utf-8")
            with new_file(path, force=force) as temporary:
                self.to_table().write_csv(temporary, datetime_format="%Y-%m-%dT%H:%M:%S%:z")
        else:
            raise FileError("has an ending that is not known", where=path, fix=_ENDINGS)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        path = existing(Path(path))
        if path.suffix == ".parquet":
            table, head = read_table(path, kind=KIND)
            counts = table.column("count").to_numpy()
        elif path.suffix == ".csv":
            head = _read_description(path)
            counts = _read_csv_counts(path)
        else:
            raise FileError("has an ending that is not known", where=path, fix=_ENDINGS)
        try:
            regions, epochs = Regions.from_json(head["regions"]), Epochs.from_json(head["epochs"])
            return cls(
                counts.reshape(len(regions), epochs.n),
                int(head["group_size"]),
                regions,
                epochs,
                Mechanism.parse(head["mechanism"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"is a damaged release ({error})", where=path) from error

    def _describe(self) -> dict[str, Any]:
        return {
            "group_size": self.group_size,
            "mechanism": str(self.mechanism),
            "description": self.mechanism.describe(),
            "regions": self.regions.to_json(),
            "epochs": self.epochs.to_json(),
        }


_ENDINGS = "Use .parquet or .csv"


def _description_path(path: Path) -> Path:
    return path.with_name(f"{path.name}-metadata.json")


def _read_description(path: Path) -> dict[str, Any]:
    described = _description_path(path)
    if not described.exists():
        raise FileError(
            f"has no description beside it ({described.name})",
            where=path,
            fix="Read a table of others with `whosthere import`",
        )
    try:
        head: dict[str, Any] = json.loads(described.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileError("is not readable JSON", where=described) from error
    return head


def _read_csv_counts(path: Path) -> NDArray[np.int32]:
    try:
        return pl.read_csv(path, columns=["count"], schema_overrides={"count": pl.Int32})[
            "count"
        ].to_numpy()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError("cannot be read as a release", where=path) from error
