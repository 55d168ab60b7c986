"""The relationship of two users, and the users they have in common."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import encode_response, page_response

PrivateFlag = Annotated[bool, Meta(description="present only if the caller is one of the two users")]


class RelationshipState(msgspec.Struct):
    """The relationship of ``{id}`` to ``{other}``. ``blocking`` and ``muting`` say what the caller does."""

    following: bool
    followed_by: bool
    mutual: bool
    requested: PrivateFlag | UnsetType = UNSET
    requested_by: PrivateFlag | UnsetType = UNSET
    blocking: PrivateFlag | UnsetType = UNSET
    muting: PrivateFlag | UnsetType = UNSET


async def get_relationship(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/relationship/{other}``: tell who of two users follows the other.

    If the caller is one of the two, the answer also has requests, blocks and mutes.
    """
    uid, other = query.read_path_id(request), query.read_path_id(request, "other")
    relationship = await request.app[STORE].relations.get_relationship(request[CLAIMS].sub, uid, other)
    known = {name: value for name, value in relationship._asdict().items() if value is not None}
    return encode_response({**known, "mutual": relationship.is_mutual})


async def list_common_following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-following/{other}``: list the users that both follow.

    The order is newest first, by the time at which ``{id}`` began to follow.
    """
    page, uid, other = query.parsed_query(request, PageQuery).page_request(), *_two_users(request)
    relations = request.app[STORE].relations
    return page_response("users", *await relations.list_common_following(request[CLAIMS].sub, uid, other, page))


async def list_common_followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-followers/{other}``: list the users who follow both.

    The order is newest first, by the time at which they began to follow ``{id}``.
    """
    page, uid, other = query.parsed_query(request, PageQuery).page_request(), *_two_users(request)
    relations = request.app[STORE].relations
    return page_response("users", *await relations.list_common_followers(request[CLAIMS].sub, uid, other, page))


def _two_users(request: web.Request) -> tuple[str, str]:
    """Return the ids in the path: ``{id}`` and ``{other}``."""
    return query.read_path_id(request), query.read_path_id(request, "other")
