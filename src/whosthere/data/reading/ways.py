"""How places become regions, in the words that the function and the command share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosthere.data.reading.partition import (
    Grid,
    GridShape,
    H3Cells,
    NearestAntenna,
    Partition,
    RegionIds,
    ThroughAntennas,
)
from whosthere.data.reading.polygons import Polygons
from whosthere.data.reading.tables import read_regions
from whosthere.data.regions import Regions
from whosthere.errors import InputError

if TYPE_CHECKING:
    from whosthere.data.frames import AnyPath, Frame


def partition_of(  # noqa: PLR0917 - one for each word
    regions: Partition | Regions | AnyPath | Frame | None,
    grid_km: float | None,
    grid: str | tuple[int, int] | None,
    antennas: Regions | AnyPath | Frame | None,
    reach_km: float | None,
    polygons: AnyPath | Frame | None,
    polygon_id: str | None,
    h3: int | None,
) -> Partition:
    """Return the one partition that was asked for; by default the records name their regions."""
    refuse_useless("without `antennas`", antennas is None, reach_km=reach_km)
    refuse_useless("without `polygons`", polygons is None, polygon_id=polygon_id)
    areas: dict[str, Partition] = {}
    if grid_km is not None:
        areas["`grid_km`"] = Grid(grid_km)
    if grid is not None:
        areas["`grid`"] = GridShape(*_shape(grid))
    if polygons is not None:
        areas["`polygons`"] = Polygons(polygons, polygon_id)
    if h3 is not None:
        areas["`h3`"] = H3Cells(h3)
    given = [*([] if regions is None else ["`regions`"]), *areas]
    if regions is not None and antennas is not None:
        given.append("`antennas`")
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} cannot be combined", fix="Give one of them")
    refuse_useless("where records name their antenna", bool(areas), reach_km=reach_km)
    area = next(iter(areas.values()), None)
    if antennas is None:
        if isinstance(regions, Partition):
            return regions
        return area or RegionIds(None if regions is None else _table(regions))
    table = _table(antennas)
    if area is not None:
        return ThroughAntennas(table, area)
    return NearestAntenna(table, **({} if reach_km is None else {"reach_km": reach_km}))


def refuse_useless(why: str, is_so: bool, **given: object) -> None:  # noqa: FBT001 - the condition
    """Refuse what was given but does nothing where something is so."""
    for word, value in given.items():
        if is_so and value is not None and value is not False:
            raise InputError(f"`{word}` does nothing {why}", fix="Leave it out")


def _table(given: Regions | AnyPath | Frame) -> Regions:
    return given if isinstance(given, Regions) else read_regions(given)


def _shape(grid: str | tuple[int, int]) -> tuple[int, int]:
    try:
        rows, columns = grid.lower().split("x") if isinstance(grid, str) else grid
        return int(rows), int(columns)
    except ValueError:
        raise InputError(f"`grid` {grid!r} is not a shape", fix="Write it like 22x23") from None
