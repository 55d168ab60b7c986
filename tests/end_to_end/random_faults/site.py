"""The present addresses of the servers. A restarted server has another address."""

import random
from collections import Counter
from collections.abc import Sequence

import aiohttp

from tests.end_to_end.server import Server

PATIENCE_SECONDS = 15.0
"""The time after which a client gives up a request and sends it again."""

NOWHERE = "http://127.0.0.1:1"
"""The address of a server that is starting and has no port yet."""


class Site:
    """The servers of one world.

    Attributes:
        posted: The ids of all acknowledged posts.
        answers: How many answers had which status.
        codes: How many messages of streams had which code, such as that of a `goodbye`.
    """

    def __init__(self, servers: Sequence[Server]) -> None:
        self.servers = servers
        self.posted: list[str] = []
        self.answers: Counter[int] = Counter()
        self.codes: Counter[str] = Counter()

    def address(self, chance: random.Random) -> str:
        return chance.choice(self.servers).address or NOWHERE

    def session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
        session = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        # aiohttp sends a PUT or DELETE again by itself when its connection broke. The ledger must know of each attempt:
        # the first may have been written, and then `unavailable` for the second does not mean that nothing was written.
        session._retry_connection = False
        return session
