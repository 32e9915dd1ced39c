"""The data that the study is made on, each with the numbers that go with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from whosthere.data.cities import CITIES, simulate
from whosthere.errors import InputError, suggestion
from whosthere.paper.milan import is_milan_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from whosthere.data.traces import Traces

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

    def with_numbers(self, **given: int | None) -> Dataset:
        """Return the data set with those of its numbers replaced that are given."""
        chosen: dict[str, Any] = {name: n for name, n in given.items() if n is not None}
        return replace(self, **chosen)

    def reference_among(self, n_users: int) -> int:
        """Return how many people are the reference."""
        if self.reference_size is not None:
            return self.reference_size
        others = n_users - 1
        return (
            self.usual_reference
            if others - self.usual_reference >= self.group_size
            else others // 2
        )

    def largest_group(self, n_users: int) -> int:
        """Return how many people a release can have: some are the reference, others are tested."""
        reference = self.reference_among(n_users)
        return min(reference - 1, n_users - 1 - reference)


_MILAN = Dataset(name="milan", like="milan", min_visits=10, usual_reference=2500, max_visits=10)
_CDR = Dataset(name="cdr", like="cdr", min_visits=1, usual_reference=5000, max_visits=20)
LIKE: Mapping[str, Dataset] = MappingProxyType({"milan": _MILAN, "cdr": _CDR})
"""The numbers that the paper gives for each of its data sets."""
PRESETS: Mapping[str, Dataset] = MappingProxyType(
    {
        "milan-like": replace(_MILAN, name="milan-like"),
        "cdr-like": replace(_CDR, name="cdr-like"),
    }
)
"""Data that need no file: simulated cities."""
CITY_SEED = 1


def find_dataset(given: str, *, like: str | None = None) -> tuple[Dataset, Path | None]:
    """Return the data set of a name, or of a file with the numbers of one of the paper's.

    The path is None where the data are simulated. A file of traces is like Milan where nothing
    is said; simulated cities and the real Milan file have their own numbers.
    """
    if like is not None and like not in LIKE:
        raise InputError(f"the paper has no data set {like!r}", fix=suggestion(like, LIKE))
    if given in PRESETS:
        return _with_its_own(PRESETS[given], like), None
    path = Path(given)
    if not path.exists():
        names = ", ".join(PRESETS)
        raise InputError(
            f"there is no data set {given!r}, and no such file",
            fix=f"Give one of {names}, a file from `whosthere ingest`, or the real Milan file",
        )
    if is_milan_file(path):
        return _with_its_own(_MILAN, like), path
    return replace(LIKE[like or "milan"], name=path.stem), path


def _with_its_own(dataset: Dataset, like: str | None) -> Dataset:
    """Return a data set unless it is to have the numbers of the other one."""
    if like not in (None, dataset.like):
        raise InputError(
            f"{dataset.name} has the numbers of {dataset.like}, not those of {like}",
            fix=f"Leave --like out, or change single numbers; {like} is for a file of traces",
        )
    return dataset


def simulated_traces(name: str) -> Traces:
    """Return the traces of a simulated city, always the same."""
    if name not in CITIES:
        raise InputError(f"there is no city {name!r}", fix=suggestion(name, CITIES))
    return simulate(name, seed=CITY_SEED).traces()
