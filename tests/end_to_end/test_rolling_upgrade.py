"""Servers of two versions on one Redis: each server of the last release is replaced by this version under load.

A third version differs from this one in the text of its Lua library, so both have scripts of their own in one Redis.
"""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.other_version import copy_changed, count_scripts
from tests.end_to_end.random_faults.ledger import KINDS
from tests.end_to_end.random_faults.world import FLAGS, World, add_clients, kill_left, populated
from tests.end_to_end.server import Server
from tests.last_release import code
from tests.redis_process import private_redis
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.timeout(600)]

SEED = 7


def _changed(folder: Path, redis: str, changed: Path) -> Server:
    variables = {"PYTHONPATH": str(changed), "PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": ""}
    return Server(folder, "--redis", redis, *FLAGS, variables=variables, preloaded=False)


def _is_loaded(other: Path) -> bool:
    """Whether a process has compiled the code of the other version."""
    return any((other / "stream_server" / "store" / "__pycache__").glob("store.*"))


async def _goes_on(made: World, count: int) -> None:
    before = made.ledger.count("written")
    enough = before + count
    await eventually(lambda: made.ledger.count("written") > enough, seconds=2 * PATIENCE, what="writes acknowledged")


async def _replace(servers: list[Server], at: int, newer: Server) -> None:
    """End a server as an operator does, and start the new version in its place."""
    await asyncio.to_thread(servers[at].stop)
    servers[at].address = ""
    await asyncio.to_thread(newer.start)
    servers[at] = newer


async def test_a_rolling_upgrade_from_the_last_release_loses_nothing_and_streams_resume(tmp_path: Path) -> None:
    """Each client gets each event once and in order, whatever versions wrote it and served it."""
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(private_redis())
        servers = [code.server(tmp_path / f"old{at}", "--redis", redis.url, *FLAGS) for at in range(2)]
        newer = [Server(tmp_path / f"new{at}", "--redis", redis.url, *FLAGS) for at in range(2)]
        for server in (*servers, *newer):
            stack.callback(kill_left, server)
        for server in servers:
            await asyncio.to_thread(server.start)
            assert code.version_of(server) == code.last_release().version
        made = await stack.enter_async_context(populated(redis, servers, SEED))
        add_clients(made, kinds=",".join(kind for kind in KINDS if kind != "edit"))  # the last release has no edits
        for writer in made.writers:
            writer.edits = False
        await made.begun()
        made.write()
        await _goes_on(made, 60)
        for at in range(2):
            await _replace(servers, at, newer[at])
            await _goes_on(made, 60)
        await made.finish()
        assert made.complaints() == []


async def test_each_version_shows_and_deletes_what_the_other_wrote(tmp_path: Path) -> None:
    """Posts, replies and reposts of one version stand in timelines of the other, and it deletes and repeats them."""
    changed = copy_changed(tmp_path / "changed")
    with (
        private_redis() as redis,
        _changed(tmp_path / "old", redis.url, changed) as old,
        Server(tmp_path / "new", "--redis", redis.url, *FLAGS) as new,
    ):
        assert _is_loaded(changed)
        async with Api(old) as one, Api(new) as other:
            await _exchange(one, other)
            await _exchange(other, one)
        with redis.client() as client:
            assert client.info("memory")["number_of_cached_scripts"] == count_scripts()


async def _exchange(writing: Api, reading: Api) -> None:
    """Write by one server, and read, answer, repost and delete by the other."""
    author, reader = await writing.user(), await writing.user()
    await writing.follow(reader, author)
    post = await writing.post(author, "hello #both of @you")
    answer = await reading.post(reader, "an answer", in_reply_to=post["id"])
    repost = await writing.post(reader, "", origin=post["id"])
    for api in (writing, reading):
        page = await _get(api, reader, "/v1/timelines/home")
        assert [each["id"] for each in page["statuses"]] == [repost["id"], answer["id"], post["id"]]
        shown = await _get(api, reader, f"/v1/statuses/{post['id']}")
        assert (shown["message"], shown["reposts"], shown["login"]) == (post["message"], 1, post["login"])
        thread = await _get(api, reader, f"/v1/statuses/{answer['id']}/conversation")
        assert [each["id"] for each in thread["statuses"]] == [post["id"], answer["id"]]
    await reading.delete(author, post["id"])
    for api in (writing, reading):
        page = await _get(api, reader, "/v1/timelines/home")
        assert post["id"] not in [each["id"] for each in page["statuses"]]
        assert (await _get(api, author, "/v1/users/me"))["posts"] == 0


async def _get(api: Api, uid: str, path: str) -> Any:
    return await api.done("GET", path, token=mint(uid))
