"""The base of the nouns of the social API: their connections, the page of a set, and what a write returns."""

from collections.abc import Awaitable, Callable

from stream_server.store import keys
from stream_server.store.pagination import Admit, Page, PageRequest, Show, read_page
from stream_server.store.reads.sight import Gate, Sight
from stream_server.store.reads.users import UserRow, read_own
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.social.stored_json import read_wire_member
from stream_server.store.timelines.syndication import Syndication


class Noun:
    """Base class for access to one noun (resource) of the social API, such as likes or lists."""

    def __init__(self, redis: RedisClient, scripts: Scripts, syndication: Syndication) -> None:
        self._redis = redis
        self._scripts = scripts
        self._syndication = syndication

    def _sight(self, viewer: str) -> Sight:
        """Return an object that decides what the user ``viewer`` may see. Use it for one request only."""
        return Sight(self._redis, viewer)

    async def _page(
        self, row: str, owner: str, page_request: PageRequest, show: Show, *,
        oldest_first: bool = False, gate: Gate | None = None, admit: Admit | None = None,
    ) -> Page:  # fmt: skip
        """Read one page of the sorted set of ``owner``. ``row`` names the key in `store/keys.py`. See `read_page`."""
        key = keys.key_for(row, owner)
        return await read_page(self._redis, key, page_request, show, oldest_first=oldest_first, gate=gate, admit=admit)

    async def _own_user(self, reply: WriteReply, uid: str) -> bytes:
        """Return a user as JSON with the e-mail address: the row in a write's reply, or the present one."""
        if reply.first_time_extra:
            return UserRow(*reply.first_time_extra[0]).own_json()
        return await read_own(self._redis, uid)

    async def _written(self, reply: WriteReply, member: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return, as JSON, the object that a write made or changed, for the first call and for a repetition.

        The script returns the object to the first call only. For a repetition it is read from the write's entry on the
        log, where it is the member ``member``. Without such an entry, ``read`` returns the present object.
        """
        if reply.first_time_extra:
            return bytes(reply.first_time_extra[0])
        kept = None if reply.position is None else await read_wire_member(self._redis, reply.position, member)
        return kept or await read()
