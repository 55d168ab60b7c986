"""Finding people: by the beginning of a login or name, and whom the caller may want to follow."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.events.entry import PUBLIC_AUDIENCE
from stream_server.hub.catchup.ring import Ring
from stream_server.store.social.suggestions import RECENT_ENTRIES, authors_of
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, HUB, STORE
from stream_server.web.http.responses import list_response
from stream_server.web.route import Request, Route
from stream_server.wire.objects import User

Count = Annotated[int, Meta(ge=1, le=50, description="maximum number of users")]


class SearchQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/search``: the beginning of a login, of a name, or of a word of a name."""

    q: Annotated[str, Meta(min_length=1, max_length=50, description="case and accents do not matter")]
    count: Count = 10


class SuggestionsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/suggested``."""

    count: Count = 10


class FoundUsers(msgspec.Struct):
    """The users who were found, the best ones first."""

    users: list[User]


async def search(request: Request) -> web.Response:
    """``GET /v1/users/search?q=``: find users by the beginning of the login or of a word of the name."""
    asked = query.parsed_query(request, SearchQuery)
    users = request.app[STORE].users
    return list_response("users", await users.search(request[CLAIMS].sub, asked.q.removeprefix("@"), asked.count))


async def suggest(request: Request) -> web.Response:
    """``GET /v1/users/suggested``: name users whom the caller may want to follow, the best ones first.

    Those come first whom many of the followed users follow, then active users with many followers.
    """
    count, app = query.parsed_query(request, SuggestionsQuery).count, request.app
    ring = app[HUB].ring
    found = await app[STORE].suggestions.suggest(
        request[CLAIMS].sub, recent_authors(ring), count, are_all_known=ring.head.n - ring.floor.n >= RECENT_ENTRIES
    )
    return list_response("users", found)


def recent_authors(ring: Ring) -> list[bytes]:
    """Return the ids of the authors of the newest public posts in the ring, the newest first."""
    first = max(ring.floor.n + 1, ring.head.n - RECENT_ENTRIES + 1)
    entries = reversed([*ring.peek_numbers(first, ring.head.n)])
    return authors_of(each.body for each in entries if each.kind == "post" and each.audience == PUBLIC_AUDIENCE)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/v1/users/search", search, "read", SearchQuery, response=FoundUsers, name="users.search"),
    Route("GET", "/v1/users/suggested", suggest, "read", SuggestionsQuery, response=FoundUsers, name="users.suggest"),
)
# fmt: on
