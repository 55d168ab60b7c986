"""Two servers or workers on one Redis: one is killed, the other continues, and their counters agree with the log."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from stream_server.store import keys
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer, Message
from tests.end_to_end.faults.author import Author, in_log_order
from tests.end_to_end.faults.site import STREAMS, Site, all_until, site
from tests.processes import alive
from tests.waiting import eventually

pytestmark = pytest.mark.extended

FRAMINGS = ("sse", "ndjson")


class ReturningClient:
    """A client that returns with its cursor, and all that it received in its visits."""

    def __init__(self, stream: Consumer, follow: str, framing: str) -> None:
        self.stream = stream
        self.before: list[Message] = []
        self.visits = 1
        self._follow = follow
        self._framing = framing

    @property
    def received(self) -> list[tuple[str, str]]:
        return [("post", event["status"]["id"]) for event in self.before] + self.stream.received

    async def return_to(self, api: Api) -> None:
        """Wait for the end of the stream. Continue at this server, by the SSE header or the parameter."""
        await self.stream.until_end()
        self.before += self.stream.events
        cursor = self.stream.cursor
        await self.stream.close()
        by_header = self._framing == "sse"
        params = {"follow": self._follow} | ({} if by_header else {"since": cursor})
        self.stream = await api.stream(params, framing=self._framing, last_event_id=cursor if by_header else None)
        self.visits += 1


async def returning_clients(api: Api, authors: Sequence[Author], count: int = STREAMS) -> list[ReturningClient]:
    follow = ",".join(author.uid for author in authors)
    framings = [FRAMINGS[number % 2] for number in range(count)]
    return [ReturningClient(await api.stream({"follow": follow}, framing=one), follow, one) for one in framings]


async def reached(broken: Site, clients: Sequence[ReturningClient], authors: Sequence[Author]) -> None:
    """Check that each client received all acknowledged posts once and in order, from any of the servers."""
    head = broken.head()
    await all_until([one.stream for one in clients], lambda s: any(m["cursor"] == head for m in s.messages))
    for client in clients:
        assert client.received == in_log_order(authors)
        assert not client.stream.of("gap")
        await client.stream.close()


async def test_a_killed_worker_costs_its_clients_only_a_reconnect(tmp_path: Path) -> None:
    """One of two workers gets SIGKILL. Only its streams end, and all of them resume at the same address."""
    async with site(tmp_path, "two workers", direct=True) as broken:
        (api,) = broken.apis
        authors = [Author(await api.user(), api) for _ in range(2)]
        clients = await returning_clients(api, authors, count=12)
        async with authors[0], authors[1]:
            await authors[0].has_posted(10)
            victim = broken.processes[0]
            os.kill(victim, signal.SIGKILL)
            await eventually(lambda: not alive(victim), what="the end of the worker")
            await eventually(lambda: any(one.stream.ended for one in clients), what="streams that end")
            await authors[0].has_posted(10)
            ended = [one for one in clients if one.stream.ended]
            await asyncio.gather(*(client.return_to(api) for client in ended))
            await eventually(lambda: len(broken.processes) == 2, what="a new worker")
            await authors[0].has_posted(10)
        assert f"(pid {victim}) ended with code -9" in broken.servers[0].log
        assert 0 < len(ended) < len(clients)
        await reached(broken, clients, authors)


@pytest.mark.parametrize("fault", ["none", pytest.param("links cut", marks=pytest.mark.nightly), "links silent"])
async def test_counters_of_all_servers_agree_with_the_log(tmp_path: Path, fault: str) -> None:
    """On each server, the counter of entries equals the log, and that of deliveries what its clients received."""
    async with site(tmp_path, "two servers") as broken:
        authors = [Author(await broken.apis[0].user(), *broken.apis) for _ in range(2)]
        streams = [await broken.apis[n % 2].stream({"follow": authors[n // 2].uid}) for n in range(4)]
        for _ in range(3):
            async with authors[0], authors[1]:
                await authors[0].has_posted(10)
                if fault == "links cut":
                    await broken.proxy.cut()
                elif fault == "links silent":
                    broken.proxy.swallow(of=b"SUBSCRIBE")
                await authors[1].has_posted(10)
        head = broken.head()
        await all_until(streams, lambda s: any(m["cursor"] == head for m in s.messages))
        with broken.redis.client() as client:
            assert client.xlen(keys.LOG) == int(head.rpartition(".")[2])
        for number, api in enumerate(broken.apis):
            assert await api.metric("events_published_total") == client.xlen(keys.LOG)
            received = sum(len(stream.received) for stream in streams[number::2])
            assert await api.metric("events_delivered_total") == received > 0
            repaired = await api.metric("events_recovered_total"), await api.metric("redis_reconnects_total")
            assert (min(repaired) > 0) is (fault != "none")
        for number, stream in enumerate(streams):
            assert stream.received == in_log_order([authors[number // 2]])
            await stream.close()


async def test_the_parts_of_a_killed_server_move_after_its_leases(tmp_path: Path) -> None:
    """It cannot say that its stream has ended. The worker of the other server is told to come for all parts."""
    async with site(tmp_path, "two servers", direct=True) as broken:
        dying, other = broken.apis
        uid = await other.user()
        authors = [await other.user() for _ in range(6)]
        body = {"parameters": {"follow": authors}, "parts": 4}
        await other.done("PUT", "/v1/subscriptions/work", token=mint(uid), json=body)

        async def holders() -> list[str | None]:
            kept = await other.done("GET", "/v1/subscriptions/work", token=mint(uid))
            return [part["worker"] for part in kept["parts"]]

        lost = await dying.stream({"subscription": "work", "worker": "a"}, uid=uid)
        first = await other.stream({"subscription": "work", "worker": "b"}, uid=uid)
        await lost.until_end()
        lost = await dying.stream({"subscription": "work", "worker": "a"}, uid=uid)
        assert sorted(map(str, await holders())) == ["a", "a", "b", "b"]
        ids = [str((await other.post(author, "hello"))["id"]) for author in authors]
        await eventually(lambda: len(first.events) + len(lost.events) == len(ids))
        broken.servers[0].kill()
        await lost.until_end()
        await first.until_end()
        assert first.messages[-1]["code"] == "rebalanced"
        async with await other.stream({"subscription": "work", "worker": "b"}, uid=uid) as last:
            await last.until(lambda c: len(c.events) == len(ids))
            assert [event["status"]["id"] for event in last.events] == ids
            assert await holders() == ["b"] * 4
        await lost.close()
        await first.close()
