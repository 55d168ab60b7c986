"""Favorites: what one keeps for oneself."""

from aiohttp import web

from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def add_favorite(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/favorites/{id}``: keep a status; nobody is told."""
    await request.app[STORE].favorites.add(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return encode_response({"favorite": True})


async def remove_favorite(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/favorites/{id}``: keep a status no longer, also one that is gone."""
    await request.app[STORE].favorites.remove(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return encode_response({"favorite": False})


async def get_favorite(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites/{id}``: whether one keeps a status."""
    return encode_response(
        {"favorite": await request.app[STORE].favorites.is_favorite(request[CLAIMS].sub, query.read_path_id(request))}
    )
