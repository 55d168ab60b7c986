"""One object that holds everything kept in Redis, and its connections."""

import logging
import re
from functools import cached_property
from typing import TYPE_CHECKING

from stream_server.errors import ApiError
from stream_server.events.entry import Position
from stream_server.events.language import LanguageDetector, detect_nothing
from stream_server.store.jobs.queue import JobQueue
from stream_server.store.jobs.repair import Repair
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.log.event_log import EventLog
from stream_server.store.log.retention import Retention
from stream_server.store.log.rollbacks import Rollbacks
from stream_server.store.redis.admission import ReadAdmission
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.scripts import Scripts, SizeLimits
from stream_server.store.social.blocks import Blocks, Mutes
from stream_server.store.social.comments import Comments
from stream_server.store.social.follows import FollowRequests, Follows
from stream_server.store.social.groups import Groups
from stream_server.store.social.likes import Favorites, Likes
from stream_server.store.social.lists import Lists
from stream_server.store.social.notifications import Notifications
from stream_server.store.social.relations import Relations
from stream_server.store.social.reports import Reports, Suspensions
from stream_server.store.social.saved_rules import StoredRules
from stream_server.store.social.sessions import Sessions, Tickets
from stream_server.store.social.statuses import Statuses
from stream_server.store.social.talks import Talks
from stream_server.store.social.user_graph import UserGraphs
from stream_server.store.social.users import Users
from stream_server.store.timelines.syndication import Syndication
from stream_server.store.timelines.timelines import Timelines

if TYPE_CHECKING:
    from stream_server.store.connect_rate_limiter import ConnectRateLimiter

logger = logging.getLogger(__name__)

MIN_REDIS_VERSION = (6, 2)
"""The oldest Redis that has what is used here (GETDEL, exclusive ranges, PXAT)."""


DEFAULT_SIZE_LIMITS = SizeLimits()


class RedisTooOld(RuntimeError):
    """This Redis lacks commands that are used here; the message says which version is needed."""


class Store:
    """What is kept in one Redis. Nothing is connected before :meth:`open`.

    ``timeout_seconds`` bounds the wait for each answer of Redis; ``read_url`` names a replica to hear and read the log
    from, empty for none; so many ``write_replicas`` must have a write before it is answered; ``detect_language`` tells that of
    a status whose author does not say it. Many who ask at once go along the ``read_admission``.
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
    ) -> None:
        self.detect_language = detect_language
        self.read_admission = ReadAdmission()
        self._redis = RedisClient(url, timeout_seconds)
        self._replica_router = ReplicaRouter(
            self._redis, RedisClient(replica_url, timeout_seconds, replica=True) if replica_url else None
        )
        self._scripts = Scripts(self._redis, size_limits, min_write_replicas)
        self.users = Users(self._redis, self._scripts)
        self.sessions = Sessions(self._redis, self._scripts)
        self.tickets = Tickets(self._redis)
        self.job_queue = JobQueue(self._redis, self._scripts)
        self.job_runner = JobRunner(self._redis, self.job_queue, size_limits)
        self.syndication = Syndication(self.job_queue, self.job_runner, size_limits)
        self.timelines = Timelines(self._redis, self._scripts)
        self.repair = Repair(self._redis, self._scripts, self.job_queue)
        self.statuses = Statuses(self._redis, self._scripts, self.syndication, detect_language)
        self.follows = Follows(self._scripts, self.syndication)
        self.user_graphs = UserGraphs(self._scripts)
        self.follow_requests = FollowRequests(self._scripts, self.syndication)
        self.relations = Relations(self._scripts)
        self.blocks = Blocks(self._scripts, self.syndication)
        self.mutes = Mutes(self._scripts)
        self.notifications = Notifications(self._scripts)
        self.reports = Reports(self._scripts, self.syndication)
        self.suspensions = Suspensions(self._scripts)
        self.likes = Likes(self._scripts)
        self.favorites = Favorites(self._scripts)
        self.comments = Comments(self._redis, self._scripts)
        self.log = EventLog(self._redis, self._scripts, self._replica_router)
        self.rollbacks = Rollbacks(self._scripts)
        self.retention = Retention(self._redis, self._scripts)
        self.lists = Lists(self._scripts, self.syndication)
        self.groups = Groups(self._scripts)
        self.talks = Talks(self._redis, self._scripts)
        self.rules = StoredRules(self._scripts)

    @cached_property
    def connect_rate_limiter(self) -> "ConnectRateLimiter":
        """How often somebody connects."""
        # Here, since the library behind it takes a while to import, and no command but the server counts.
        from stream_server.store.connect_rate_limiter import ConnectRateLimiter  # noqa: PLC0415 - see above

        return ConnectRateLimiter(self._redis)

    @property
    def last_written(self) -> Position:
        """The newest entry of the log that this process wrote: a feed that does not hear of it is deaf."""
        return self._scripts.last_written

    async def open(self) -> None:
        """Look whether this Redis will do, and give it the scripts; raises :class:`RedisTooOld` or Unavailable."""
        (info,) = await self._redis.execute(("INFO", "server"))
        _check_version(info.decode())
        await self._scripts.install()
        await self._warn_about_eviction()

    async def ping(self) -> None:
        """Raises Unavailable when Redis does not answer."""
        await self._redis.execute(("PING",))

    async def close(self) -> None:
        """Close all connections."""
        await self._replica_router.close()
        await self._redis.close()

    async def _warn_about_eviction(self) -> None:
        try:
            (info,) = await self._redis.execute(("INFO", "memory"))
        except ApiError:
            return  # a hosted Redis may forbid INFO's sections; the warning is not worth a refusal to start
        policy = re.search(r"^maxmemory_policy:(\S+)", info.decode(), re.MULTILINE)
        if policy is not None and policy[1] != "noeviction":
            logger.warning("Redis evicts by %s: under memory pressure it would lose data; set noeviction", policy[1])


def _check_version(info: str) -> None:
    version = re.search(r"^redis_version:(\d+)\.(\d+)", info, re.MULTILINE)
    if version is None or (int(version[1]), int(version[2])) < MIN_REDIS_VERSION:
        raise RedisTooOld("Redis 6.2 or newer is needed")
