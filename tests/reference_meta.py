"""A second implementation of rules on the fields of ``meta``: plain and slow. It takes the decoded JSON."""

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from tests.reference import fold

Leaf: TypeAlias = tuple[str, Any]
"""A folded name, and a folded text, a truth value or a number."""


def leaves(meta: Any) -> list[Leaf]:
    """Return the leaves that rules find: the first 32 whose name and value are short enough."""
    return [leaf for leaf in _walk([], meta) if _size(leaf[0]) <= 128 and _size(_shown(leaf[1])) <= 128][:32]


def _walk(path: list[str], value: Any) -> Iterator[Leaf]:
    if isinstance(value, dict):
        for name in value:
            yield from _walk([*path, name], value[name])
    elif isinstance(value, list):
        for each in value:
            yield from _walk(path, each)
    elif value is not None:
        yield ".".join(map(fold, path)), fold(value) if isinstance(value, str) else value


def _shown(value: Any) -> str:
    if isinstance(value, float) and value == int(value):
        value = int(value)
    return str(value)


def _size(text: str) -> int:
    return len(text.encode())


def has(found: list[Leaf], name: str) -> bool:
    """Whether ``has:meta.NAME`` holds."""
    return any(fold(name) == leaf for leaf, _ in found)


def equals(found: list[Leaf], name: str, wanted: str) -> bool:
    """Whether ``meta.NAME:wanted`` holds."""
    return any(fold(name) == leaf and _is_equal(value, fold(wanted)) for leaf, value in found)


def _is_equal(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == ("true" if value else "false")
    if isinstance(value, str):
        return value == wanted
    number = _number(wanted)
    return number is not None and number == Fraction(value)


def within(found: list[Leaf], name: str, wanted: str) -> bool:
    """Whether ``meta.NAME:a..b`` holds. Either end may be missing."""
    low, high = wanted.split("..")
    numbers = [Fraction(value) for leaf, value in found if fold(name) == leaf and not isinstance(value, str | bool)]
    least, most = _number(low), _number(high)
    return any((least is None or number >= least) and (most is None or number <= most) for number in numbers)


def _number(text: str) -> Fraction | None:
    """Return the number that a text writes as JSON does, without an exponent. A number with a point is a double."""
    digits = text.removeprefix("-")
    whole, point, part = digits.partition(".")
    is_number = whole.isascii() and whole.isdigit() and (whole == "0" or whole[0] != "0")
    if not is_number or (point and not (part.isascii() and part.isdigit())):
        return None
    exact = Decimal(text)
    return Fraction(float(exact)) if point else Fraction(exact)
