"""A span of time as people write it: 90, 15m, 1h, 30d."""

import re

import click

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

LONGEST = 100 * 365 * 86400
"""A hundred years: the end of a token still is a date that every program can hold."""

_SHAPE = re.compile(r"([0-9]{1,12})([smhd]?)")


def seconds(text: str) -> int:
    """The seconds in ``text``, 1 or more; raises ValueError, with a sentence, if it is no such span."""
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise ValueError(f"{text!r} is no duration: write 90 (seconds), 15m, 1h or 30d")
    span = int(shape[1]) * SECONDS[shape[2]]
    if not 1 <= span <= LONGEST:
        raise ValueError(f"{text!r} must be between a second and a hundred years")
    return span


class Duration(click.ParamType[int]):
    """The option type of :func:`seconds`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The option's value in seconds."""
        try:
            return value if isinstance(value, int) else seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
