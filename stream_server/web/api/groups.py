"""Groups and their members. A status posted in a group has the member ``group``."""

from typing import Annotated, Literal

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
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import created_response, json_response, page_response

ME = "me"
"""Stands for the caller's own id in the path of a membership."""

GroupKind = Annotated[
    Literal["public", "private", "announcement"],
    Meta(
        description="public: everybody may read and join; private: only members see it, and the owner adds them; "
        "announcement: like public, but only the owner posts"
    ),
]


class NewGroup(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/groups``. A user is in at most 1,000 groups. The kind of a group never changes."""

    name: DisplayName
    kind: GroupKind
    description: Description = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        check_text("description", self.description, allowed_controls="\n")


class GroupChanges(PatchBody):
    """The body of ``PATCH /v1/groups/{id}``. Omitted members stay unchanged."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if self.description is not UNSET:
            check_text("description", self.description, allowed_controls="\n")


class Group(msgspec.Struct):
    """A group. It has at most 5,000 members; the owner is one of them."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    kind: GroupKind
    description: str
    members: NonNegativeInt
    created: Timestamp


class GroupPage(msgspec.Struct):
    """A page of groups. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    groups: list[Group]
    next: Cursor | None
    prev: Cursor | None


async def create(request: web.Request) -> web.Response:
    """``POST /v1/groups``: create a group; the caller owns it and is its first member."""
    new_group, body = await validation.read_body_as(NewGroup, request)
    key, groups = read_idempotency_key(request, body), request.app[STORE].groups
    created = await groups.create(request[CLAIMS].sub, new_group.name, new_group.kind, new_group.description, key)
    return created_response(created, "/v1/groups/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}``: read one group; only members see a private one."""
    return json_response(await request.app[STORE].groups.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/groups/{id}``: change a group that the caller owns."""
    group_id = query.read_path_id(request)
    changes, body = await validation.read_body_as(GroupChanges, request)
    key, members = read_idempotency_key(request, body), changes.present_members()
    return json_response(await request.app[STORE].groups.update(request[CLAIMS].sub, group_id, members, key))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}``: delete a group that the caller owns, with all memberships."""
    group_id, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].groups.delete(request[CLAIMS].sub, group_id, key)
    return web.Response(status=204)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/members``: list the members of a group, the latest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].groups.list_members)


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/groups/{id}/members/{uid}``: join a group as ``me``, or add a user to the caller's private group."""
    group_id, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].groups.add_member(request[CLAIMS].sub, group_id, member, key))


async def remove_member(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}/members/{uid}``: leave a group as ``me``, or remove a user from the caller's group."""
    group_id, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].groups.remove_member(request[CLAIMS].sub, group_id, member, key))


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/users/me/groups``: list the groups that the caller is in, the latest first."""
    page, uid = query.parsed_query(request, PageQuery).page_request(), request[CLAIMS].sub
    return page_response("groups", *await request.app[STORE].groups.list_joined(uid, uid, page))


def _member_id(request: web.Request) -> str:
    """Return the user id in the path; ``me`` is the caller."""
    return request[CLAIMS].sub if request.match_info["uid"] == ME else query.read_path_id(request, "uid")
