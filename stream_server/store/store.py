"""One object that holds everything kept in Redis, and its connections."""

import logging
import re
from functools import cached_property
from typing import TYPE_CHECKING

from stream_server.detection import Detector, undetermined
from stream_server.errors import ApiError
from stream_server.events import Position
from stream_server.store.blocks import Blocks
from stream_server.store.comments import Comments
from stream_server.store.favorites import Favorites
from stream_server.store.follow_requests import FollowRequests
from stream_server.store.follows import Follows
from stream_server.store.groups import Groups
from stream_server.store.jobs import Jobs
from stream_server.store.lane import Lane
from stream_server.store.likes import Likes
from stream_server.store.link import Link
from stream_server.store.lists import Lists
from stream_server.store.log import Log
from stream_server.store.mutes import Mutes
from stream_server.store.near import Near
from stream_server.store.notifications import Notifications
from stream_server.store.passes import Passes
from stream_server.store.relations import Relations
from stream_server.store.repair import Repair
from stream_server.store.reports import Reports
from stream_server.store.retention import Retention
from stream_server.store.rollbacks import Rollbacks
from stream_server.store.rules import Rules
from stream_server.store.scripts import Scripts, Sizes
from stream_server.store.sessions import Sessions
from stream_server.store.statuses import Statuses
from stream_server.store.suspensions import Suspensions
from stream_server.store.syndication import Syndication
from stream_server.store.talks import Talks
from stream_server.store.tickets import Tickets
from stream_server.store.timelines import Timelines
from stream_server.store.users import Users
from stream_server.store.viewers import Viewers

if TYPE_CHECKING:
    from stream_server.store.connects import Connects

logger = logging.getLogger(__name__)

OLDEST = (6, 2)
"""The oldest Redis that has what is used here (GETDEL, exclusive ranges, PXAT)."""


DEFAULT_SIZES = Sizes()


class TooOld(RuntimeError):
    """This Redis lacks commands that are used here; the message says which version is needed."""


class Store:
    """What is kept in one Redis. Nothing is connected before :meth:`open`.

    ``timeout_seconds`` bounds the wait for each answer of Redis; ``read_url`` names a replica to hear and read the log
    from, empty for none; so many ``write_replicas`` must have a write before it is answered; ``language`` tells that of
    a status whose author does not say it. Many who ask at once go along the ``lane``.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_seconds: float,
        read_url: str = "",
        write_replicas: int = 0,
        sizes: Sizes = DEFAULT_SIZES,
        language: Detector = undetermined,
    ) -> None:
        self.language = language
        self.lane = Lane()
        self._link = Link(url, timeout_seconds)
        self._near = Near(self._link, Link(read_url, timeout_seconds, replica=True) if read_url else None)
        self._scripts = Scripts(self._link, sizes, write_replicas)
        self.users = Users(self._link, self._scripts)
        self.sessions = Sessions(self._link, self._scripts)
        self.tickets = Tickets(self._link)
        self.jobs = Jobs(self._link, self._scripts)
        self.passes = Passes(self._link, self.jobs, sizes)
        self.syndication = Syndication(self.jobs, self.passes, sizes)
        self.timelines = Timelines(self._link, self._scripts)
        self.repair = Repair(self._link, self._scripts, self.jobs)
        self.statuses = Statuses(self._link, self._scripts, self.syndication, language)
        self.follows = Follows(self._scripts, self.syndication)
        self.viewers = Viewers(self._scripts)
        self.follow_requests = FollowRequests(self._scripts, self.syndication)
        self.relations = Relations(self._scripts)
        self.blocks = Blocks(self._scripts, self.syndication)
        self.mutes = Mutes(self._scripts)
        self.notifications = Notifications(self._scripts)
        self.reports = Reports(self._scripts, self.syndication)
        self.suspensions = Suspensions(self._scripts)
        self.likes = Likes(self._scripts)
        self.favorites = Favorites(self._scripts)
        self.comments = Comments(self._link, self._scripts)
        self.log = Log(self._link, self._scripts, self._near)
        self.rollbacks = Rollbacks(self._scripts)
        self.retention = Retention(self._link, self._scripts)
        self.lists = Lists(self._scripts, self.syndication)
        self.groups = Groups(self._scripts)
        self.talks = Talks(self._link, self._scripts)
        self.rules = Rules(self._scripts)

    @cached_property
    def connects(self) -> "Connects":
        """How often somebody connects."""
        # Here, since the library behind it takes a while to import, and no command but the server counts.
        from stream_server.store.connects import Connects  # noqa: PLC0415 - see above

        return Connects(self._link)

    @property
    def written(self) -> Position:
        """The newest entry of the log that this process wrote: a feed that does not hear of it is deaf."""
        return self._scripts.written

    async def open(self) -> None:
        """Look whether this Redis will do, and give it the scripts; raises :class:`TooOld` or Unavailable."""
        (info,) = await self._link.ask(("INFO", "server"))
        _check_version(info.decode())
        await self._scripts.install()
        await self._warn_of_eviction()

    async def ping(self) -> None:
        """Raises Unavailable when Redis does not answer."""
        await self._link.ask(("PING",))

    async def close(self) -> None:
        """Close all connections."""
        await self._near.close()
        await self._link.close()

    async def _warn_of_eviction(self) -> None:
        try:
            (info,) = await self._link.ask(("INFO", "memory"))
        except ApiError:
            return  # a hosted Redis may forbid INFO's sections; the warning is not worth a refusal to start
        policy = re.search(r"^maxmemory_policy:(\S+)", info.decode(), re.MULTILINE)
        if policy is not None and policy[1] != "noeviction":
            logger.warning("Redis evicts by %s: under memory pressure it would lose data; set noeviction", policy[1])


def _check_version(info: str) -> None:
    version = re.search(r"^redis_version:(\d+)\.(\d+)", info, re.MULTILINE)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise TooOld("Redis 6.2 or newer is needed")
