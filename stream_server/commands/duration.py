"""Durations on the command line: 90, 15m, 1h, 30d."""

import re

import click

SECONDS_PER_UNIT = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds of each unit; a number without unit means seconds."""

MAX_SECONDS = 100 * 365 * 86400
"""Longest duration: a hundred years. The end of such a token is still a date that programs can represent."""

_PATTERN = re.compile(r"([0-9]{1,12})([smhd]?)")


def parse_duration(text: str) -> int:
    """Return the seconds in ``text``, at least 1; raises ValueError with a sentence if it is not a valid duration."""
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write 90 (seconds), 15m, 1h or 30d")
    seconds = int(match[1]) * SECONDS_PER_UNIT[match[2]]
    if not 1 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text!r} must be between a second and a hundred years")
    return seconds


class DurationType(click.ParamType[int]):
    """The type of a click option that takes a duration."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the value of the option in seconds."""
        try:
            return value if isinstance(value, int) else parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
