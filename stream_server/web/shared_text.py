"""Lets equal texts share one object, because thousands of connections hold the same ones."""

from collections.abc import Callable
from functools import lru_cache

shared: Callable[[str], str] = lru_cache(4096)(str)
"""Returns the text as the object that an earlier call returned for an equal text, unless many others came since.

`sys.intern` would share longer. But Python 3.12 keeps each of its texts forever, and clients choose these.
"""
