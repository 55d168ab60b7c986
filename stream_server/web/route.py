"""One row of the URL table (``routes.py``): the definition of one HTTP route, and the request that its handler gets."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

import msgspec
from aiohttp import HttpVersion, web
from multidict import MultiMapping
from yarl import URL

from stream_server.errors import ApiError
from stream_server.web.http.connection import Connection
from stream_server.web.limits.rate_limits import ANONYMOUS, CONNECTS, READS, WRITE_LIMITS, Allowance, RateLimit

Value = TypeVar("Value")


class AppValues(Protocol):
    """The values of the app by their keys: aiohttp's app, or a dict, which looks them up faster."""

    def __getitem__(self, key: web.AppKey[Value], /) -> Value:
        """Return a value. Raises KeyError if the app has none with this key."""

    def __contains__(self, key: object, /) -> bool:
        """Return whether the app has a value with this key."""


class Target(NamedTuple):
    """The target of a request, percent-encoded. The names are those of yarl's URL."""

    raw_path: str
    raw_query_string: str

    @property
    def raw_path_qs(self) -> str:
        """The path, and the query behind a `?` if there is one."""
        return f"{self.raw_path}?{self.raw_query_string}" if self.raw_query_string else self.raw_path


class Request(Protocol):
    """A request as all code behind the front door sees it, whether the connection itself or aiohttp has read it.

    It also holds values that belong to the request, by their keys (`app_keys`).
    """

    @property
    def app(self) -> AppValues:
        """The values of the app that serves the request."""

    @property
    def body_exists(self) -> bool:
        """Whether the request has a body."""

    @property
    def can_read_body(self) -> bool:
        """Whether a part of the body may not have come yet."""

    @property
    def connection(self) -> Connection:
        """The connection of the request."""

    @property
    def headers(self) -> MultiMapping[str]:
        """The header fields, by their names in any case."""

    @property
    def match_info(self) -> Mapping[str, str]:
        """The parameters in the path."""

    @property
    def method(self) -> str:
        """The method, in capitals."""

    @property
    def path(self) -> str:
        """The path, without percent-encoding."""

    @property
    def rel_url(self) -> Target | URL:
        """The path and the query."""

    @property
    def route(self) -> "Route":
        """The row of the URL table."""

    @property
    def version(self) -> HttpVersion:
        """The version of HTTP."""

    def __getitem__(self, key: web.RequestKey[Value], /) -> Value:
        """Return a value that belongs to the request. Raises KeyError if it has none with this key."""

    def __setitem__(self, key: web.RequestKey[Value], value: Value, /) -> None:
        """Keep a value for code that handles the request later."""

    def __contains__(self, key: object, /) -> bool:
        """Return whether the request has a value with this key."""

    def get(self, key: web.RequestKey[Value], /) -> Value | None:
        """Return a value that belongs to the request, or None if it has none with this key."""


Handler = Callable[[Request], Awaitable[web.StreamResponse]]

NO_TOKEN = ""
"""Instead of a scope: the route needs no token."""

ANY_TOKEN = "*"  # noqa: S105 - stands for any token, is not one
"""Instead of a scope: the route accepts any valid token."""

JSON_MEDIA_TYPE = "application/json"

PATH_PARAMETER = re.compile(r"\{(\w+)\}")
"""A parameter in the path of a route."""


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a route that takes no parameters."""


class Dialect(NamedTuple):
    """The functions that all routes of a foreign protocol (Twitter's) share: for errors, tokens and rate limits."""

    error_response: Callable[[ApiError], web.Response]
    read_token: Callable[[Request], Awaitable[str]]
    rate_limit_headers: Callable[[Allowance], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Route:
    """One HTTP route: its method and path, who may call it, the structs of requests and answers, and its handler.

    A route that only calls the store has no handler function of its own: its row says all (`web/api/rows.py`).

    Attributes:
        scope: The scope that the token must have, or :data:`ANY_TOKEN`, or :data:`NO_TOKEN`.
        query: The struct of the query. None means that the handler reads the query itself.
        body: The struct of the JSON body, or None for no body.
        response: The struct of the JSON answer, or None if the answer is not JSON.
        lines: The structs of the lines of a body that has one JSON object a line. Its ``response`` is a line, too.
        is_streaming: Whether the answer lasts as long as the connection, or waits for events.
        media_type: The media type of an answer that is not JSON, and of a body of lines.
        extra_error_statuses: Error statuses for the OpenAPI document that the other attributes do not imply.
        me_parameter: The path parameter in which ``me`` may stand for the caller, or "".
        accepts_ticket: Whether a ticket in the URL may replace the token.
        is_for_readers: Whether a reader token may call the route. Without it, its answer is 403.
        is_write: False for a request that changes no data, so an Idempotency-Key has no effect.
        ignores_key: Whether a write takes no Idempotency-Key, although it has a user.
        limits: The rate limits of the route. None takes those of its kind, see :attr:`rate_limits`.
        works_when_full: Whether a write is accepted while Redis is nearly full, because it adds little or frees memory.
        is_for_safety: Whether a write only takes away or protects, and no limit of bytes refuses it. None: if a DELETE.
        keeps_appended: Whether Redis keeps, beside the log, what a write appends to it: `write_bytes` counts that, too.
        websocket: The handler of a GET request that asks for a WebSocket, or None if the route has none.
        dialect: The foreign protocol that the route speaks, or None. A dialect ignores unknown parameters.
        name: The operation's name, such as ``lists.get``. Empty takes the handler's, behind that of its module.
        summary: What the route does. Empty takes the first sentence of the handler.
        rate_limits: The rate limits of the route: its own, else those of anonymous requests, connects, reads or writes.
        grows_data: Whether a request may add data for good. Such a request is refused while Redis is nearly full.
    """

    method: str
    path: str
    handler: Handler
    scope: str
    query: type[msgspec.Struct] | None = NoQuery
    body: type[msgspec.Struct] | None = None
    response: type[msgspec.Struct] | None = None
    lines: tuple[type[msgspec.Struct], ...] = ()
    status: int = 200
    is_streaming: bool = False
    other_statuses: tuple[int, ...] = ()
    media_type: str = JSON_MEDIA_TYPE
    extra_error_statuses: tuple[int, ...] = ()
    me_parameter: str = ""
    accepts_ticket: bool = False
    is_for_readers: bool = False
    is_write: bool = True
    ignores_key: bool = False
    limits: tuple[RateLimit, ...] | None = None
    works_when_full: bool = False
    is_for_safety: bool | None = None
    keeps_appended: bool = False
    websocket: Handler | None = None
    dialect: Dialect | None = None
    name: str = ""
    summary: str = ""
    rate_limits: tuple[RateLimit, ...] = field(init=False)
    grows_data: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate_limits", self._choose_limits())  # the dataclass is frozen
        may_grow = self.is_write and not self.is_streaming and not self.works_when_full
        object.__setattr__(self, "grows_data", may_grow and self.method in {"POST", "PUT", "PATCH"})
        if self.is_for_safety is None:
            object.__setattr__(self, "is_for_safety", self.method == "DELETE")

    def _choose_limits(self) -> tuple[RateLimit, ...]:
        if self.limits is not None:
            return self.limits
        if self.scope == NO_TOKEN:
            return (ANONYMOUS,)
        if self.is_streaming:
            return (CONNECTS,)
        return (READS,) if self.method == "GET" else WRITE_LIMITS

    @property
    def accepts_idempotency_key(self) -> bool:
        """Whether an Idempotency-Key has an effect: on routes that write for a user with a scope."""
        is_write = self.method != "GET" and self.is_write and not self.is_streaming
        return is_write and not self.ignores_key and self.scope not in {NO_TOKEN, ANY_TOKEN}
