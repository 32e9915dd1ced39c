"""Making the next item while the present one is being used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

_Item = TypeVar("_Item")


def one_ahead(items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield the items, the next of which is made by another thread meanwhile.

    What goes wrong in making an item is raised where it would have been yielded.
    """
    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = maker.submit(next, items, None)
            yield item
