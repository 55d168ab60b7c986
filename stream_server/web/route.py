"""One row of the URL table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from aiohttp import web

from stream_server.errors import ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NO_TOKEN = ""
"""In the place of a scope: no token is asked for."""

ANY_TOKEN = "*"
"""In the place of a scope: any valid token will do."""

JSON_MEDIA_TYPE = "application/json"


class RedisRoundTrips(NamedTuple):
    """How many round trips to Redis an answer takes at most, and ``reason`` it is more than one."""

    limit: int
    reason: str = ""


ONE_ROUND_TRIP = RedisRoundTrips(1)


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route that takes no parameters."""


class Dialect(NamedTuple):
    """Another protocol's words for what is common to all routes.

    ``error_response`` is how it answers with an error; ``read_token`` finds the token in a request, and raises Unauthorized.
    """

    error_response: Callable[[ApiError], web.Response]
    read_token: Callable[[web.Request], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Route:
    """What is at a path, who may have it, what it is asked and what it answers.

    ``scope`` is the scope that the token must hold, :data:`ANY_TOKEN` or :data:`NO_TOKEN`. ``query`` is the shape of its
    query, None where the handler reads that itself; ``body`` and ``response`` are those of its JSON, None where there
    is none. ``status`` is what it answers when all is well, ``other_statuses`` holds others that mean the same. ``is_streaming``
    says that its answers last. ``media_type`` is the type of an answer that is no JSON. ``me_parameter`` is the name in the path for
    which ``me_parameter`` may stand, which is oneself. ``extra_error_statuses`` holds the statuses of
    refusals that do not follow from the rest of the row. ``round_trips`` is without the one for the token, and of a row that
    is not ``has_round_trip_limit`` it says nothing. ``accepts_ticket`` says that a ticket in the URL does for the token. ``is_write`` is False
    for what is no write whatever its method: an Idempotency-Key means nothing there. ``dialect`` is there where another
    protocol is spoken, which takes parameters that it does not know, and is described elsewhere. The OpenAPI document
    is made of all other rows: a row must be true.
    """

    method: str
    path: str
    handler: Handler
    scope: str
    query: type[msgspec.Struct] | None = NoQuery
    body: type[msgspec.Struct] | None = None
    response: type[msgspec.Struct] | None = None
    status: int = 200
    is_streaming: bool = False
    other_statuses: tuple[int, ...] = ()
    media_type: str = JSON_MEDIA_TYPE
    extra_error_statuses: tuple[int, ...] = ()
    me_parameter: str = ""
    round_trips: RedisRoundTrips = ONE_ROUND_TRIP
    accepts_ticket: bool = False
    is_write: bool = True
    dialect: Dialect | None = None

    @property
    def has_round_trip_limit(self) -> bool:
        """Whether it asks Redis so many times: a stream asks on and on, the server's own pages are no data."""
        return self.path.startswith("/v1/") and not self.is_streaming
