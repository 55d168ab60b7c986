"""The relationship of two users, and the users they have in common."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.responses import encode_response, page_response

PrivateFlag = Annotated[bool, Meta(description="present only if the caller is one of the two users")]


class RelationshipState(msgspec.Struct):
    """The relations of the user ``{id}`` to ``{other}``: ``following`` means that ``{id}`` follows ``{other}``.

    If the caller is one of them, ``blocking`` and ``muting`` say whether the caller blocks or mutes the other user.
    """

    following: bool
    followed_by: bool
    mutual: bool
    requested: PrivateFlag | UnsetType = UNSET
    requested_by: PrivateFlag | UnsetType = UNSET
    blocking: PrivateFlag | UnsetType = UNSET
    muting: PrivateFlag | UnsetType = UNSET


async def get_relationship(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/relationship/{other}``: tell whether each of two users follows the other.

    If the caller is one of the two users, the answer also has their follow requests, and the caller's block and mute.
    """
    uid, other = _two_users(request)
    relationship = await request.app[STORE].relations.get_relationship(request[CLAIMS].sub, uid, other)
    known = {name: value for name, value in relationship._asdict().items() if value is not None}
    return encode_response({**known, "mutual": relationship.is_mutual})


async def list_common_following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-following/{other}``: list the users whom both ``{id}`` and ``{other}`` follow.

    The order is newest first, by the time at which ``{id}`` began to follow each of them.
    """
    page, users = paging.read_page_request(request), _two_users(request)
    list_common = request.app[STORE].relations.list_common_following
    return page_response("users", *await list_common(request[CLAIMS].sub, *users, page))


async def list_common_followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-followers/{other}``: list the users who follow both ``{id}`` and ``{other}``.

    The order is newest first, by the time at which each of them began to follow ``{id}``.
    """
    page, users = paging.read_page_request(request), _two_users(request)
    list_common = request.app[STORE].relations.list_common_followers
    return page_response("users", *await list_common(request[CLAIMS].sub, *users, page))


def _two_users(request: web.Request) -> tuple[str, str]:
    return query.read_path_id(request), query.read_path_id(request, "other")
