"""The present addresses of the servers. A restarted server has another address."""

import random
from collections import Counter
from collections.abc import Sequence

import aiohttp

from tests.end_to_end.server import Server

PATIENCE_SECONDS = 15.0
"""A request that is not answered in this time is given up and sent again."""

NOWHERE = "http://127.0.0.1:1"
"""Where a server is that is being started: nobody knows its new port yet."""


class Site:
    """The servers of one world. ``posted`` has the ids of all acknowledged posts; ``answers`` counts by status."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.posted: list[str] = []
        self.answers: Counter[int] = Counter()

    def address(self, chance: random.Random) -> str:
        return chance.choice(self.servers).address or NOWHERE

    def session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        # aiohttp sends a PUT or DELETE again by itself when its connection broke. The ledger must know of each attempt:
        # the hidden one may have been written, and then `unavailable` to the second does not mean that nothing was.
        session._retry_connection = False
        return session
