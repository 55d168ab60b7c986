"""The `Date` header of answers, formatted once a second."""

import time
from email.utils import formatdate
from functools import lru_cache


def date_header() -> str:
    """Return the present time as in a `Date` header. Requests of the same second share the text."""
    return _format(int(time.time()))


@lru_cache(1)
def _format(unix_seconds: int) -> str:
    return formatdate(unix_seconds, usegmt=True)
