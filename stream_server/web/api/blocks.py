"""Blocks and mutes. A block hides two users from each other. A mute hides a user, who does not learn of the mute."""

import msgspec
from aiohttp import web

from stream_server.web.http import paging
from stream_server.web.http.app_keys import STORE
from stream_server.web.http.idempotency import answer_write


class BlockState(msgspec.Struct):
    """The answer to a block or unblock: whether the caller blocks the user now."""

    blocking: bool


class MuteState(msgspec.Struct):
    """The answer to a mute or unmute: whether the caller mutes the user now."""

    muting: bool


async def block(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/blocks/{id}``: block a user; the two no longer see or follow each other."""
    return await answer_write(request, request.app[STORE].blocks.block, blocking=True)


async def unblock(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/blocks/{id}``: end a block; the follows that it ended do not come back."""
    return await answer_write(request, request.app[STORE].blocks.unblock, blocking=False)


async def list_blocks(request: web.Request) -> web.Response:
    """``GET /v1/users/me/blocks``: list the users whom the caller blocks, each with the time of block, newest first."""
    return await paging.page_of_caller(request, "users", request.app[STORE].blocks.list_blocked)


async def mute(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/mutes/{id}``: mute a user, who does not learn of it; repeating has no effect."""
    return await answer_write(request, request.app[STORE].mutes.mute, muting=True)


async def unmute(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/mutes/{id}``: end a mute."""
    return await answer_write(request, request.app[STORE].mutes.unmute, muting=False)


async def list_mutes(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mutes``: list the users whom the caller mutes, each with the time of mute, newest first."""
    return await paging.page_of_caller(request, "users", request.app[STORE].mutes.list_muted)
