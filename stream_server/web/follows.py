"""Who follows whom."""

from aiohttp import web

from stream_server.errors import BadRequest, TooLarge
from stream_server.web import query, schema
from stream_server.web.answers import encoded, json_answer, page
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE


async def follow(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/following/{id}``: done twice is done once."""
    target = query.path_id(request)
    key = request_key(request)
    return json_answer(await request.app[STORE].follows.follow(request[CLAIMS].sub, target, key))


async def unfollow(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/following/{id}``: done twice is done once."""
    target = query.path_id(request)
    key = request_key(request)
    return json_answer(await request.app[STORE].follows.unfollow(request[CLAIMS].sub, target, key))


async def batch(request: web.Request) -> web.Response:
    """``POST /v1/users/me/following``: many at once, each with its own outcome."""
    asked, body = await schema.read_body_as(schema.FollowBatch, request)
    wanted = len(asked.follow) + len(asked.unfollow)
    if wanted > schema.MAX_BATCH:
        raise TooLarge(f"at most {schema.MAX_BATCH} ids in both lists", code="too_many", param="follow")
    if not wanted:
        raise BadRequest("give ids to follow or unfollow", code="missing_parameter", param="follow")
    both = set(asked.follow) & set(asked.unfollow)
    if both:
        raise BadRequest("an id is in both lists", code="conflicting_parameters", param="unfollow")
    key = request_key(request, body)
    results = await request.app[STORE].follows.many(request[CLAIMS].sub, asked.follow, asked.unfollow, key)
    return encoded({"results": [result._asdict() for result in results]})


async def followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/followers``: newest first, each with ``since``."""
    piece = query.read_piece(request)
    return page("users", *await request.app[STORE].follows.followers(query.path_id(request), *piece))


async def following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/following``: newest first, each with ``since``."""
    piece = query.read_piece(request)
    return page("users", *await request.app[STORE].follows.followed(query.path_id(request), *piece))
