"""A span of time as people write it: 90, 15m, 1h, 30d."""

import re

import click

SECONDS_PER_UNIT = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

MAX_SECONDS = 100 * 365 * 86400
"""A hundred years: the end of a token still is a date that every program can hold."""

_PATTERN = re.compile(r"([0-9]{1,12})([smhd]?)")


def parse_duration(text: str) -> int:
    """The seconds in ``text``, 1 or more; raises ValueError, with a sentence, if it is no such span."""
    shape = _PATTERN.fullmatch(text.strip())
    if shape is None:
        raise ValueError(f"{text!r} is no duration: write 90 (seconds), 15m, 1h or 30d")
    span = int(shape[1]) * SECONDS_PER_UNIT[shape[2]]
    if not 1 <= span <= MAX_SECONDS:
        raise ValueError(f"{text!r} must be between a second and a hundred years")
    return span


class DurationType(click.ParamType[int]):
    """The option type of :func:`parse_duration`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The option's value in seconds."""
        try:
            return value if isinstance(value, int) else parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
