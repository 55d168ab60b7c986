"""The store: one object with all data in Redis and its connections."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from stream_server.errors import ApiError
from stream_server.events.language import LanguageDetector, detect_nothing
from stream_server.events.position import Position
from stream_server.store.jobs.queue import JobQueue
from stream_server.store.jobs.repair import Repair
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.log.event_log import EventLog, nothing_to_verify
from stream_server.store.log.retention import Retention
from stream_server.store.log.rollbacks import Rollbacks
from stream_server.store.memory import RedisMemory
from stream_server.store.rate_counters import RateCounters
from stream_server.store.redis.admission import ReadAdmission
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.replies import parse_info
from stream_server.store.redis.scripts import Scripts, SizeLimits
from stream_server.store.social.audit import AuditLog
from stream_server.store.social.blocks import Blocks, Mutes
from stream_server.store.social.comments import Comments
from stream_server.store.social.follows import FollowRequests, Follows
from stream_server.store.social.groups import Groups
from stream_server.store.social.ingest import Ingest
from stream_server.store.social.likes import Favorites, Likes
from stream_server.store.social.lists import Lists
from stream_server.store.social.notifications import Notifications
from stream_server.store.social.open_streams import OpenStreams
from stream_server.store.social.relations import Relations
from stream_server.store.social.reports import Reports, Suspensions
from stream_server.store.social.saved_rules import StoredRules
from stream_server.store.social.sessions import Sessions, Tickets
from stream_server.store.social.sign_ins import SignIns
from stream_server.store.social.statuses import Statuses
from stream_server.store.social.talks import Talks
from stream_server.store.social.user_graph import UserGraphs
from stream_server.store.social.users import Users
from stream_server.store.timelines.syndication import Syndication
from stream_server.store.timelines.timelines import Timelines

logger = logging.getLogger(__name__)

MIN_REDIS_VERSION = (6, 2)
"""The oldest supported Redis version. Older versions lack GETDEL, exclusive ranges and PXAT."""


DEFAULT_SIZE_LIMITS = SizeLimits()


class RedisTooOld(RuntimeError):
    """Raised when the version of Redis is lower than 6.2, the oldest supported version."""


class Store:
    """All data in one Redis, with one attribute for each kind of data. Call :meth:`open` before use.

    Attributes:
        read_admission: Limits how many Redis calls of opening streams run at once in this server process.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        replica_url: str = "",
        min_write_replicas: int = 0,
        size_limits: SizeLimits = DEFAULT_SIZE_LIMITS,
        detect_language: LanguageDetector = detect_nothing,
        verify_feed: Callable[[], Awaitable[None]] = nothing_to_verify,
        bus_key: bytes = b"",
    ) -> None:
        """Make the store without connecting.

        ``url`` names the primary, or its Sentinels. ``replica_url`` names a replica for log reads and the subscription;
        it is empty without a replica. ``min_write_replicas`` is the number of replicas that must acknowledge each
        write. ``detect_language`` finds the language of a status if its author gave none. ``verify_feed`` makes the
        feed (the link from Redis to the hub) compare its position with the log. ``bus_key`` signs published entries.
        """
        self.detect_language = detect_language
        self.read_admission = ReadAdmission()
        self._redis = RedisClient(url, timeout_seconds)
        self._replica_router = ReplicaRouter(
            self._redis, RedisClient(replica_url, timeout_seconds, replica=True) if replica_url else None
        )
        self._scripts = Scripts(self._redis, size_limits, min_write_replicas, bus_key)
        self.job_queue = JobQueue(self._redis, self._scripts)
        self.job_runner = JobRunner(self._redis, self.job_queue, size_limits)
        self.syndication = Syndication(self.job_queue, self.job_runner, size_limits)
        self.timelines = Timelines(self._redis, self._scripts)
        self.repair = Repair(self._redis, self._scripts, self.job_queue)
        self.log = EventLog(self._redis, self._scripts, self._replica_router, verify_feed)
        self.rollbacks = Rollbacks(self._scripts)
        self.memory = RedisMemory(self._redis)
        self.rate_counters = RateCounters(self._redis)
        self.retention = Retention(self._redis, self._scripts)
        connections = (self._redis, self._scripts, self.syndication)
        self.users = Users(*connections)
        self.sessions = Sessions(*connections)
        self.tickets = Tickets(*connections)
        self.sign_ins = SignIns(*connections)
        self.statuses = Statuses(*connections, detect_language)
        self.follows = Follows(*connections)
        self.user_graphs = UserGraphs(*connections)
        self.follow_requests = FollowRequests(*connections)
        self.relations = Relations(*connections)
        self.blocks, self.mutes = Blocks(*connections), Mutes(*connections)
        self.notifications = Notifications(*connections)
        self.reports = Reports(*connections)
        self.suspensions = Suspensions(*connections)
        self.likes = Likes(*connections)
        self.favorites = Favorites(*connections)
        self.comments = Comments(*connections)
        self.lists = Lists(*connections)
        self.groups = Groups(*connections)
        self.talks = Talks(*connections)
        self.rules = StoredRules(*connections)
        self.audit = AuditLog(*connections)
        self.ingest = Ingest(*connections, detect_language)
        self.open_streams = OpenStreams(*connections)

    def watch_rights(self, on_rights_change: Callable[[str | None], None]) -> None:
        """Call ``on_rights_change`` after each write of this process that may take rights from a user's tokens.

        It gets the user's id, or None for any user. It is called before the writer gets its answer.
        """
        self._scripts.on_rights_change = on_rights_change

    @property
    def last_written(self) -> Position:
        """Position of the newest log entry that this process wrote. The feed checks that it receives this entry."""
        return self._scripts.last_written

    async def open(self) -> None:
        """Load the Lua scripts. Raises `RedisTooOld` below Redis 6.2, and `Unavailable` if Redis does not answer."""
        (info,) = await self._redis.execute(("INFO", "server"))
        _check_version(parse_info(info).get("redis_version", ""))
        await self._scripts.install()
        await self._warn_about_eviction()

    @contextmanager
    def allow_slow_replies(self, seconds: float) -> Iterator[None]:
        """During the block, wait ``seconds`` for each reply of Redis if that is more than the usual timeout."""
        usual = self._redis.timeout_seconds
        self._redis.timeout_seconds = max(usual, seconds)
        try:
            yield
        finally:
            self._redis.timeout_seconds = usual

    async def ping(self) -> None:
        """Raise `Unavailable` if Redis does not answer."""
        await self._redis.execute(("PING",))

    async def close(self) -> None:
        """Close all connections to Redis."""
        await self._replica_router.close()
        await self._redis.close()

    async def _warn_about_eviction(self) -> None:
        try:
            (info,) = await self._redis.execute(("INFO", "memory"))
        except ApiError:
            return  # a hosted Redis may forbid INFO, and the start must not fail for a missing warning
        policy = parse_info(info).get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            logger.warning("Redis maxmemory-policy is %s: data is lost under memory pressure; set noeviction", policy)


def _check_version(version: str) -> None:
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None or (int(match[1]), int(match[2])) < MIN_REDIS_VERSION:
        raise RedisTooOld("Redis 6.2 or newer is needed")
