"""Following users, and requests to follow protected users. Unfollowing also withdraws an open request."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest, TooLarge
from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Id
from stream_server.web.http.idempotency import answer_write, read_idempotency_key, read_keyed_body
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import encode_response, json_response
from stream_server.web.limits.rate_limit import FOLLOWS

MAX_FOLLOW_BATCH = 200


class FollowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``PUT`` and ``DELETE /v1/users/me/following/{id}``.

    With ``list``, a follow also adds the user to this list of the caller, and an unfollow also removes the user.
    """

    list: Annotated[Id, Meta(description="a list that the caller owns")] | None = None


class FollowBatch(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/users/me/following``: ids of users to follow and to unfollow, at most 200 together."""

    follow: list[Id] = []
    unfollow: list[Id] = []


class FollowState(msgspec.Struct):
    """Whether the caller follows the user. ``requested``: a protected user has not answered the caller's request."""

    following: bool
    requested: bool


class FollowResult(msgspec.Struct):
    """The outcome of following or unfollowing the user ``id``."""

    id: Id
    outcome: Literal[
        "followed", "requested", "unfollowed", "not_found", "oneself", "blocked", "too_many", "unavailable"
    ]


class FollowResults(msgspec.Struct):
    """One result for each id to follow or unfollow, in the order of the request."""

    results: list[FollowResult]


class FollowRequestState(msgspec.Struct):
    """After the answer to a follow request: whether its sender follows the caller, and whether it is open."""

    followed_by: bool
    requested_by: bool


async def follow(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/following/{id}``: follow a user or ask a protected one to approve; repeating has no effect."""
    list_id, target = query.parsed_query(request, FollowQuery).list or "", query.read_path_id(request)
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].follows.follow(request[CLAIMS].sub, target, key, list_id))


async def unfollow(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/following/{id}``: unfollow a user or withdraw a follow request; repeating has no effect."""
    list_id, target = query.parsed_query(request, FollowQuery).list or "", query.read_path_id(request)
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].follows.unfollow(request[CLAIMS].sub, target, key, list_id))


async def follow_many(request: web.Request) -> web.Response:
    """``POST /v1/users/me/following``: follow and unfollow many users; each id has its own outcome."""
    batch, key = await read_keyed_body(FollowBatch, request)
    _check_batch(batch)
    if batch.follow:
        await request.app[LIMITS].use(request, FOLLOWS, len(batch.follow))
    results = await request.app[STORE].follows.change_many(request[CLAIMS].sub, batch.follow, batch.unfollow, key)
    return encode_response({"results": [result._asdict() for result in results]})


def _check_batch(batch: FollowBatch) -> None:
    """Raise TooLarge for over 200 ids. Raise BadRequest for no id, or for an id in both ``follow`` and ``unfollow``."""
    count = len(batch.follow) + len(batch.unfollow)
    if count > MAX_FOLLOW_BATCH:
        raise TooLarge(f"at most {MAX_FOLLOW_BATCH} ids in both lists", code="too_many", param="follow")
    if not count:
        raise BadRequest("give ids to follow or unfollow", code="missing_parameter", param="follow")
    if set(batch.follow) & set(batch.unfollow):
        raise BadRequest("an id is in both lists", code="conflicting_parameters", param="unfollow")


async def list_followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/followers``: list a user's followers, each with the time of the follow, newest first."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].follows.list_followers)


async def list_following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/following``: list whom a user follows, each with the time of the follow, newest first."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].follows.list_following)


async def list_received_requests(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests``: list the users who request to follow the caller, newest first."""
    return await paging.page_of_caller(request, "users", request.app[STORE].follow_requests.list_received)


async def list_sent_requests(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests/sent``: list the users whom the caller requests to follow, newest first."""
    return await paging.page_of_caller(request, "users", request.app[STORE].follow_requests.list_sent)


async def approve_request(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/requests/{id}``: approve a request to follow the caller; 404 if there is no such request."""
    return await answer_write(request, request.app[STORE].follow_requests.approve, followed_by=True, requested_by=False)


async def refuse_request(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/requests/{id}``: refuse a request to follow the caller; 404 if there is no such request."""
    return await answer_write(request, request.app[STORE].follow_requests.refuse, followed_by=False, requested_by=False)
