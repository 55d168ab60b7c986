"""Lists of people, and who is on them."""

from aiohttp import web

from stream_server.web.api.lists_shapes import ListChanges, NewList
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response


async def create(request: web.Request) -> web.Response:
    """``POST /v1/lists``: 201 and the list, with nobody on it."""
    new, body = await validation.read_body_as(NewList, request)
    key = read_idempotency_key(request, body)
    lists = request.app[STORE].lists
    made = await lists.create(request[CLAIMS].sub, new.name, new.description, new.private, key)
    return created_response(made, "/v1/lists/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}``: one list."""
    return json_response(await request.app[STORE].lists.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/lists/{id}``: change one's own list; what is so already is nothing new."""
    list_id = query.read_path_id(request)
    changes, body = await validation.read_body_as(ListChanges, request)
    key = read_idempotency_key(request, body)
    return json_response(
        await request.app[STORE].lists.update(request[CLAIMS].sub, list_id, changes.present_members(), key)
    )


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/lists/{id}``: 204; one's own list, with its timeline."""
    await request.app[STORE].lists.delete(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return web.Response(status=204)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/members``: who is on a list, the latest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].lists.list_members)


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/lists/{id}/members/{uid}``: put a user on one's list; twice is once."""
    list_id, member = query.read_path_id(request), query.read_path_id(request, "uid")
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].lists.add_member(request[CLAIMS].sub, list_id, member, key))


async def remove_member(request: web.Request) -> web.Response:
    """``DELETE /v1/lists/{id}/members/{uid}``: take a user off one's list; twice is once."""
    list_id, member = query.read_path_id(request), query.read_path_id(request, "uid")
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].lists.remove_member(request[CLAIMS].sub, list_id, member, key))


async def list_owned(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/lists``: a user's lists, newest first: all of one's own, another's public ones."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_owned)


async def list_memberships(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/listed``: the lists that a user is on, the latest first, as far as one may see them."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_containing)
