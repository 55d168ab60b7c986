"""Groups, and who is in them. What is posted in one is a status with ``group``."""

from aiohttp import web

from stream_server.web.api.groups_shapes import GroupChanges, NewGroup
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging_shapes import PageQuery
from stream_server.web.http.responses import created_response, json_response, page_response

ME = "me"
"""In the place of one's own id."""


async def create(request: web.Request) -> web.Response:
    """``POST /v1/groups``: 201 and the group, with its owner in it."""
    new, body = await validation.read_body_as(NewGroup, request)
    key = read_idempotency_key(request, body)
    groups = request.app[STORE].groups
    made = await groups.create(request[CLAIMS].sub, new.name, new.kind, new.description, key)
    return created_response(made, "/v1/groups/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}``: one group; a private one for its members."""
    return json_response(await request.app[STORE].groups.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/groups/{id}``: change one's own group; what is so already is nothing new."""
    group = query.read_path_id(request)
    changes, body = await validation.read_body_as(GroupChanges, request)
    key = read_idempotency_key(request, body)
    return json_response(
        await request.app[STORE].groups.update(request[CLAIMS].sub, group, changes.present_members(), key)
    )


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}``: 204; one's own group, of which all members are rid."""
    await request.app[STORE].groups.delete(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return web.Response(status=204)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/members``: who is in a group, the latest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].groups.list_members)


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/groups/{id}/members/{uid}``: join as ``me``, or add somebody to one's private group; twice is once."""
    group, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].groups.add_member(request[CLAIMS].sub, group, member, key))


async def remove_member(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}/members/{uid}``: leave as ``me``, or take somebody out of one's group; twice is once."""
    group, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].groups.remove_member(request[CLAIMS].sub, group, member, key))


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/users/me/groups``: the groups one is in, the latest first."""
    asked, uid = query.parsed_query(request, PageQuery), request[CLAIMS].sub
    return page_response("groups", *await request.app[STORE].groups.list_joined(uid, uid, asked.page_request()))


def _member_id(request: web.Request) -> str:
    return request[CLAIMS].sub if request.match_info["uid"] == ME else query.read_path_id(request, "uid")
