"""Lists of users, and their members."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body, Description, DisplayName, Id, NonNegativeInt, PatchBody, Timestamp
from stream_server.web.http.idempotency import answer_write, read_idempotency_key, read_keyed_body
from stream_server.web.http.responses import created_response, json_response


class NewList(Body):
    """The body of ``POST /v1/lists``. A user may own at most 100 lists."""

    name: DisplayName
    description: Description = ""
    private: Annotated[bool, Meta(description="only the owner sees the list")] = False


class ListChanges(PatchBody):
    """The body of ``PATCH /v1/lists/{id}``: a new ``name``, ``description`` or ``private``, or several of these."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    private: bool | UnsetType = UNSET


class List(msgspec.Struct):
    """A list of users. It has at most 5,000 members."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    description: str
    private: bool
    members: NonNegativeInt
    created: Timestamp


class ListPage(paging.PageAnswer):
    """A page of lists."""

    lists: list[List]


async def create(request: web.Request) -> web.Response:
    """``POST /v1/lists``: create an empty list."""
    new, key = await read_keyed_body(NewList, request)
    created = await request.app[STORE].lists.create(request[CLAIMS].sub, new.name, new.description, new.private, key)
    return created_response(created, "/v1/lists/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}``: read one list."""
    return json_response(await request.app[STORE].lists.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/lists/{id}``: change the name, description or visibility of a list that the caller owns."""
    list_id = query.read_path_id(request)
    changes, key = await read_keyed_body(ListChanges, request)
    members = changes.present_members()
    return json_response(await request.app[STORE].lists.update(request[CLAIMS].sub, list_id, members, key))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/lists/{id}``: delete a list that the caller owns, and its timeline."""
    return await answer_write(request, request.app[STORE].lists.delete)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/members``: list the members of a list, last added first, with the time of addition."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].lists.list_members)


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/lists/{id}/members/{uid}``: add a user to a list that the caller owns; repeating has no effect."""
    list_id, member = query.read_path_id(request), query.read_path_id(request, "uid")
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].lists.add_member(request[CLAIMS].sub, list_id, member, key))


async def remove_member(request: web.Request) -> web.Response:
    """``DELETE /v1/lists/{id}/members/{uid}``: remove a user from a list of the caller; repeating has no effect."""
    list_id, member = query.read_path_id(request), query.read_path_id(request, "uid")
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].lists.remove_member(request[CLAIMS].sub, list_id, member, key))


async def list_owned(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/lists``: list the lists of a user, newest first; only the owner sees private lists."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_owned)


async def list_memberships(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/listed``: list the lists with the user that the caller may see, last addition first."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_containing)
