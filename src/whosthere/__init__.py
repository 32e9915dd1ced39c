"""Measure whether people can be found in published location counts."""

from whosthere._version import __version__

__all__ = ["__version__"]
