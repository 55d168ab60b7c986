"""Blocks and mutes. A block hides two users from each other; a mute hides a user who does not learn of it."""

import msgspec
from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


class BlockState(msgspec.Struct):
    """Whether the caller blocks the user now."""

    blocking: bool


class MuteState(msgspec.Struct):
    """Whether the caller mutes the user now."""

    muting: bool


async def block(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/blocks/{id}``: block a user; the two no longer see or follow each other."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].blocks.block(request[CLAIMS].sub, target, key)
    return encode_response({"blocking": True})


async def unblock(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/blocks/{id}``: end a block; the follows that it ended do not come back."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].blocks.unblock(request[CLAIMS].sub, target, key)
    return encode_response({"blocking": False})


async def list_blocks(request: web.Request) -> web.Response:
    """``GET /v1/users/me/blocks``: list the users whom the caller blocks, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].blocks.list_blocked)


async def mute(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/mutes/{id}``: mute a user, who does not learn of it; repeating has no effect."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].mutes.mute(request[CLAIMS].sub, target, key)
    return encode_response({"muting": True})


async def unmute(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/mutes/{id}``: end a mute."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].mutes.unmute(request[CLAIMS].sub, target, key)
    return encode_response({"muting": False})


async def list_mutes(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mutes``: list the users whom the caller mutes, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].mutes.list_muted)
