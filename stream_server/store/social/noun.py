"""The base of the nouns of the social API: their connections, the page of a set, and what a write returns.

JSON and mentions become arguments of scripts here, and the JSON of log entries is decoded.
"""

from collections.abc import Awaitable, Callable

import msgspec

from filters.entities import Entities
from stream_server.events.position import Position
from stream_server.events.status_json import entity_pieces
from stream_server.store import keys
from stream_server.store.pagination import Admit, Page, PageRequest, Show, read_page
from stream_server.store.reads.sight import Gate, Sight
from stream_server.store.reads.users import UserRow, read_own
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptRunner, WriteReply
from stream_server.store.timelines.syndication import Syndication

encode_json = msgspec.json.encode


class _WireMembers(msgspec.Struct):
    wire: dict[str, msgspec.Raw]


def mention_arguments(entities: Entities) -> list[str | bytes | int]:
    """Return the mentions of a text as arguments for ``resolve_mentions`` (``lua/notification.lua``).

    The arguments are the number of mentions, their logins in lower case, and the JSON of ``entities`` (mentions,
    hashtags and so on) in pieces, one cut after each mentioned login. The script puts the id of that user between two
    pieces.
    """
    return [len(entities.mentions), *(mention.login.lower() for mention in entities.mentions), *entity_pieces(entities)]


async def read_wire_member(redis: RedisClient, position: Position, member: str) -> bytes | None:
    """Return one member of a log entry's ``wire`` (the event for clients) as JSON, or None if the entry was trimmed.

    A write that repeats an idempotency key returns these bytes, so its answer equals the first answer.
    """
    (entries,) = await redis.execute(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
    if not entries:
        return None
    fields = entries[0][1]
    return bytes(msgspec.json.decode(fields[7], type=_WireMembers).wire[member])


class Noun:
    """Base class for access to one noun (resource) of the social API, such as likes or lists."""

    def __init__(self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication) -> None:
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
        """Return a user as JSON with the e-mail address, for the first call of a write and for a repetition.

        The script returns the row to the first call only. A repetition reads the user from the write's entry on the
        log, which has no e-mail address. Without such an entry, it gets the present user.
        """
        if reply.first_time:
            return UserRow(*reply.first_time["user"]).own_json()
        return await read_own(self._redis, uid, await self._logged(reply, "user"))

    async def _written(self, reply: WriteReply, member: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return, as JSON, the object that a write made or changed, for the first call and for a repetition.

        The script returns the object to the first call only. For a repetition it is read from the write's entry on the
        log, where it is the member ``member``. Without such an entry, ``read`` returns the present object.
        """
        if reply.first_time:
            return bytes(reply.first_time["json"])
        return await self._logged(reply, member) or await read()

    async def _logged(self, reply: WriteReply, member: str) -> bytes | None:
        """Return a member of the log entry of a write as JSON, or None if there is no such entry, or none any more."""
        return None if reply.position is None else await read_wire_member(self._redis, reply.position, member)
