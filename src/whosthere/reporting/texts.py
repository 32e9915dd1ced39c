"""The prose of reports, which is data and stands in ``texts.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def texts() -> dict[str, Any]:
    """Return all texts by topic."""
    source = files("whosthere.reporting") / "texts.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))
