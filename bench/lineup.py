"""The measured servers: how each one starts, and the requests of its clients."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import quote

from bench.process import end, first_core, pin, wait_for_line
from bench.site import Site

TOPICS = 10
"""Number of topics.

Each post has one topic and each tracking client waits for one, so it receives 10 % of the posts.
"""


class Running(NamedTuple):
    """A measured server: its only process and its port."""

    process: "subprocess.Popen[bytes]"
    port: int


class StreamServer:
    """Our server, with one worker process, on the writer's Redis."""

    name = "stream-server"
    takes_posts = True

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end."""
        process, address = self.site.serve("measured", "--redis", f"unix://{self.site.redis_socket}")
        yield from _kept(process, address)

    def requests(self, tracking: bool, count: int) -> list[str]:  # noqa: FBT001 - one of two kinds of stream
        """Return path and headers for ``count`` clients, either of the firehose or each with its own track."""
        token = self.site.token(self.site.admin, "stream firehose")
        headers = f"Accept: text/event-stream\tAuthorization: Bearer {token}"
        queries = [f"track={quote(track_of(n))}" if tracking else "firehose=true" for n in range(count)]
        return [f"/v1/stream?{query}\t{headers}" for query in queries]


class QueueServer:
    """The server for comparison."""

    name = "aiohttp + queue"
    takes_posts = False

    def __init__(self, site: Site) -> None:
        self.site = site

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end."""
        command = [sys.executable, "-m", "bench.queue_server", "--socket", self.site.redis_socket]
        process = self.site.start("queue", command)
        address = wait_for_line(self.site.folder / "queue.out", "listening on ", process)
        yield from _kept(process, address)

    def requests(self, tracking: bool, count: int) -> list[str]:  # noqa: FBT001 - one of two kinds of stream
        """Return the same clients' requests in the format of this server."""
        return [f"/sub?track={quote(track_of(n))}" if tracking else "/sub" for n in range(count)]


def track_of(number: int) -> str:
    """Return a track parameter: one topic of the posts, and a word that only this client uses."""
    return f"topic{number % TOPICS},nobody{number}says"


def message(number: int) -> str:
    """Return a post of usual length about one topic, with a tag, a mention and a link."""
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
