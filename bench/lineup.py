"""Who is measured: how each server is started, and what its clients ask for."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from bench.process import end, first_core, pin, wait_for_line
from bench.site import Site

TOPICS = 10
"""Each post is about one of so many topics, and each tracking client waits for one: it gets 10 %."""


class Running(NamedTuple):
    """A measured server: its only process and its port."""

    process: "subprocess.Popen[bytes]"
    port: int


class StreamServer:
    """Ours, with one worker, on the writer's Redis."""

    name = "stream-server"
    takes_posts = True

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """A fresh one on the first core."""
        process, address = self.site.serve("measured", "--redis", f"unix://{self.site.redis_socket}")
        yield from _kept(process, address)

    def requests(self, tracking: bool, count: int) -> list[str]:  # noqa: FBT001 - one of two kinds of stream
        """Paths and headers of ``count`` clients: firehose, or each a track of its own."""
        token = self.site.token(self.site.admin, "stream firehose")
        headers = f"Accept: text/event-stream\tAuthorization: Bearer {token}"
        queries = [f"track={quote(track_of(n))}" if tracking else "firehose=true" for n in range(count)]
        return [f"/v1/stream?{query}\t{headers}" for query in queries]


class QueueServer:
    """The yardstick."""

    name = "aiohttp + queue"
    takes_posts = False

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """A fresh one on the first core."""
        command = [sys.executable, "-m", "bench.queue_server", "--socket", self.site.redis_socket]
        process = self.site.start("queue", command)
        address = wait_for_line(self.site.folder / "queue.out", "listening on ", process)
        yield from _kept(process, address)

    def requests(self, tracking: bool, count: int) -> list[str]:  # noqa: FBT001 - one of two kinds of stream
        """The same clients, in this server's words."""
        return [f"/sub?track={quote(track_of(n))}" if tracking else "/sub" for n in range(count)]


def track_of(number: int) -> str:
    """One topic that posts are about, and a word of the client's own, so that no two clients ask for the same."""
    return f"topic{number % TOPICS},nobody{number}says"


def message(number: int) -> str:
    """A post of usual length about one topic, with a tag, a mention and a link."""
    return (
        f"topic{number % TOPICS} is what everyone at the gate talks about while they wait for flight {number} to "
        f"board, says @author{number % 7} #delayed http://example.com/flights/{number}"
    )


def _kept(process: "subprocess.Popen[bytes]", address: str) -> Iterator[Running]:
    try:
        pin(process.pid, first_core())
        yield Running(process, int(address.rpartition(":")[2]))
    finally:
        end(process)
