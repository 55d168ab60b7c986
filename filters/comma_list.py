"""Comma-separated values: the syntax of every list parameter."""

from filters.error import ParameterError


def split_list(value: str, *, param: str, max_items: int, noun: str) -> list[str]:
    """Split the value at commas and strip the spaces around each item.

    Raises ParameterError ``too_many`` for more than ``max_items`` items. The check counts the commas before it splits,
    so a list that is too long costs almost no work. ``noun`` names the items in the message.
    """
    count = value.count(",") + 1
    if count > max_items:
        raise ParameterError(f"{param} takes at most {max_items} {noun}, not {count}", param=param, code="too_many")
    return [item.strip() for item in value.split(",")]
