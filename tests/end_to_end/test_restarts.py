"""The end of a server, with and without a goodbye, and what its clients find when it is back."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

OFTEN = ("--heartbeat-seconds", "0.2")


@pytest.mark.extended
async def test_a_server_ends_with_its_embedded_redis_and_loses_nothing(own_folder: Path) -> None:
    """If its Redis dies, the server sends goodbyes and ends with code 1, so that a service manager restarts it.

    No data is lost.
    """
    server = Server(own_folder, *OFTEN).start()
    async with Api(server) as api, await api.stream({"firehose": "true"}) as stream:
        post = await api.post(api.admin, "acknowledged")
        await stream.until(lambda c: c.events)
        os.kill(int((server.data / "redis.lock").read_text().partition(" ")[0]), signal.SIGKILL)
        assert server.process is not None
        assert await asyncio.to_thread(server.process.wait, 20) == 1
        await stream.until_end()
        assert [goodbye["code"] for goodbye in stream.of("goodbye")] == ["shutdown"]
    (ended,) = (line for line in map(json.loads, server.log.splitlines()) if "ended by itself" in line["message"])
    assert ended["worker"] == 1
    assert re.search(r"code -9:\n.*\n.*(Ready to accept|rewrite)", ended["message"], re.DOTALL)
    async with (
        Server(own_folder, *OFTEN) as again,
        Api(again) as api,
        await api.stream({"firehose": "true", "since": "0-0"}) as stream,
    ):
        await stream.until(lambda c: c.events)
        assert stream.received == [("post", post["id"])]


async def test_a_stream_that_was_open_at_kill_9_is_cut_and_misses_nothing_later(own_folder: Path) -> None:
    """Users post while the server is killed. Each acknowledged post arrives before the kill or after the return."""
    server = Server(own_folder, *OFTEN)
    acknowledged: list[str] = []
    async with server, Api(server) as api:
        uid = await api.user()
        consumer = await api.stream({"follow": uid}, framing="sse")

        async def write() -> None:
            while True:
                acknowledged.append((await api.post(uid, f"number {len(acknowledged)}"))["id"])

        writing = asyncio.create_task(write())
        await consumer.until(lambda c: len(c.events) > 40)
        server.kill()
        await asyncio.wait({writing})
        assert writing.exception() is not None, "the writer did not notice the kill"
        await consumer.until_end()
        assert not consumer.of("goodbye")
        seen, cursor = consumer.received, consumer.cursor
        await consumer.close()
    async with server, Api(server) as api, await api.stream({"follow": uid}, uid=uid, last_event_id=cursor) as back:
        await back.reached(await api.head())
        told = [name for kind, name in seen + back.received]
    # The kill may have lost the answer of one write, so the log may have one more post.
    assert told[: len(acknowledged)] == acknowledged
    assert len(told) - len(acknowledged) <= 1
    assert len(set(told)) == len(told)


async def test_a_crowd_that_returns_to_a_restarted_server_reads_its_ring(own_folder: Path) -> None:
    """Each client has its own filter and its own cursor. It receives what its filter matches, once and in order.

    The new process has filled its ring from the log, so it serves them like the process before it.
    """
    server = Server(own_folder, *OFTEN)
    async with server, Api(server) as api:
        uids = [await api.user() for _ in range(5)]
        posts = [(n % 5, (await api.post(uids[n % 5], f"word{n % 7} {n}"))) for n in range(100)]
        cursors = await cursors_of(api, posts)
        server.kill()
    async with server, Api(server) as api:
        posts += [(n % 5, (await api.post(uids[n % 5], f"word{n % 7} {n}"))) for n in range(100, 120)]
        head = await api.head()
        assert await api.metric("ring_bytes") > 100 * 512
        returned = [
            (number, params, await api.stream(params | {"since": cursor}))
            for number, cursor in enumerate(cursors[::5])
            for params in (
                {"firehose": "true"}, {"follow": f"{uids[number % 5]},1"},
                {"track": f"word{number % 7},none{number}"},
            )
        ]  # fmt: skip
        for number, params, stream in returned:
            await stream.reached(head)
            due = [
                ("post", post["id"])
                for n, (author, post) in enumerate(posts)
                if n > 5 * number
                and ("follow" not in params or author == number % 5)
                and ("track" not in params or n % 7 == number % 7)
            ]
            assert stream.received == due
            assert not stream.of("gap")
            await stream.close()
    assert "Traceback" not in server.log


async def cursors_of(api: Api, posts: list[tuple[int, dict[str, str]]]) -> list[str]:
    """Return the cursors of the posts."""
    async with await api.stream({"firehose": "true", "since": "0-0"}) as stream:
        await stream.until(lambda c: len(c.events) == len(posts))
        return [event["cursor"] for event in stream.events]


async def test_a_cursor_is_valid_on_every_worker(own_folder: Path) -> None:
    """Events that either of two workers writes reach the streams of both, and cursors of one work on the other."""
    async with Server(own_folder, *OFTEN, "--workers", "2") as server, Api(server) as api:
        uid = await api.user()
        start = await api.head()
        streams = [await api.stream({"follow": uid}) for _ in range(16)]
        posted = [("post", (await api.post(uid, f"number {n}"))["id"]) for n in range(20)]
        for stream in streams:
            await stream.until(lambda c: len(c.events) >= len(posted))
            assert stream.received == posted
            await stream.close()
        head = streams[0].events[-1]["cursor"]  # a worker that is asked may not have heard the last post yet
        assert len({tuple(e["cursor"] for e in s.events) for s in streams}) == 1
        middle = streams[0].events[9]["cursor"]
        for since, rest in ((start, posted), (middle, posted[10:])):
            for _ in range(16):
                # Each request has a new connection, so both workers get some.
                async with Api(server) as fresh, await fresh.stream({"follow": uid, "since": since}) as back:
                    await back.reached(head)
                    assert back.received[: len(rest)] == rest
    assert "Traceback" not in server.log
