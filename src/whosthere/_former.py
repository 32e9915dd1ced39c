"""Names that were public and are called otherwise now: they work for a while, with a warning."""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module


def former_names(
    module: str, renamed: Mapping[str, str], others: Callable[[str], object] | None = None
) -> Callable[[str], object]:
    """Return the `__getattr__` of a public module some of whose names have changed.

    `renamed` has the whole new name of each former one, such as ``whosthere.results.AuditResult``.
    `others` gives all other attributes; without it there are none.
    """

    def get(name: str) -> object:
        if name not in renamed:
            if others is not None:
                return others(name)
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = renamed[name].rpartition(".")
        said = f"{module}.{name} is now {renamed[name]}"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(import_module(place), new)

    return get
