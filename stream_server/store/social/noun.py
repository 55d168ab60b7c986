"""The base of the nouns of the social API: their connections, and the calls of scripts that return JSON."""

from collections.abc import Awaitable, Callable

from stream_server.store import keys
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis import replies
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptArgument, Scripts, WriteReply
from stream_server.store.social.stored_json import read_wire_member
from stream_server.store.timelines.syndication import Syndication


class Noun:
    """Base class for access to one noun (resource) of the social API, such as likes or lists, by Lua scripts."""

    def __init__(self, redis: RedisClient, scripts: Scripts, syndication: Syndication) -> None:
        self._redis = redis
        self._scripts = scripts
        self._syndication = syndication

    async def _read(self, script_name: str, *arguments: ScriptArgument) -> bytes:
        found: bytes = await self._scripts.call(script_name, keys.META, *arguments)
        return found

    async def _page(
        self, script: str, row: str, owner: str, page_request: PageRequest, *arguments: str, oldest_first: bool = False
    ) -> Page:
        """Read one page of the sorted set of ``owner`` with a Lua script. ``row`` names the key in `store/keys.py`."""
        key = keys.key_for(row, owner)
        page, _ = await read_page(self._scripts, script, key, page_request, *arguments, oldest_first=oldest_first)
        return page

    async def _written(self, reply: WriteReply, member: str, read: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return, as JSON, the object that a write made or changed.

        The script returned it to the first call. For a repetition, the write's entry on the log has the same bytes:
        ``member`` names it there. If the entry was trimmed, or the write has none, ``read`` returns the present object.
        """
        if reply.first_time_extra:
            return bytes(reply.first_time_extra[0])
        position = replies.parse_reply_position(reply.value)
        kept = None if position is None else await read_wire_member(self._redis, position, member)
        return kept or await read()
