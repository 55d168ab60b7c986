"""Idle home timelines: find those whose users have not come for long, and stop keeping them."""

from collections.abc import AsyncIterator, Sequence

from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.scripts import Scripts
from stream_server.store.timelines.home_visits import LEARN_SECONDS, SLACK_SECONDS

KEYS_PER_SCAN = 300
"""Approximate number of keys in one page of the scan."""

USERS_PER_CALL = 100
"""Home timelines that one script call lets fall asleep."""


class IdleHomes:
    """Finds and deletes the home timelines whose users have not come for a while (``lua/timeline.lua``)."""

    def __init__(self, core: RedisClient, derived: DerivedRedis, scripts: Scripts) -> None:
        self._core = core
        self._derived = derived
        self._scripts = scripts

    async def try_lock(self, seconds: float) -> bool:
        """Take the lock of a round; it expires after ``seconds``. Return False if another process has it."""
        (taken,) = await self._core.execute(("SET", keys.key_for("idle"), "1", "NX", "PX", round(seconds * 1000)))
        return taken is not None

    async def scan(self) -> AsyncIterator[list[str]]:
        """Scan all keys. Yield the users of each page who have a home timeline, without a page that has none."""
        for server in self._derived.primaries:
            cursor = b"0"
            while True:
                command = ("SCAN", cursor, "MATCH", keys.key_for("home") + "*", "COUNT", KEYS_PER_SCAN)
                ((cursor, names),) = await server.execute(command)
                if names:
                    yield [keys.parse(name.decode())[1] for name in names]
                if cursor == b"0":
                    break

    async def let_sleep(self, uids: Sequence[str], idle_seconds: float) -> int:
        """Drop the home timelines of those of the users who have not come for ``idle_seconds``.

        Return how many were dropped.

        The recorded time of a user's last visit may be `SLACK_SECONDS` old, so this time is added.
        """
        limits = round((idle_seconds + SLACK_SECONDS) * 1000), round(LEARN_SECONDS * 1000)
        pages = [tuple(uids[at : at + USERS_PER_CALL]) for at in range(0, len(uids), USERS_PER_CALL)]
        fallen = await self._scripts.call_each("homes_sleep", keys.META, [(*limits, *page) for page in pages])
        return sum(fallen)
