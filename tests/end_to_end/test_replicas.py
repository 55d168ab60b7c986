"""A server with two replicas: its pages come from them, and show what another server has just acknowledged."""

from pathlib import Path

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.redis_process import newest
from tests.stream_server.store.replicas import linked, servers
from tests.waiting import eventually

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
