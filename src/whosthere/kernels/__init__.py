"""Compiled inner loops on plain arrays; they know no class of ours.

The names are listed in ``__init__.pyi``. Each is imported when it is first used: the compiler takes
half a second to load, which whoever only reads a file or a help text should not wait for.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
