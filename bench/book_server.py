"""The yardstick of posts and home pages: the program that a reader of chapter 8 of *Redis in Action* would write.

    python -m bench.book_server --socket REDIS_SOCKET

It has the book's structures: a hash for each user and status, sorted sets for profiles, followers and home timelines.
A post is two pipelines that create and publish the status, its place in the profile, and a pipeline for the homes of
the followers. A page is the newest ids of a sorted set and a pipeline that reads their hashes. Tokens are JSON Web
Tokens, signed with the secret of the environment. The event loop is that of Python.
There is no log, order, retry, mention, notification, block or limit.
"""

import argparse
import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import jwt
from aiohttp import web
from redis.asyncio import Redis

from bench.serving import serve_forever

HOME_SIZE = 1000
"""Statuses of a home timeline."""

POSTS_PER_PASS = 1000
"""Followers whose homes one pass changes. The book leaves the others to a task queue."""

PAGE = 30
"""Statuses of a page."""

REDIS: "web.AppKey[Redis]" = web.AppKey("redis")
SECRET: web.AppKey[str] = web.AppKey("secret")


async def create_user(redis: Any, uid: str, login: str) -> None:
    """Create a user."""
    counters = {"followers": 0, "following": 0, "posts": 0}
    await redis.hset(f"book:user:{uid}", mapping={"id": uid, "login": login, "signup": time.time(), **counters})


async def follow_user(redis: Any, uid: str, others: Iterable[str]) -> None:
    """Let a user follow others."""
    now = time.time()
    async with redis.pipeline(transaction=True) as commands:
        for other in others:
            commands.zadd(f"book:following:{uid}", {other: now})
            commands.zadd(f"book:followers:{other}", {uid: now})
            commands.hincrby(f"book:user:{uid}", "following", 1)
            commands.hincrby(f"book:user:{other}", "followers", 1)
        await commands.execute()


async def create_status(redis: Any, uid: str, message: str) -> str | None:
    """Write the hash of a status, publish it, and return its id. Return None if the user does not exist."""
    async with redis.pipeline(transaction=True) as commands:
        commands.hget(f"book:user:{uid}", "login")
        commands.incr("book:status:id")
        login, number = await commands.execute()
    if login is None:
        return None
    status = {"id": str(number), "uid": uid, "login": login.decode(), "message": message, "posted": time.time()}
    async with redis.pipeline(transaction=True) as commands:
        commands.hset(f"book:status:{number}", mapping=status)
        commands.hincrby(f"book:user:{uid}", "posts", 1)
        commands.publish("book:statuses", json.dumps(status))
        await commands.execute()
    return str(number)


async def post_status(redis: Any, uid: str, message: str) -> dict[str, Any] | None:
    """Create a status and add it to the profile and the followers' home timelines. Return id and time, or None."""
    status_id = await create_status(redis, uid, message)
    posted = float(await redis.hget(f"book:status:{status_id}", "posted") or 0)
    if status_id is None or not posted:
        return None
    await redis.zadd(f"book:profile:{uid}", {status_id: posted})
    followers = await redis.zrangebyscore(f"book:followers:{uid}", 0, "inf", start=0, num=POSTS_PER_PASS)
    async with redis.pipeline(transaction=False) as commands:
        for follower in followers:
            commands.zadd(f"book:home:{follower.decode()}", {status_id: posted})
            commands.zremrangebyrank(f"book:home:{follower.decode()}", 0, -HOME_SIZE - 1)
        await commands.execute()
    return {"id": status_id, "posted": posted}


async def read_page(redis: Any, timeline: str) -> list[dict[str, str]]:
    """Return the newest statuses of a timeline, without those that were deleted."""
    ids = await redis.zrevrange(timeline, 0, PAGE - 1)
    async with redis.pipeline(transaction=True) as commands:
        for number in ids:
            commands.hgetall(f"book:status:{number.decode()}")
        rows = await commands.execute()
    return [{name.decode(): value.decode() for name, value in row.items()} for row in rows if row]


def user_of(request: web.Request) -> str:
    """Return the id of the user whose token the request has. Raises HTTPUnauthorized."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        claims = jwt.decode(token, request.app[SECRET], algorithms=["HS256"], audience="stream-server")
    except jwt.InvalidTokenError:
        raise web.HTTPUnauthorized from None
    return str(claims["sub"])


async def post(request: web.Request) -> web.Response:
    """Create a status and tell the followers."""
    uid, body = user_of(request), await request.json()
    status = await post_status(request.app[REDIS], uid, str(body["message"]))
    if status is None:
        raise web.HTTPForbidden
    return web.json_response(status, status=201)


async def home(request: web.Request) -> web.Response:
    """Return the user's home page."""
    return web.json_response(await read_page(request.app[REDIS], f"book:home:{user_of(request)}"))


async def serve(redis_socket: str, secret: str) -> None:
    """Serve until the process ends."""

    async def connect(app: web.Application) -> AsyncIterator[None]:
        async with Redis(unix_socket_path=redis_socket) as app[REDIS]:
            yield

    app = web.Application()
    app[SECRET] = secret
    app.cleanup_ctx.append(connect)
    app.router.add_post("/statuses", post)
    app.router.add_get("/home", home)
    await serve_forever(app)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True, help="Redis' unix socket")
    asyncio.run(serve(parser.parse_args().socket, os.environ["STREAM_SERVER_JWT_SECRET"]))
