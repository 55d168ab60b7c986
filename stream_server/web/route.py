"""One row of the URL table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from aiohttp import web

from stream_server.errors import ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

NO_TOKEN = ""
"""Instead of a scope: the route needs no token."""

ANY_TOKEN = "*"  # noqa: S105 - stands for any token, is not one
"""Instead of a scope: the route accepts any valid token."""

JSON_MEDIA_TYPE = "application/json"


class RedisRoundTrips(NamedTuple):
    """The most round trips to Redis that one answer needs.

    Attributes:
        limit: The number of round trips, without the one that checks the token.
        reason: Why the answer needs more than one.
    """

    limit: int
    reason: str = ""


ONE_ROUND_TRIP = RedisRoundTrips(1)


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route that takes no parameters."""


class Dialect(NamedTuple):
    """The parts of another streaming protocol that all its routes share.

    Attributes:
        error_response: Builds the answer for an error.
        read_token: Finds the token in a request; raises Unauthorized if there is none.
    """

    error_response: Callable[[ApiError], web.Response]
    read_token: Callable[[web.Request], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Route:
    """A method and a path, with the access rule, the shapes of requests and answers, and the handler.

    The middleware enforces a row, and the OpenAPI document is made from all rows without a dialect, so each row must
    be correct.

    Attributes:
        method: GET, POST, PUT, PATCH or DELETE.
        path: The path, with parameters in braces.
        handler: Answers the request.
        scope: The scope that the token must have, or :data:`ANY_TOKEN`, or :data:`NO_TOKEN`.
        query: The shape of the query. None means that the handler reads the query itself.
        body: The shape of the JSON body, or None for no body.
        response: The shape of the JSON answer, or None if the answer is not JSON.
        status: The status of a success.
        is_streaming: Whether the answer lasts as long as the connection, or waits for events.
        other_statuses: Further statuses of a success.
        media_type: The media type of an answer that is not JSON.
        extra_error_statuses: Statuses of errors that do not follow from the rest of the row.
        me_parameter: The path parameter in which ``me`` may stand for the caller, or "".
        round_trips: The most round trips to Redis that the answer needs; see ``has_round_trip_limit``.
        accepts_ticket: Whether a ticket in the URL may replace the token.
        is_write: False for a POST that writes nothing, so an Idempotency-Key has no effect.
        dialect: The foreign protocol that the route speaks, or None. A dialect ignores unknown parameters.
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
        """Whether ``round_trips`` limits the route. Streams and the server's own pages have no limit."""
        return self.path.startswith("/v1/") and not self.is_streaming
