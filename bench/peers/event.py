"""The event that all peers deliver."""

import asyncio
import json
import time
import urllib.request
from typing import Any

from bench.lineup import message
from bench.poster import Connection, with_hands
from bench.site import Site

LINES_AT_MOST = 100
"""Lines of the stream that may come before the event."""


class Event:
    """Makes events that equal those of this server in size and form. They carry the time of their post."""

    def __init__(self, sent: dict[str, Any]) -> None:
        self._sent = sent

    def number(self, number: int) -> bytes:
        """Return event ``number`` with the present time."""
        status = self._sent["status"]
        status["message"], status["meta"] = message(number), {"t": time.monotonic_ns()}
        return json.dumps(self._sent, separators=(",", ":")).encode()


def sampled(site: Site) -> Event:
    """Post once, and return what a stream of this server receives. Raises RuntimeError if it receives nothing."""
    headers = {
        "Accept": "text/event-stream",
        "Authorization": f"Bearer {site.token(site.admin, 'stream firehose')}",
    }
    request = urllib.request.Request(f"{site.address}/v1/stream?firehose=true", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as stream:
        asyncio.run(_post_one(site))
        for _ in range(LINES_AT_MOST):
            line = stream.readline()
            if line.startswith(b"data: ") and b'"t":' in line:
                return Event(json.loads(line.removeprefix(b"data: ")))
    raise RuntimeError("the stream did not receive the post")


async def _post_one(site: Site) -> None:
    async def hand(connection: Connection) -> None:
        await connection.post(site.authors[0], 0)

    await with_hands(site.address, 1, hand)
