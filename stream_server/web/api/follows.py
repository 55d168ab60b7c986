"""Who follows whom."""

from aiohttp import web

from stream_server.errors import BadRequest, TooLarge
from stream_server.web.api.follows_shapes import MAX_FOLLOW_BATCH, FollowBatch, FollowQuery
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response, json_response


async def follow(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/following/{id}``: follow a user, or ask to where they are protected; twice is once."""
    list_id, target = query.parsed_query(request, FollowQuery).list or "", query.read_path_id(request)
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].follows.follow(request[CLAIMS].sub, target, key, list_id))


async def unfollow(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/following/{id}``: follow a user, or ask to, no longer; twice is once."""
    list_id, target = query.parsed_query(request, FollowQuery).list or "", query.read_path_id(request)
    key = read_idempotency_key(request)
    return json_response(await request.app[STORE].follows.unfollow(request[CLAIMS].sub, target, key, list_id))


async def follow_many(request: web.Request) -> web.Response:
    """``POST /v1/users/me/following``: follow and unfollow many at once, each with its own outcome."""
    asked, body = await validation.read_body_as(FollowBatch, request)
    wanted = len(asked.follow) + len(asked.unfollow)
    if wanted > MAX_FOLLOW_BATCH:
        raise TooLarge(f"at most {MAX_FOLLOW_BATCH} ids in both lists", code="too_many", param="follow")
    if not wanted:
        raise BadRequest("give ids to follow or unfollow", code="missing_parameter", param="follow")
    both = set(asked.follow) & set(asked.unfollow)
    if both:
        raise BadRequest("an id is in both lists", code="conflicting_parameters", param="unfollow")
    key = read_idempotency_key(request, body)
    results = await request.app[STORE].follows.change_many(request[CLAIMS].sub, asked.follow, asked.unfollow, key)
    return encode_response({"results": [result._asdict() for result in results]})


async def list_followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/followers``: who follows a user, newest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].follows.list_followers)


async def list_following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/following``: whom a user follows, newest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].follows.list_following)
