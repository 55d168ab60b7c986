"""The filter ``partition``: the part of the firehose for one of several consumers."""

import re
from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event
from filters.sample import stable_hash

MAX_PARTITIONS = 64  # of the firehose

PARTITION_HASH_KEY = b"stream-server partition"
"""Key of the hash. It must never change, and it differs from that of ``sample`` so that the two are independent."""
_PARTITION = re.compile(r"([1-9][0-9]?)/([1-9][0-9]?)")


class Partition(Filter):
    """The filter ``partition=k/n``: part ``k`` of ``n`` equal parts of the firehose, by a hash of the author's id."""

    __slots__ = ("k", "n")

    name: ClassVar[str] = "partition"
    role: ClassVar[Role] = "narrowing"
    help: ClassVar[str] = "`k/n`, 1 ≤ k ≤ n ≤ 64: part k of n of the firehose, by author."
    requires: ClassVar[frozenset[str]] = frozenset({"firehose"})

    def __init__(self, k: int, n: int) -> None:
        self.k = k
        self.n = n

    @classmethod
    def parse(cls, value: str) -> Self:
        found = _PARTITION.fullmatch(value)
        k, n = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= k <= n <= MAX_PARTITIONS:
            raise ParameterError(f"partition must be k/n with 1 ≤ k ≤ n ≤ {MAX_PARTITIONS}", param="partition")
        return cls(k, n)

    @property
    def canonical_form(self) -> Hashable:
        return self.k, self.n

    def matches(self, event: Event) -> bool:
        return stable_hash(event.author or "", PARTITION_HASH_KEY) % self.n == self.k - 1
