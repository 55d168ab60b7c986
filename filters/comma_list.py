"""Comma-joined values, the form of every parameter that is a list."""

from filters.error import ParameterError


def split_list(value: str, *, param: str, max_items: int, noun: str) -> list[str]:
    """The items of ``value`` without the blanks around them.

    Counts before it looks at any, so that a list that is too long costs nothing; raises ParameterError ``too_many``.
    """
    count = value.count(",") + 1
    if count > max_items:
        raise ParameterError(f"{param} takes at most {max_items} {noun}, not {count}", param=param, code="too_many")
    return [item.strip() for item in value.split(",")]
