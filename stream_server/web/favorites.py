"""Favorites: what one keeps for oneself."""

from aiohttp import web

from stream_server.web import query
from stream_server.web.answers import encoded
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE


async def keep(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/favorites/{id}``: keep a status; nobody is told."""
    await request.app[STORE].favorites.keep(request[CLAIMS].sub, query.path_id(request), request_key(request))
    return encoded({"favorite": True})


async def drop(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/favorites/{id}``: keep a status no longer, also one that is gone."""
    await request.app[STORE].favorites.drop(request[CLAIMS].sub, query.path_id(request), request_key(request))
    return encoded({"favorite": False})


async def has(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites/{id}``: whether one keeps a status."""
    return encoded({"favorite": await request.app[STORE].favorites.has(request[CLAIMS].sub, query.path_id(request))})
