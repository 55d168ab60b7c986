"""The base of the nouns of the social API: their connections, and the calls of scripts that return JSON."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptArgument, Scripts, WriteReply
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

    async def _write(self, script_name: str, idempotency_key: IdempotencyKey, *arguments: ScriptArgument) -> bytes:
        return json_of_reply(await self._scripts.write(script_name, idempotency_key, *arguments))

    async def _page(
        self, script: str, row: str, owner: str, page_request: PageRequest, *arguments: str, oldest_first: bool = False
    ) -> Page:
        """Read one page of the sorted set of ``owner`` with a Lua script. ``row`` names the key in `store/keys.py`."""
        key = keys.key_for(row, owner)
        page, _ = await read_page(self._scripts, script, key, page_request, *arguments, oldest_first=oldest_first)
        return page


def json_of_reply(reply: WriteReply) -> bytes:
    """Return the JSON at the end of a write's reply. Repeated with its idempotency key, a write has the same bytes."""
    return reply.value[reply.value.index(b"{") :]
