"""The program behind a Redis connection: Redis or Valkey, and its version.

Valkey began as a copy of Redis 7.2 and counts its versions on from there. So one order holds for both: a higher number
is younger, and between equal numbers Valkey comes first.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

OLDEST = {"Redis": (7, 0), "Valkey": (8, 0)}
"""The oldest version (major, minor) of each program that the server runs on."""

NEEDED = " or ".join(f"{name} {major}.{minor}" for name, (major, minor) in OLDEST.items()) + ", or newer"

_TOLD = re.compile(r"(?:(Redis|Valkey)\b.*?)?(\d+)(?:\.(\d+)\.(\d+))?", re.IGNORECASE)


class Engine(NamedTuple):
    """A program and its version (major, minor, patch). ``name`` is ``Redis`` or ``Valkey``."""

    version: tuple[int, int, int]
    name: str

    def __str__(self) -> str:
        """Return name and version, such as ``Valkey 9.1.2``."""
        return f"{self.name} {'.'.join(map(str, self.version))}"

    @property
    def fault(self) -> str:
        """Why the server cannot run on this version, without a full stop at the end. Empty if it can."""
        is_old = self.version[:2] < OLDEST[self.name]
        return f"{self} is too old: {NEEDED}, is needed" if is_old else ""

    def can_read(self, other: "Engine") -> bool:
        """Return whether this program can load data that ``other`` wrote.

        Each program reads what its older versions wrote. Valkey also reads data of Redis up to 7.2, its origin.
        """
        if self.name == other.name:
            return self.version[:2] >= other.version[:2]
        return self.name == "Valkey" and other.version < (7, 3)


def parse_engine(text: str) -> Engine | None:
    """Return the program that ``text`` names; None if it names none.

    The text is the output of ``redis-server --version``, or an :class:`Engine` as text. A version without a name is one
    of Redis.
    """
    told = _TOLD.match(text.strip())
    if told is None:
        return None
    name, *numbers = told.groups("0")
    major, minor, patch = map(int, numbers)
    return Engine((major, minor, patch), "Valkey" if name.lower() == "valkey" else "Redis")


def engine_of(info: Mapping[str, str]) -> Engine:
    """Return the program that answered INFO with these fields. Valkey also tells a version of Redis, for old clients.

    Without a version in the answer the result is Redis 0.0.0.
    """
    valkey = info.get("valkey_version")
    found = parse_engine(f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version', '')}")
    return found or Engine((0, 0, 0), "Redis")


def is_cluster_node(info: Mapping[str, str]) -> bool:
    """Return whether the server that answered INFO with these fields is a node of a cluster."""
    return "cluster" in (info.get("redis_mode"), info.get("server_mode"))  # the second is Valkey's name of the field
