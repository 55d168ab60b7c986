"""A server with two replicas: its pages come from them, and show what another server has just acknowledged."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.redis_process import newest
from tests.stream_server.store.replicas import linked, servers
from tests.stream_server.store.sentinels import watch
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

ROUNDS = 20


async def test_pages_come_from_replicas_and_show_what_another_server_has_acknowledged(tmp_path: Path) -> None:
    """Each user of the loop writes at one server and reads at the other, as behind a balancer."""
    with servers(newest(), 3) as (primary, *near):
        for each in near:
            each.replica_of(primary)
        for each in near:
            await linked(each)
        one = ("--redis", primary.url)
        both = ("--redis-read", " ".join(each.url for each in near))
        with Server(tmp_path / "one", *one) as writing, Server(tmp_path / "two", *one, *both) as reading:
            async with Api(writing) as write, Api(reading) as read:
                ann, bob = await write.user(), await write.user()
                token = mint(bob)
                await write.follow(bob, ann)
                await read.done("GET", "/v1/timelines/home", token=token)  # the first request, from the primary
                await read.until_metric("replicas_usable", lambda usable: usable == len(near))
                for number in range(ROUNDS):
                    status = await write.post(ann, f"status {number}")
                    page = await read.done("GET", "/v1/timelines/home", token=token)
                    assert page["statuses"][0]["id"] == status["id"]
                    await write.done("PUT", f"/v1/users/me/blocks/{bob}", token=mint(ann))
                    hidden = await read.call("GET", f"/v1/statuses/{status['id']}", token=token)
                    assert hidden.status == 404
                    await write.done("DELETE", f"/v1/users/me/blocks/{bob}", token=mint(ann))
                    await write.follow(bob, ann)
                assert await read.metric("replica_reads_total") > ROUNDS
                answered, _ = await read.samples("replica_reads_total")
                for each in near:
                    each.kill()

                async def is_left() -> bool:
                    status = await write.post(ann, "for the primary")
                    page = await read.done("GET", "/v1/timelines/home", token=token)
                    assert page["statuses"][0]["id"] == status["id"]
                    return await read.metric("replicas_usable") == 0

                await eventually(is_left, what="pages from the primary")
                assert "replica 1 of redis_read is not read from: it does not answer" in reading.log
                assert answered > 0


async def _post_and_read(write: Api, read: Api, author: str, posted: list[str]) -> bool:
    """Post at one server, and read the author's page at the other. Return whether both answered, each with 503 if not.

    A page shows all that was acknowledged. An unknown outcome may show too.
    """
    path, token = f"/v1/users/{author}/statuses?count=200", mint(author)
    made = await write.call("POST", "/v1/statuses", token=token, json={"message": f"after {len(posted)}"})
    assert made.status in {201, 503}, made
    if made.status == 201:
        posted.append(made.json["id"])
    page = await read.call("GET", path, token=token)
    assert page.status in {200, 503}, page
    if page.status == 200:
        shown: list[Any] = [status["id"] for status in page.json["statuses"]]
        assert set(posted[-100:]) <= set(shown)
    return made.status == 201 and page.status == 200


@pytest.mark.timeout(600)
async def test_pages_lack_nothing_while_sentinels_promote_one_of_the_replicas(tmp_path: Path) -> None:
    """The other one answers pages again when it follows the new primary. Before, the primary answers, or nobody."""
    with watch(newest()) as watched:
        await watched.settled()
        one = ("--redis", watched.url, "--write-replicas", "1", "--redis-timeout-seconds", "2")
        near = ("--redis-read", " ".join(each.url for each in watched.servers[1:]))
        with Server(tmp_path / "one", *one) as writing, Server(tmp_path / "two", *one, *near) as reading:
            async with Api(writing) as write, Api(reading) as read:
                author, posted = await write.user(), list[str]()
                await read.done("GET", "/v1/users/me", token=mint(author))  # the first request, from the primary
                await read.until_metric("replicas_usable", lambda usable: usable == 2)
                for _ in range(ROUNDS):
                    assert await _post_and_read(write, read, author, posted)
                assert sum(await read.samples("replica_reads_total")) >= ROUNDS
                watched.servers[0].kill()
                failover = asyncio.create_task(watched.failed_over())
                while not failover.done():
                    await _post_and_read(write, read, author, posted)
                await failover

                async def is_back() -> bool:
                    is_answered = await _post_and_read(write, read, author, posted)
                    return is_answered and await read.metric("replicas_usable") == 1

                await eventually(is_back, seconds=2 * PATIENCE, what="pages from the replica that is left")
                before, _ = await read.samples("replica_reads_total")
                for _ in range(ROUNDS):
                    assert await _post_and_read(write, read, author, posted)
                after, _ = await read.samples("replica_reads_total")
                assert after > before
