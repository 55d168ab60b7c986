"""The filters ``sample`` and ``firehose``: a percentage of all statuses, the same for every client, or all events."""

import re
from collections.abc import Hashable
from decimal import Decimal
from hashlib import blake2b
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event

SAMPLE_HASH_KEY = b"stream-server sample"
"""Key of the hash. It must never change, because another key selects another sample, also on replay."""
_PERCENT = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,6})?|\.[0-9]{1,6}")


class Sample(Filter):
    """The filter ``sample``: a fixed percentage of all public statuses, selected by a keyed hash of the status id.

    The percentage is above 0 and at most 100. A smaller sample is part of each larger one. Later events of a status,
    such as its delete, are in the sample if the status is.
    """

    __slots__ = ("_upper_bound", "canonical_form", "percent")

    name: ClassVar[str] = "sample"
    role: ClassVar[Role] = "standalone"
    canonical_form: Decimal
    help: ClassVar[str] = "A percentage, 0 < p ≤ 100, of all public statuses; every client gets the same ones."

    def __init__(self, percent: Decimal) -> None:
        self.percent = self.canonical_form = percent.normalize()
        # An integer is below the exact bound if and only if it is below the bound rounded up. No float, so no error.
        self._upper_bound = -(int(percent * 10**6) * 2**64 // -(100 * 10**6))

    @classmethod
    def parse(cls, value: str) -> Self:
        percent = Decimal(value) if _PERCENT.fullmatch(value) else Decimal(0)
        if not 0 < percent <= 100:
            message = "sample must be a percentage above 0 and at most 100, with at most 6 decimal places"
            raise ParameterError(message, param="sample")
        return cls(percent)

    def matches(self, event: Event) -> bool:
        eligible = event.is_sampled and event.is_public and event.status_id is not None
        return eligible and sample_position(event) < self._upper_bound

    def contains_position(self, position: int) -> bool:
        """Whether a status with this :func:`sample_position` is in the sample. The status need not be public."""
        return position < self._upper_bound


def sample_position(event: Event) -> int:
    """Return the hash of the event's status id, computed once per event. A sample takes all hashes below its limit."""
    if event.sample_position is None:
        event.sample_position = stable_hash(event.status_id or "", SAMPLE_HASH_KEY)
    return event.sample_position


def stable_hash(text: str, key: bytes) -> int:
    """Return the first 8 bytes of a text's BLAKE2b hash (RFC 7693) under ``key``, as a big-endian integer."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), key=key).digest()[:8], "big")


class Firehose(Filter):
    """The filter ``firehose``: all public events. It cannot be combined with filters such as ``track``."""

    __slots__ = ()

    name: ClassVar[str] = "firehose"
    role: ClassVar[Role] = "standalone"
    help: ClassVar[str] = "`true`: all public events; the token needs the scope `firehose`."
    scopes: ClassVar[frozenset[str]] = frozenset({"firehose"})
    canonical_form: ClassVar[Hashable] = True

    @classmethod
    def parse(cls, value: str) -> Self:
        if value != "true":
            raise ParameterError("firehose must be `true` or absent", param="firehose")
        return cls()

    def matches(self, event: Event) -> bool:
        return event.is_public
