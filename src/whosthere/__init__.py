"""Measure whether people can be found in published location counts.

The public names are listed in ``__init__.pyi``, and by topic in the modules that it names; their
place in docs/reference/api.md says what they are for. Each is imported when it is first used, so
that the command line answers at once.
"""

import lazy_loader

from whosthere._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
