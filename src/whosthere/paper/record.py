"""What the folder of a study is of, so that experiments on other data do not come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from whosthere.auditing.store import fingerprint, json_object, write_json
from whosthere.errors import FileError
from whosthere.paper.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from whosthere.paper.datasets import Dataset

_FILE = "study.json"
_FIX = "Name a new folder, or repeat the command that began this one"


def record_of(dataset: Dataset, given: Path | None, *, seed: int) -> dict[str, Any]:
    """Return all that the experiments of a study share, as a JSON object.

    Parameters
    ----------
    dataset
        What it is made on.
    given
        The file that the user gave; None where the data are a simulated city.
    seed
        Of everything.
    """
    return {
        "data": dataset.name,
        "like": dataset.like,
        "file": None if given is None else fingerprint(given),
        "group size": dataset.group_size,
        "minimum visits": dataset.min_visits,
        "reference size": dataset.reference_size or "the usual",
        "visits a day": dataset.max_visits,
        "seed": seed,
    }


def check_record(folder: Path, record: dict[str, Any]) -> bool:
    """Tell whether this very study was begun in a folder; refuse one that holds another."""
    path = folder / _FILE
    if path.exists():
        found = json_object(path)
        other = [key for key in record if found.get(key) != record[key]]
        if "file" in other:
            problem = "holds a study of another file, or the file has changed since"
            raise FileError(problem, where=folder, fix=_FIX)
        if other:
            shown = "; ".join(f"{key} {found.get(key)} then, {record[key]} now" for key in other)
            raise FileError(f"holds another study ({shown})", where=folder, fix=_FIX)
        return True
    if any((folder / name).exists() for name in EXPERIMENTS):
        problem = f"holds experiments, but no {_FILE} that says what they were made on"
        raise FileError(problem, where=folder, fix="Name a new folder")
    return False


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Keep what a folder is of."""
    write_json(folder / _FILE, record)
