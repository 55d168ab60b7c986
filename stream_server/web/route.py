"""One row of the URL table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from aiohttp import web

from stream_server.errors import ApiError

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPEN = ""
"""In the place of a scope: no token is asked for."""

ANY = "*"
"""In the place of a scope: any valid token will do."""

JSON = "application/json"


class Trips(NamedTuple):
    """How many round trips to Redis an answer takes at most, and ``why`` it is more than one."""

    most: int
    why: str = ""


ONE = Trips(1)


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route that takes no parameters."""


class Dialect(NamedTuple):
    """Another protocol's words for what is common to all routes.

    ``refusal`` is how it answers with an error; ``token`` finds the token in a request, and raises Unauthorized.
    """

    refusal: Callable[[ApiError], web.Response]
    token: Callable[[web.Request], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Route:
    """What is at a path, who may have it, what it is asked and what it answers.

    ``needs`` is the scope that the token must hold, :data:`ANY` or :data:`OPEN`. ``query`` is the shape of its
    query, None where the handler reads that itself; ``body`` and ``answer`` are those of its JSON, None where there
    is none. ``status`` is what it answers when all is well, ``also`` holds others that mean the same. ``streams``
    says that its answers last. ``media`` is the type of an answer that is no JSON. ``me`` is the name in the path for
    which ``me`` may stand, which is oneself. ``refuses`` holds the statuses of
    refusals that do not follow from the rest of the row. ``trips`` is without the one for the token, and of a row that
    is not ``counted`` it says nothing. ``ticket`` says that a ticket in the URL does for the token. ``writes`` is False
    for what is no write whatever its method: an Idempotency-Key means nothing there. ``dialect`` is there where another
    protocol is spoken, which takes parameters that it does not know, and is described elsewhere. The OpenAPI document
    is made of all other rows: a row must be true.
    """

    method: str
    path: str
    handler: Handler
    needs: str
    query: type[msgspec.Struct] | None = Nothing
    body: type[msgspec.Struct] | None = None
    answer: type[msgspec.Struct] | None = None
    status: int = 200
    streams: bool = False
    also: tuple[int, ...] = ()
    media: str = JSON
    refuses: tuple[int, ...] = ()
    me: str = ""
    trips: Trips = ONE
    ticket: bool = False
    writes: bool = True
    dialect: Dialect | None = None

    @property
    def counted(self) -> bool:
        """Whether it asks Redis so many times: a stream asks on and on, the server's own pages are no data."""
        return self.path.startswith("/v1/") and not self.streams
