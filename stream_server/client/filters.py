"""The parameters of a stream as typed keyword arguments, and their form on the wire."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

Box = tuple[float, float, float, float]
"""West, south, east and north in degrees."""

Since = str | datetime | timedelta
"""The start of a stream: a cursor, an ISO 8601 time, an age such as ``-15m``, a time with a zone, or an age."""


class Filters(TypedDict, total=False):
    """The parameters that select events. ``docs/reference/parameters.md`` explains each."""

    track: str | Sequence[str]
    """Phrases: a comma is OR, a blank is AND; or a list of phrases."""
    follow: str | Sequence[str]
    """User ids, logins, ``foreign:`` with an id of another site, and ``@me`` for the users whom the caller follows."""
    locations: str | Sequence[Box]
    """Boxes."""
    rule: str | Sequence[str] | Mapping[str, str]
    """A rule, a list of rules, or a mapping from tags to rules."""
    rules: Literal["saved"]
    """``saved``: the caller's saved rules."""
    sample: float | str
    """Percent of all public statuses."""
    firehose: bool
    """Everything public; needs a token with the scope ``firehose``."""
    language: str | Sequence[str]
    """Only these languages."""
    kinds: str | Sequence[str]
    """Only these kinds of events; ``post,delete`` if absent."""
    partition: str | tuple[int, int]
    """``"k/n"`` or ``(k, n)``: part k of n of the firehose."""
    subscription: str
    """The name of a subscription, which the server keeps with its filters and its cursor, instead of all others."""
    worker: str
    """The name of a reader of a shared subscription, the same over its connections, such as that of a machine."""
    summary: int
    """Seconds: a ``Summary`` with counts for each period of this length, in the place of the events."""
    explain: bool
    """Whether each event says why it matched."""
    more: Mapping[str, str]
    """Parameters of filters that plug-ins of the server add."""


def to_parameters(filters: Filters) -> dict[str, str]:
    """Return the parameters as the wire has them. Values that are None or False are left out.

    Raises TypeError for an unknown name. The server checks the values.
    """
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None and value is not False}
    unknown = sorted(given.keys() - Filters.__annotations__.keys())
    if unknown:
        raise TypeError(f"unknown stream parameter {unknown[0]!r}; a plug-in's goes into `more`")
    more = given.pop("more", {})
    return {
        name: _join_rules(value) if name == "rule" else _join(value, "/" if name == "partition" else ",")
        for name, value in given.items()
    } | dict(more)


def to_since(since: Since) -> str:
    """Return the parameter ``since``. Raises ValueError for a datetime without a zone, and for a negative age."""
    if isinstance(since, timedelta):
        if since < timedelta(0):
            raise ValueError("an age is positive: timedelta(minutes=15) is 15 minutes ago")
        return f"-{round(since.total_seconds())}s"
    if isinstance(since, datetime):
        if since.tzinfo is None:
            raise ValueError("the time needs a zone, such as datetime.now(UTC)")
        return since.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return since


def _join(value: object, separator: str = ",") -> str:
    if value is True:
        return "true"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return separator.join(map(_join, value))
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _join_rules(value: str | Sequence[str] | Mapping[str, str]) -> str:
    """Return one rule per line. A rule in a list or mapping may stretch over several lines itself."""
    if isinstance(value, str):
        return value
    rules = (f"{tag}:{rule}" for tag, rule in value.items()) if isinstance(value, Mapping) else value
    return "\n".join(rule.replace("\n", " ") for rule in rules)
