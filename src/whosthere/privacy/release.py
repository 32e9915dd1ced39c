"""What is published: counts of people per region and epoch, and what is public about them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import polars as pl

from whosthere.arrays import frozen, own
from whosthere.data.epochs import Epochs
from whosthere.data.files import existing
from whosthere.data.flows import regions_from_json
from whosthere.data.frames import Frame, rows_of_cells, with_cells
from whosthere.display import facts_table, in_one_line
from whosthere.errors import FileError, InputError
from whosthere.privacy.facts import Facts
from whosthere.privacy.ledger import GuaranteeLedger
from whosthere.privacy.mechanism import Mechanism
from whosthere.privacy.release_files import AGAIN, read_counts, write_counts
from whosthere.privacy.step import WITHHELD

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from whosthere.data.regions import Regions


@dataclass(frozen=True)
class Audited:
    """By which audit a release was accepted; all of it is public."""

    audit: str
    """The identity of the audit: a fingerprint of its plan, traces and software."""
    begun: str
    """When the audit began."""
    policy: str
    """The name of the policy that accepted it."""
    limits: Mapping[str, float]
    """The largest values that the policy allows, by metric."""
    about: str
    """Whom the verdict is about."""
    attacker_knows: str
    """What attackers were taken to know of people."""
    released: str
    """The day on which the release was made."""

    @classmethod
    def from_json(cls, described: dict[str, Any]) -> Self:
        """Read what a file says."""
        limits = {str(name): float(most) for name, most in described["limits"].items()}
        words: dict[str, Any] = {name: str(said) for name, said in described.items()}
        return cls(**words | {"limits": limits})

    def __str__(self) -> str:
        return (
            f"accepted by the audit {self.audit[:12]} of {self.begun[:10]}, by the policy "
            f"{self.policy!r}, about {self.about}, for an attacker who knows "
            f"{self.attacker_knows}"
        )


@dataclass(frozen=True, eq=False)
class Release:
    """Published counts and what is public about how they came about.

    Nothing here is secret: neither who was counted, nor the true counts, nor a seed.

    Parameters
    ----------
    values
        What was published, shape (n_regions, n_epochs), int32: counts in the range that the
        mechanism states, and `WITHHELD` where one is withheld.
    facts
        What is public about them.
    ledger
        What they guarantee, and on what that rests; None where that is unknown, as for counts of
        another program. Two releases are equal whatever their ledgers say.
    audited
        By which audit it was accepted; None if by none. Equal releases may differ in it too.
    """

    values: NDArray[np.int32]
    facts: Facts
    ledger: GuaranteeLedger | None = None
    audited: Audited | None = None

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        regions, epochs = self.facts.shape
        if values.shape != (regions, epochs):
            raise InputError(
                f"counts of shape {values.shape} do not fit {regions} regions x {epochs} epochs"
            )
        if values.dtype.kind not in "iu":
            raise InputError(f"published counts must be whole numbers, not {values.dtype}")
        lowest, highest, withholds = self.mechanism.alphabet(self.facts.most_count)
        withheld = values == WITHHELD
        if withheld.any() and not withholds:
            raise InputError(
                f"{self.mechanism} withholds nothing, and {withheld.sum():,} cells are withheld",
                fix="Say how counts were withheld, as in suppress(k=9, shown=mark)",
            )
        shown = np.where(withheld, lowest, values) if withholds else values
        if shown.min() < lowest or shown.max() > highest:
            raise InputError(
                f"published counts reach from {shown.min()} to {shown.max()}, "
                f"outside {lowest} to {highest} for a group of {self.group_size}",
                fix="Correct the group size, the mechanism, or the counts",
            )
        object.__setattr__(self, "values", frozen(values, np.int32))

    @cached_property
    def withheld(self) -> NDArray[np.bool_] | None:
        """Which cells are withheld, shape of `values`; None if the mechanism withholds nothing."""
        return None if self.mechanism.withheld is None else own(self.values == WITHHELD, np.bool_)

    @cached_property
    def counts(self) -> NDArray[np.int32]:
        """Published counts, shape of `values`, 0 where one is withheld."""
        if self.withheld is None:
            return self.values
        return own(np.where(self.withheld, np.int32(0), self.values), np.int32)

    @property
    def people(self) -> NDArray[np.int32]:
        """Published counts in people, 0 where withheld: scaled back where they were scaled up."""
        slope = self.mechanism.slope
        return self.counts if slope == 1 else np.rint(self.counts / slope).astype(np.int32)

    @cached_property
    def symbols(self) -> NDArray[np.int32]:
        """The values as numbers from 0 on, see `whosthere.privacy.step.Alphabet`."""
        return self.mechanism.alphabet(self.facts.most_count).symbols(self.values)

    @property
    def regions(self) -> Regions:
        """What the rows mean."""
        return self.facts.regions

    @property
    def epochs(self) -> Epochs:
        """What the columns mean."""
        return self.facts.epochs

    @property
    def group_size(self) -> int:
        """How many people were counted, m."""
        return self.facts.group_size

    @property
    def mechanism(self) -> Mechanism:
        """What was done to the true counts."""
        return self.facts.mechanism

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return self.facts == other.facts and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash((self.group_size, self.epochs, self.mechanism, self.values.tobytes()))

    def __repr__(self) -> str:
        regions, epochs = self.facts.shape
        return in_one_line(
            "Release",
            f"{regions:,} regions x {epochs:,} epochs",
            f"{self.group_size:,} people",
            str(self.mechanism),
        )

    def _repr_html_(self) -> str:
        return facts_table(
            "Release",
            {
                "people counted": self.group_size,
                "regions": len(self.regions),
                "epochs": str(self.epochs),
                "mechanism": str(self.mechanism),
                "what that means": self.describe(),
                "audit": str(self.audited or "not audited"),
                "cells with somebody in them": int((self.counts > 0).sum()),
            }
            | ({} if self.withheld is None else {"withheld cells": int(self.withheld.sum())}),
        )

    def describe(self) -> str:
        """Say in public words what was done to the counts, and what is guaranteed about them."""
        return f"{self.mechanism.describe_steps()} {self._describe_guarantee()}"

    def _describe_guarantee(self) -> str:
        stated = self.mechanism.describe_guarantee()
        if self.mechanism.guarantee is None:
            return stated
        if self.ledger is None:
            return (
                "How the noise was drawn is not known, so nothing is guaranteed. The following "
                f"holds only for noise that nobody can predict. {stated}"
            )
        if self.ledger.seeded:
            return (
                "The noise comes from a seed, which can be found by trying seeds. This is a trial, "
                "and nothing is guaranteed."
            )
        if not self.ledger.states_guarantee:
            return (
                f"The noise comes from {self.ledger.randomness.value}, which was not made to "
                "withstand an attacker (that of discrete-gaussian, discrete-laplace and laplace "
                "was). So nothing is guaranteed."
            )
        return stated

    def to_frame(self) -> pl.DataFrame:
        """Return one row per cell: region, epoch_start (in the local zone) and count.

        With a column withheld, where the mechanism may withhold counts: a withheld one is 0.
        """
        cells = pl.int_range(self.counts.size, dtype=pl.Int32, eager=True)
        table = rows_of_cells(cells, self.regions, self.epochs)
        table = table.with_columns(count=self.counts.reshape(-1))
        if self.withheld is None:
            return table
        return table.with_columns(withheld=self.withheld.reshape(-1))

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        facts: Facts,
        ledger: GuaranteeLedger | None = None,
        audited: Audited | None = None,
    ) -> Self:
        """Make a release of the rows of `to_frame`, in any order, and what is public about them.

        `whosthere.TableReader` is for tables of any other form.
        """
        rows = with_cells(frame, "count", facts.regions, facts.epochs).sort("cell")
        n_cells = len(facts.regions) * facts.epochs.n
        if rows.height != n_cells or rows["cell"].drop_nulls().n_unique() != n_cells:
            raise InputError(f"{rows.height:,} rows are not one for each of {n_cells:,} cells")
        values = rows["count"].to_numpy()
        if "withheld" in rows.columns:
            values = np.where(rows["withheld"].to_numpy(), WITHHELD, values)
        return cls(values.reshape(facts.shape), facts, ledger, audited)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write one row per cell, as Parquet or CSV by the path's ending.

        A Parquet file carries its description; that of a CSV file is ``NAME.csv-metadata.json``.
        """
        write_counts(self.to_frame(), self._describe(), Path(path), force=force)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        path = existing(Path(path))
        table, head = read_counts(path)
        if head.get("own_mechanism"):
            raise FileError(
                "was made by a mechanism of its publisher's own, whose code is not in the file",
                where=path,
                fix="Attack it where it was made, before it is saved",
            )
        try:
            regions, epochs = regions_from_json(head["regions"]), Epochs.from_json(head["epochs"])
            mechanism = Mechanism.parse(head["mechanism"])
            if mechanism.tables != head.get("tables", []):
                raise InputError(f"{mechanism} has another table of changes than it had then")
            most_added = int(head.get("most_added", 1))
            facts = Facts(regions, epochs, int(head["group_size"]), mechanism, most_added)
            given = head.get("guarantee")
            ledger = None if given is None else GuaranteeLedger.from_json(given)
            accepted = head.get("audit")
            audited = None if accepted is None else Audited.from_json(accepted)
            return cls.from_frame(table, facts, ledger, audited)
        except FileError as error:
            raise FileError(error.problem, where=path, fix=error.fix) from error
        except _DAMAGES as error:
            unfit = isinstance(error, KeyError | TypeError | AttributeError)
            reason = "its description does not fit" if unfit else str(error).rstrip(".")
            raise FileError(f"is a damaged release ({reason})", where=path, fix=AGAIN) from error

    def _describe(self) -> dict[str, Any]:
        return {
            "group_size": self.group_size,
            **({} if self.facts.most_added == 1 else {"most_added": self.facts.most_added}),
            "mechanism": str(self.mechanism),
            **({} if self.mechanism.has_law else {"own_mechanism": True}),
            **({"tables": tables} if (tables := self.mechanism.tables) else {}),
            "description": self.describe(),
            "guarantee": None if self.ledger is None else self.ledger.to_json(),
            "audit": None if self.audited is None else asdict(self.audited),
            "regions": self.regions.to_json(),
            "epochs": self.epochs.to_json(),
        }


_DAMAGES = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    pl.exceptions.PolarsError,
)
