"""Makes the rows of the URL table whose handlers only read the path, make one call of the store, and answer with it.

A row's ``name`` is that of the operation and of the store's method that does the work, such as ``lists.get``. The
method gets the caller's user id, the ids in the path, and what the row adds to these. A path parameter that is no id
needs a handler of its own.
"""

import re
from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any

import msgspec
from aiohttp import web

from stream_server.store.store import Store
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import PatchBody
from stream_server.web.http.idempotency import read_idempotency_key, read_keyed_body
from stream_server.web.http.paging import PageAnswer, PageQuery, read_page_request
from stream_server.web.http.responses import encode_response, json_response, page_response
from stream_server.web.limits.rate_limit import FOLLOWS, STATUSES, WRITE_BYTES, WRITES
from stream_server.web.route import RedisRoundTrips, Route

PASSWORD_TRIPS = RedisRoundTrips(2, "one before and one after hashing the password, which costs more than Redis")
LOG_IN_TRIPS = RedisRoundTrips(3, "the id of the login, then its password; and the session")
FANOUT_TRIPS = RedisRoundTrips(2, "the write; its timelines, if they are many, and the end of their job")
FOLLOW_TRIPS = RedisRoundTrips(3, "the write; if it leaves jobs, all timelines in one pipeline; completing the jobs")
NO_ROUND_TRIP = RedisRoundTrips(0)
WRITTEN_TRIPS_REASON = "the write; then a read of what it made or changed"
READ_TRIPS_REASON = "what the list belongs to, its ids, their rows, what these show, and who may see it"

TEXT_LIMITS = (WRITES, STATUSES, WRITE_BYTES)
"""Limits of the routes that write a text: these fill the log, in which other users' events wait to be read."""

CONTACT_LIMITS = (WRITES, WRITE_BYTES, FOLLOWS)
"""Limits of the routes that put a user into a set of another: these fill timelines, or ask the user."""

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")


def _call_of(name: str) -> Callable[[Store], Callable[..., Awaitable[Any]]]:
    """Return a function that gets a store and returns its method ``name``, such as ``lists.get``."""
    return attrgetter(name)


def caller_and_ids(request: web.Request, names: tuple[str, ...], me_parameter: str = "") -> list[str]:
    """Return the caller's user id and the ids in the path, of the parameters ``names``.

    ``me`` stands for the caller in the parameter ``me_parameter``. Raises BadRequest for another text that is no id.
    """
    caller = request[CLAIMS].sub
    is_me = {name: name == me_parameter and request.match_info[name] == "me" for name in names}
    return [caller, *(caller if is_me[name] else query.read_path_id(request, name) for name in names)]


def written_trips(most: int) -> RedisRoundTrips:
    """Return how often a write asks Redis: at most ``most`` times, because its answer is read after it."""
    return RedisRoundTrips(most, WRITTEN_TRIPS_REASON)


def read_trips(most: int) -> RedisRoundTrips:
    """Return how often a read asks Redis: at most ``most`` times, each for what the answer before it named."""
    return RedisRoundTrips(most, READ_TRIPS_REASON if most > 1 else "")


def get(path: str, name: str, summary: str, response: type[msgspec.Struct], trips: int = 1) -> Route:
    """Return a row for reading one object. The method returns it as JSON, after ``trips`` round trips at most."""
    names, call = tuple(_PATH_PARAMETER.findall(path)), _call_of(name)

    async def answer(request: web.Request) -> web.Response:
        return json_response(await call(request.app[STORE])(*caller_and_ids(request, names)))

    options: dict[str, Any] = {"name": name, "summary": summary, "round_trips": read_trips(trips)}
    return Route("GET", path, answer, "read", response=response, **options)


def page(path: str, name: str, summary: str, response: type[PageAnswer], trips: int = 1, **options: Any) -> Route:
    """Return a row for reading one page of a list. The method gets the page request too, and returns a page.

    It takes at most ``trips`` round trips to Redis, unless much is hidden. The last member of ``response`` is the list.
    ``options`` are further attributes of the :class:`Route`.
    """
    names, call = tuple(_PATH_PARAMETER.findall(path)), _call_of(name)
    member = response.__struct_encode_fields__[-1]

    async def answer(request: web.Request) -> web.Response:
        asked, read_page = read_page_request(request), call(request.app[STORE])
        return page_response(member, await read_page(*caller_and_ids(request, names), asked))

    options = {"query": PageQuery, "name": name, "summary": summary, "round_trips": read_trips(trips), **options}
    return Route("GET", path, answer, "read", response=response, **options)


def write(
    method: str,
    path: str,
    name: str,
    summary: str,
    done: msgspec.Struct | None = None,
    *,
    response: type[msgspec.Struct] | None = None,
    scope: str = "write",
    **options: Any,
) -> Route:
    """Return a row for a write without a body. The method gets the idempotency key too.

    The answer is ``done``, or with ``response`` the JSON that the method returns. Without both it is empty, with 204.
    """
    names, call = tuple(_PATH_PARAMETER.findall(path)), _call_of(name)
    me_parameter = options.get("me_parameter", "")

    async def answer(request: web.Request) -> web.Response:
        ids = caller_and_ids(request, names, me_parameter)
        result = await call(request.app[STORE])(*ids, read_idempotency_key(request))
        if response is not None:
            return json_response(result)
        return web.Response(status=204) if done is None else encode_response(done)

    shape = response if done is None else type(done)
    status = 204 if shape is None else 200
    return Route(method, path, answer, scope, response=shape, status=status, name=name, summary=summary, **options)


def update(path: str, name: str, summary: str, body: type[PatchBody], response: type[msgspec.Struct]) -> Route:
    """Return a row for changing members of an object. The method gets those that were sent, and the key."""
    names, call = tuple(_PATH_PARAMETER.findall(path)), _call_of(name)

    async def answer(request: web.Request) -> web.Response:
        ids = caller_and_ids(request, names)
        changes, key = await read_keyed_body(body, request)
        return json_response(await call(request.app[STORE])(*ids, changes.present_members(), key))

    return Route("PATCH", path, answer, "write", body=body, response=response, name=name, summary=summary)
