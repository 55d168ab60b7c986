"""Likes, which other users see, and favorites, which only their user sees."""

import msgspec
from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import NonNegativeInt
from stream_server.web.http.idempotency import answer_write, write_by_path_id
from stream_server.web.http.responses import encode_response


class LikeState(msgspec.Struct):
    """The answer of ``GET /v1/users/me/likes/{id}``: whether the caller likes the status."""

    liked: bool


class LikeCount(msgspec.Struct):
    """The answer to a like or unlike: whether the caller likes the status now, and how many users like it."""

    liked: bool
    likes: NonNegativeInt


class FavoriteState(msgspec.Struct):
    """The answer of the routes of favorites: whether the status is a favorite of the caller."""

    favorite: bool


async def like(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/likes/{id}``: like a status; repeating has no effect."""
    return encode_response(LikeCount(*await write_by_path_id(request, request.app[STORE].likes.like)))


async def unlike(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/likes/{id}``: remove the caller's like of a status; repeating has no effect."""
    return encode_response(LikeCount(*await write_by_path_id(request, request.app[STORE].likes.unlike)))


async def get_like(request: web.Request) -> web.Response:
    """``GET /v1/users/me/likes/{id}``: tell whether the caller likes a status."""
    uid = request[CLAIMS].sub
    return encode_response({"liked": await request.app[STORE].likes.has_liked(uid, query.read_path_id(request), uid)})


async def list_likers(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/likes``: list the users who like a status with the time of the like, newest first."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].likes.list_likers)


async def add_favorite(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/favorites/{id}``: add a status to the caller's favorites; other users do not see it."""
    return await answer_write(request, request.app[STORE].favorites.add, favorite=True)


async def remove_favorite(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/favorites/{id}``: remove a status from the caller's favorites, even a deleted status."""
    return await answer_write(request, request.app[STORE].favorites.remove, favorite=False)


async def get_favorite(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites/{id}``: tell whether a status is a favorite of the caller."""
    is_favorite = await request.app[STORE].favorites.is_favorite(request[CLAIMS].sub, query.read_path_id(request))
    return encode_response({"favorite": is_favorite})
