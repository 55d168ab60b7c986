"""Makes the rows of the URL table whose handlers only read the path, make one call of the store, and answer with it.

A row's ``name`` is that of the operation, such as ``lists.get``. It is also that of the store's method that does the
work, unless ``call`` names another one. The method gets the caller's user id, the values in the path, and what the row
adds to these. What it returns is the answer, see :func:`answer_with`.
"""

from collections.abc import Awaitable, Callable
from operator import attrgetter
from typing import Any

import msgspec
from aiohttp import web

from stream_server.store.store import Store
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, QUERY, STORE
from stream_server.web.http.fields import PatchBody
from stream_server.web.http.paging import NumberedPageQuery, PageAnswer, PageQuery
from stream_server.web.http.responses import created_response, encode_response, json_response, page_response
from stream_server.web.http.validation import read_idempotency_key, read_keyed_body
from stream_server.web.limits.rate_limits import FOLLOWS, STATUSES, WRITE_LIMITS
from stream_server.web.route import PATH_PARAMETER, NoQuery, Request, Route

TEXT_LIMITS = (*WRITE_LIMITS, STATUSES)
"""Limits of the routes that write a text: these fill the log, in which other users' events wait to be read."""

CONTACT_LIMITS = (*WRITE_LIMITS, FOLLOWS)
"""Limits of the routes that put a user into a set of another: these fill timelines, or ask the user."""


_NOTHING = NoQuery()


def _find_work(path: str, name: str) -> tuple[tuple[str, ...], Callable[[Store], Callable[..., Awaitable[Any]]]]:
    """Return the names of a path's parameters, and a function that gets a store and returns its method ``name``."""
    return tuple(PATH_PARAMETER.findall(path)), attrgetter(name)


def caller_and_path(request: Request, names: tuple[str, ...], me_parameter: str = "") -> list[str]:
    """Return the caller's user id and the values of the path parameters ``names``.

    ``me`` stands for the caller in the parameter ``me_parameter``. Raises BadRequest for another text that is no id.
    """
    caller, found = request[CLAIMS].sub, request.match_info
    return [
        caller,
        *(
            caller if name == me_parameter and found[name] == "me"
            else found[name] if name == "tag"  # no id; the store checks it
            else query.read_path_id(request, name)
            for name in names
        ),
    ]  # fmt: skip


def answer_with(result: Any, response: type[msgspec.Struct]) -> web.Response:
    """Return the answer for a store's ``result``: JSON as bytes, or the member or members (a tuple) of ``response``."""
    if isinstance(result, bytes):
        return json_response(result)
    return encode_response(response(*result) if isinstance(result, tuple) else response(result))


def get(path: str, name: str, summary: str, response: type[msgspec.Struct], *, call: str = "") -> Route:
    """Return a row for reading one object."""
    names, find_method = _find_work(path, call or name)

    async def answer(request: Request) -> web.Response:
        return answer_with(await find_method(request.app[STORE])(*caller_and_path(request, names)), response)

    return Route("GET", path, answer, "read", response=response, name=name, summary=summary)


def page(
    path: str, name: str, summary: str, response: type[PageAnswer], query_type: type[PageQuery] = PageQuery, *,
    call: str = "", scope: str = "read", **options: Any,
) -> Route:  # fmt: skip
    """Return the row of a route that reads one page of a list by a method of the store: ``call``, else ``name``.

    The method gets the caller, the parameters of the path, the page request, and the members of ``query_type`` that are
    not about the page, in their order. It returns a page. The last member of ``response`` is the list.

    With the scope ``admin`` the page is the same for all who may read it, so the method gets no caller. ``options`` are
    further attributes of the :class:`Route`.
    """
    names, find_method = _find_work(path, call or name)
    member = response.__struct_encode_fields__[-1]
    others = [each for each in query_type.__struct_fields__ if each not in NumberedPageQuery.__struct_fields__]

    async def answer(request: Request) -> web.Response:
        asked, read_page = query.parsed_query(request, query_type), find_method(request.app[STORE])
        who = () if scope == "admin" else caller_and_path(request, names)
        page = await read_page(*who, asked.page_request(), *(getattr(asked, each) for each in others))
        return page_response(member, page)

    options = {"name": name, "summary": summary, **options}
    return Route("GET", path, answer, scope, query_type, response=response, **options)


def write(
    method: str,
    path: str,
    name: str,
    summary: str,
    done: msgspec.Struct | None = None,
    *,
    response: type[msgspec.Struct] | None = None,
    call: str = "",
    scope: str = "write",
    **options: Any,
) -> Route:
    """Return the row of a route that writes and takes no body.

    The method of the store gets the idempotency key and the members of the query. The answer is ``done``, or the result
    of the method as a ``response``. Without both, the answer is empty and has the status 204.
    """
    names, find_method = _find_work(path, call or name)
    me_parameter = options.get("me_parameter", "")

    async def answer(request: Request) -> web.Response:
        values = caller_and_path(request, names, me_parameter)
        asked = [each for each in msgspec.structs.astuple(request.get(QUERY) or _NOTHING) if each is not None]
        result = await find_method(request.app[STORE])(*values, read_idempotency_key(request), *asked)
        if response is not None:
            return answer_with(result, response)
        return web.Response(status=204) if done is None else encode_response(done)

    shape = response if done is None else type(done)
    status = 204 if shape is None else 200
    return Route(method, path, answer, scope, response=shape, status=status, name=name, summary=summary, **options)


def send(
    method: str,
    path: str,
    name: str,
    summary: str,
    body: type[msgspec.Struct],
    response: type[msgspec.Struct],
    *,
    call: str = "",
    scope: str = "write",
    **options: Any,
) -> Route:
    """Return a row for a write with a body. The method gets the body's members in their order, and the key.

    Of a `PatchBody` it gets one dictionary, of the members that were sent. With ``status=201`` the method returns the
    JSON of an object that it made; with ``other_statuses=(200,)`` too, also whether it is new. The path of a new object
    is ``path`` and its id.
    """
    names, find_method = _find_work(path, call or name)
    makes, may_exist = options.get("status") == 201, "other_statuses" in options

    async def answer(request: Request) -> web.Response:
        values = caller_and_path(request, names)
        sent, key = await read_keyed_body(body, request)
        members = [sent.present_members()] if isinstance(sent, PatchBody) else msgspec.structs.astuple(sent)
        result = await find_method(request.app[STORE])(*values, *members, key)
        made, is_new = result if may_exist else (result, True)
        return created_response(made, request.path + "/") if makes and is_new else answer_with(made, response)

    return Route(method, path, answer, scope, body=body, response=response, name=name, summary=summary, **options)
