"""Lists of users, and their members."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import (
    Cursor,
    Description,
    DisplayName,
    Id,
    NonNegativeInt,
    PatchBody,
    Timestamp,
    check_name,
    check_text,
)
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response


class NewList(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/lists``. A user may own at most 1,000 lists."""

    name: DisplayName
    description: Description = ""
    private: Annotated[bool, Meta(description="only the owner sees the list")] = False

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("description", self.description, allowed_controls="\n")


class ListChanges(PatchBody):
    """The body of ``PATCH /v1/lists/{id}``. Omitted members stay unchanged."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    private: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if self.description is not UNSET:
            check_text("description", self.description, allowed_controls="\n")


class List(msgspec.Struct):
    """A list of users. It has at most 5,000 members."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    description: str
    private: bool
    members: NonNegativeInt
    created: Timestamp


class ListPage(msgspec.Struct):
    """A page of lists. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    lists: list[List]
    next: Cursor | None
    prev: Cursor | None


async def create(request: web.Request) -> web.Response:
    """``POST /v1/lists``: create an empty list."""
    new_list, body = await validation.read_body_as(NewList, request)
    key, lists = read_idempotency_key(request, body), request.app[STORE].lists
    created = await lists.create(request[CLAIMS].sub, new_list.name, new_list.description, new_list.private, key)
    return created_response(created, "/v1/lists/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}``: read one list."""
    return json_response(await request.app[STORE].lists.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/lists/{id}``: change a list that the caller owns."""
    list_id = query.read_path_id(request)
    changes, body = await validation.read_body_as(ListChanges, request)
    key, members = read_idempotency_key(request, body), changes.present_members()
    return json_response(await request.app[STORE].lists.update(request[CLAIMS].sub, list_id, members, key))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/lists/{id}``: delete a list that the caller owns, and its timeline."""
    list_id, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].lists.delete(request[CLAIMS].sub, list_id, key)
    return web.Response(status=204)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/members``: list the members of a list, the latest first, each with ``since``."""
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
    """``GET /v1/users/{id}/lists``: list a user's lists, newest first; private ones only if the caller owns them."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_owned)


async def list_memberships(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/listed``: list the lists with this member that the caller may see, the latest first."""
    return await paging.page_of_path_id(request, "lists", request.app[STORE].lists.list_containing)
