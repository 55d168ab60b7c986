"""Groups of users, and their members. A status posted in a group has the id of the group as ``group``."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body, Description, DisplayName, Id, NonNegativeInt, PatchBody, Timestamp
from stream_server.web.http.idempotency import answer_write, read_idempotency_key, read_keyed_body
from stream_server.web.http.responses import created_response, json_response, page_response

_KINDS = (
    "public: everybody may read and join; private: only members see it, and the owner adds them; "
    "announcement: like public, but only the owner posts"
)
GroupKind = Annotated[Literal["public", "private", "announcement"], Meta(description=_KINDS)]


class NewGroup(Body):
    """The body of ``POST /v1/groups``. The ``kind`` cannot change later. A user can be in at most 1,000 groups."""

    name: DisplayName
    kind: GroupKind
    description: Description = ""


class GroupChanges(PatchBody):
    """The body of ``PATCH /v1/groups/{id}``: a new ``name`` or ``description``, or both."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class Group(msgspec.Struct):
    """A group of users who post among themselves. It has at most 5,000 members, including its owner."""

    id: Id
    uid: Annotated[Id, Meta(description="the owner")]
    name: str
    kind: GroupKind
    description: str
    members: NonNegativeInt
    created: Timestamp


class GroupPage(paging.PageAnswer):
    """A page of groups."""

    groups: list[Group]


async def create(request: web.Request) -> web.Response:
    """``POST /v1/groups``: create a group; the caller owns it and is its first member."""
    group, key = await read_keyed_body(NewGroup, request)
    create_group = request.app[STORE].groups.create
    created = await create_group(request[CLAIMS].sub, group.name, group.kind, group.description, key)
    return created_response(created, "/v1/groups/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}``: read one group; only its members see a private group."""
    return json_response(await request.app[STORE].groups.get(request[CLAIMS].sub, query.read_path_id(request)))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/groups/{id}``: change the name or description of a group that the caller owns."""
    group_id = query.read_path_id(request)
    changes, key = await read_keyed_body(GroupChanges, request)
    members = changes.present_members()
    return json_response(await request.app[STORE].groups.update(request[CLAIMS].sub, group_id, members, key))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}``: delete a group that the caller owns, with all memberships."""
    return await answer_write(request, request.app[STORE].groups.delete)


async def list_members(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/members``: list the members of a group, last joined first, with the time of joining."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].groups.list_members)


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/groups/{id}/members/{uid}``: join (uid ``me``), or add a user to the caller's private group.

    A user who does not follow the caller is only invited (202), and then joins with ``me``.
    """
    group_id, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    add_member = request.app[STORE].groups.add_member
    group, is_invited = await add_member(request[CLAIMS].sub, group_id, member, key)
    return json_response(group, status=202 if is_invited else 200)


async def list_invitations(request: web.Request) -> web.Response:
    """``GET /v1/users/me/invitations``: list the groups to which the caller is invited, last invited first."""
    return await paging.page_of_caller(request, "groups", request.app[STORE].groups.list_invitations)


async def remove_member(request: web.Request) -> web.Response:
    """``DELETE /v1/groups/{id}/members/{uid}``: leave a group (uid ``me``) or remove a user from the caller's group."""
    group_id, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].groups.remove_member(request[CLAIMS].sub, group_id, member, key))


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/users/me/groups``: list the groups of which the caller is a member, last joined first."""
    page, uid = paging.read_page_request(request), request[CLAIMS].sub
    return page_response("groups", *await request.app[STORE].groups.list_joined(uid, uid, page))


def _member_id(request: web.Request) -> str:
    """Return the member's user id from the path, in which ``me`` stands for the caller."""
    return request[CLAIMS].sub if request.match_info["uid"] == "me" else query.read_path_id(request, "uid")
