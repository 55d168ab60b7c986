"""This server, and a plain aiohttp server with a queue for each client."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import ClassVar
from urllib.parse import quote

from bench.lineup import track_of
from bench.peers.peer import Live, Peer
from bench.peers.programs import said
from bench.peers.works import Part, Work, channel_of
from bench.poster import steadily
from bench.process import end, first_core, pin, wait_for_line
from bench.site import ROOT, Site


class _FedByRedis(Peer):
    """A server that gets the events from the Redis of the writer, which accepts the posts."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def feed(self, live: Live, work: Work, done: asyncio.Event) -> None:  # noqa: ARG002 - the writer gets posts
        await steadily(self.site, work.rate, done)


class StreamServer(_FedByRedis):
    """Our server, with one worker process."""

    name = "stream-server"
    chooses: ClassVar = {
        "firehose": "all posts",
        "topic": "`track`: one word of ten",
        "own": "`track`: that word or one of its own",
    }
    settings = (
        "default settings, one process; limits are counted but high. Posts go to a second process, so its CPU time "
        "includes Redis' messages but not the posts. Each post is on the disk before it is sent"
    )

    def version(self) -> str:
        commit = said("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD").strip()
        return f"{version('stream-server')} ({commit})" if " " not in commit else version("stream-server")

    @contextmanager
    def running(self, rate: float) -> Iterator[Live]:  # noqa: ARG002 - it gets what is posted
        process, address = self.site.serve("measured", "--redis", f"unix://{self.site.redis_socket}")
        try:
            pin(process.pid, first_core())
            yield Live(process, int(address.rpartition(":")[2]))
        finally:
            end(process)

    def requests(self, part: Part, count: int) -> list[str]:
        token = self.site.token(self.site.admin, "stream firehose")
        headers = f"Accept: text/event-stream\tAuthorization: Bearer {token}"
        return [f"/v1/stream?{self._query(part, number)}\t{headers}" for number in range(count)]

    @staticmethod
    def _query(part: Part, number: int) -> str:
        if part == "firehose":
            return "firehose=true"
        return f"track={quote(track_of(number) if part == 'own' else channel_of(part, number))}"


class QueueServer(_FedByRedis):
    """An aiohttp server with a queue and a task for each client, which awaits each write."""

    name = "aiohttp + queue"
    chooses: ClassVar = {"firehose": "all posts", "topic": "a set of words", "own": "a set of words"}
    settings = "`bench/queue_server.py`; no tokens, no history; the same Redis messages as stream-server"

    def version(self) -> str:
        return f"aiohttp {version('aiohttp')}"

    @contextmanager
    def running(self, rate: float) -> Iterator[Live]:  # noqa: ARG002 - it gets what is posted
        command = [sys.executable, "-m", "bench.queue_server", "--socket", self.site.redis_socket]
        process = self.site.start("queue", command)
        try:
            address = wait_for_line(self.site.folder / "queue.out", "listening on ", process)
            pin(process.pid, first_core())
            yield Live(process, int(address.rpartition(":")[2]))
        finally:
            end(process)

    def requests(self, part: Part, count: int) -> list[str]:
        if part == "firehose":
            return ["/sub"] * count
        words = (track_of(number) if part == "own" else channel_of(part, number) for number in range(count))
        return [f"/sub?track={quote(word)}" for word in words]
