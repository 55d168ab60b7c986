"""What a client takes from a server at most. The JavaScript client has the same numbers.

The danger: whoever answers at an address, such as a faulty proxy, may name any delay, and may send a few bytes that
expand to gigabytes.
"""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import aiohttp

from stream_server.client.errors import Malformed

MAX_RECEIVED_BYTES = 16 * 2**20
"""Largest message of a stream and largest answer of a call, also when expanded. Without this limit one without an end
would fill the memory."""

MAX_SERVER_DELAY_SECONDS = 3600
"""Longest delay that a client takes from a server. One that names more is asked again after this time."""

CONNECT_SECONDS = 10.0
"""Timeout of a connection's start."""


def bound_delay(seconds: object) -> float | None:
    """Return a delay that a server has named: 0 to `MAX_SERVER_DELAY_SECONDS`, or None for what is no number."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds != seconds:  # noqa: PLR0124 - NaN
        return None
    return float(min(max(seconds, 0), MAX_SERVER_DELAY_SECONDS))


def parse_retry_after(header: str | None) -> float | None:
    """Return the delay in seconds that a ``Retry-After`` header names by a number or a date; None for another text."""
    text = (header or "").strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return bound_delay(float(text))
    try:
        at = parsedate_to_datetime(text[:64])  # longer than any date
        return bound_delay((at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


async def read_answer(response: aiohttp.ClientResponse) -> bytes:
    """Return the body of an answer. Raises :class:`Malformed` for more than `MAX_RECEIVED_BYTES` when expanded."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_RECEIVED_BYTES:
            raise Malformed(f"an answer of more than {MAX_RECEIVED_BYTES} bytes")
    return bytes(body)
