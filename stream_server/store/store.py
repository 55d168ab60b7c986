"""The store: one object with all data in Redis and its connections."""

import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from stream_server.errors import ApiError, Unavailable
from stream_server.events.language import LanguageDetector, detect_nothing
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.jobs.expiry import StatusExpiry
from stream_server.store.jobs.queue import JobQueue
from stream_server.store.jobs.repair import Repair
from stream_server.store.jobs.runner import JobRunner
from stream_server.store.log.event_log import EventLog, Rollbacks, nothing_to_verify
from stream_server.store.log.retention import Retention
from stream_server.store.operation_samples import OperationSamples
from stream_server.store.rate_counters import RateCounters
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_topology import NotACluster
from stream_server.store.redis.connecting import HostPort
from stream_server.store.redis.derived import route_derived
from stream_server.store.redis.engine import engine_of, is_cluster_node
from stream_server.store.redis.protocol import parse_info
from stream_server.store.redis.replica import Replica
from stream_server.store.redis.replica_router import ReplicaRouter
from stream_server.store.redis.replicated_client import ReplicatedClient
from stream_server.store.redis.script_settings import USUAL_RULES, SiteRules, SizeLimits
from stream_server.store.redis.scripts import ScriptRunner
from stream_server.store.redis.stored_form import FORM_FIELDS, form_fault
from stream_server.store.social.accounts import Accounts
from stream_server.store.social.circles import Groups, Lists
from stream_server.store.social.ingest import Ingest
from stream_server.store.social.likes import Favorites, Likes
from stream_server.store.social.notifications import Notifications
from stream_server.store.social.open_streams import OpenStreams
from stream_server.store.social.parts import SharedSubscriptions
from stream_server.store.social.relations import Blocks, FollowRequests, Follows, Mutes, Relations
from stream_server.store.social.reports import AuditLog, Reports, Suspensions
from stream_server.store.social.saved_rules import StoredRules
from stream_server.store.social.sessions import Sessions, SignIns, Tickets
from stream_server.store.social.statuses import Comments, Statuses
from stream_server.store.social.subscriptions import Subscriptions
from stream_server.store.social.suggestions import Suggestions
from stream_server.store.social.talks import Talks
from stream_server.store.social.user_graph import UserGraphs
from stream_server.store.social.users import Users
from stream_server.store.social.webhooks import Webhooks
from stream_server.store.timelines.home_visits import HomeVisits, IdleHomes
from stream_server.store.timelines.syndication import Syndication
from stream_server.store.timelines.timelines import Timelines
from stream_server.store.write_guard import RedisStateReader

logger = logging.getLogger(__name__)

DEFAULT_SIZE_LIMITS = SizeLimits()

NOT_OWNED = "no node of the Redis Cluster serves the core now"


class UnusableRedis(RuntimeError):
    """Raised when the server cannot run on this Redis, or not by this kind of URL. The message says why."""


class Store:
    """All data in one Redis, with one attribute for each kind of data. Call :meth:`open` before use.

    Attributes:
        replicas: The replicas from which requests read.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        replica_urls: str = "",
        min_write_replicas: int = 0,
        size_limits: SizeLimits = DEFAULT_SIZE_LIMITS,
        rules: SiteRules = USUAL_RULES,
        detect_language: LanguageDetector = detect_nothing,
        verify_feed: Callable[[], Awaitable[None]] = nothing_to_verify,
        bus_key: bytes = b"",
    ) -> None:
        """Make the store without connecting.

        ``url`` names the primary, or its Sentinels, or nodes of a cluster. ``replica_urls`` names the
        replicas to read from, separated by blanks; it is empty without one. ``min_write_replicas`` is the number of
        replicas that must acknowledge each write. ``detect_language`` finds the language of a status if its author gave
        none. ``verify_feed`` makes the feed (the link from Redis to the hub) compare its position with the log.
        ``bus_key`` signs published entries.
        """
        self.detect_language = detect_language
        self._redis, self.replicas = _connect(url, timeout_seconds, replica_urls.split())
        self._derived = route_derived(self._redis, url)
        self._replica_router = _route_log_reads(self._redis, self.replicas)
        if self._derived is not self._redis:  # a script changes data of one server only
            size_limits = size_limits._replace(step_timelines=0)
        self._scripts = ScriptRunner(self._redis, size_limits, rules, min_write_replicas, bus_key)
        self.job_queue = JobQueue(self._redis, self._scripts)
        self.job_runner = JobRunner(self._redis, self._derived, self.job_queue, size_limits)
        self.syndication = Syndication(self.job_queue, self.job_runner, size_limits)
        self.home_visits = HomeVisits(self._redis, self._scripts, self.job_runner)
        self.timelines = Timelines(self._redis, self._derived, size_limits.timeline_max, self.home_visits)
        self.repair = Repair(self._redis, self._derived, self._scripts, self.job_queue)
        self.log = EventLog(self._redis, self._scripts, self._replica_router, verify_feed)
        self.expiry = StatusExpiry(self._redis, self._derived, self._scripts, self.log)
        self.rollbacks = Rollbacks(self._scripts)
        self.idle_homes = IdleHomes(self._derived, self._scripts)
        self.state, self.rate_counters = RedisStateReader(self._redis), RateCounters(self._derived)
        self.retention = Retention(self._redis, self._scripts)
        connections = (self._redis, self._scripts, self.syndication)
        self.users, self.sessions = Users(*connections), Sessions(*connections)
        self.suggestions, self.accounts = Suggestions(*connections), Accounts(*connections)
        self.tickets, self.sign_ins = Tickets(*connections), SignIns(*connections)
        self.statuses = Statuses(*connections, detect_language)
        self.follows, self.follow_requests = Follows(*connections), FollowRequests(*connections)
        self.user_graphs = UserGraphs(*connections)
        self.relations = Relations(*connections)
        self.blocks, self.mutes = Blocks(*connections), Mutes(*connections)
        self.notifications = Notifications(*connections)
        self.reports, self.suspensions = Reports(*connections), Suspensions(*connections)
        self.likes, self.favorites = Likes(*connections), Favorites(*connections)
        self.comments = Comments(*connections)
        self.lists, self.groups = Lists(*connections), Groups(*connections)
        self.talks = Talks(*connections)
        self.rules, self.audit = StoredRules(*connections), AuditLog(*connections)
        self.subscriptions, self.shared_subscriptions = Subscriptions(*connections), SharedSubscriptions(*connections)
        self.webhooks, self.operation_samples = Webhooks(*connections), OperationSamples(self._derived)
        self.ingest = Ingest(*connections, detect_language)
        self.open_streams = OpenStreams(*connections, self._derived)

    def watch_rights(self, on_rights_change: Callable[[str | None], None]) -> None:
        """Call ``on_rights_change`` after each write of this process that may take rights from a user's tokens.

        It gets the user's id, or None for any user. It is called before the writer gets its answer.
        """
        self._scripts.on_rights_change = on_rights_change

    @property
    def last_written(self) -> Position:
        """Position of the newest log entry that this process wrote. The feed checks that it receives this entry."""
        return self._scripts.last_written

    @property
    def redirects(self) -> Mapping[str, int]:
        """Number of commands about derived data that a node of a cluster refused and that were sent again.

        The key is the refusal: ``moved``, ``ask`` or ``tryagain``.
        """
        return self._derived.follow_ups

    @property
    def cluster_fault(self) -> str:
        """Why nothing can be written now: no node of the cluster serves the core. Empty without a cluster."""
        topology = self._redis.topology
        return NOT_OWNED if topology is not None and topology.core_owner is None else ""

    @property
    def unreachable_nodes(self) -> Sequence[HostPort]:
        """The nodes with derived data that do not answer, as far as this process has used them."""
        return self._derived.unreachable_nodes

    async def open(self) -> None:
        """Load the Lua scripts, and check that the server can run on this Redis.

        Raises `UnusableRedis` if Redis is too old, the URL is of the wrong kind or the data has the form of another
        version, and `Unavailable` if Redis does not answer.
        """
        try:
            (server_info,) = await self._redis.execute(("INFO", "server"))
        except Unavailable as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, NotACluster):
                cause = cause.__cause__  # redis-py wraps what happens while it connects
            if cause is None:
                raise
            text = "the Redis is not in a cluster: name it by redis://host:port instead of redis+cluster://"
            raise UnusableRedis(text) from None
        info = parse_info(server_info)
        engine = engine_of(info)
        if engine.fault:
            raise UnusableRedis(engine.fault)
        if is_cluster_node(info) and self._redis.topology is None:
            text = "the Redis is a node of a cluster: name it by redis+cluster://host:port instead of redis://"
            raise UnusableRedis(text)
        ((ms, form),) = await self._redis.execute(("HMGET", keys.META, *FORM_FIELDS))
        if fault := form_fault(ms, form):
            raise UnusableRedis(fault)
        await self._scripts.install()
        await self.home_visits.check_needed()
        await self._warn_about_eviction()

    async def _warn_about_eviction(self) -> None:
        """Log a warning if Redis may delete data when its memory is full."""
        try:
            (memory_info,) = await self._redis.execute(("INFO", "memory"))
        except ApiError:
            return  # a hosted Redis may forbid INFO, and the start must not fail for a missing warning
        policy = parse_info(memory_info).get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            logger.warning("Redis maxmemory-policy is %s: data is lost under memory pressure; set noeviction", policy)

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
        if self._derived is not self._redis:
            await self._derived.close()
        await self._redis.close()


def _connect(url: str, timeout_seconds: float, replica_urls: Sequence[str]) -> tuple[RedisClient, Sequence[Replica]]:
    """Return the client of the primary, and the replicas that it asks."""
    if not replica_urls:
        return RedisClient(url, timeout_seconds), ()
    client = ReplicatedClient(url, timeout_seconds, replica_urls)
    return client, client.replicas


def _route_log_reads(primary: RedisClient, replicas: Sequence[Replica]) -> ReplicaRouter:
    """Return the router that selects the primary or a replica for reads of the log.

    It tries the replicas in any order, so that the processes of a site subscribe to different ones.
    """
    return ReplicaRouter(primary, *(replica.client for replica in random.sample(replicas, len(replicas))))
