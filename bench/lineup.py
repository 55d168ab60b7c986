"""The measured servers: how each one starts, and the requests of its clients.

A request is a line of text: method and path separated by a blank, then headers, each after a tab. A last part that
begins with ``@`` is the body.
"""

import asyncio
import json
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal, NamedTuple, Protocol
from urllib.parse import quote

from redis.asyncio import Redis

from bench import book_server
from bench.poster import TOPICS, message, post_steadily, track_of
from bench.process import end, first_core, pin, wait_for_line
from bench.site import FOLLOWERS, HOME_POSTS, Site

BODIES = 500
"""Number of different posts that the clients of the requests send in turn."""

Kind = Literal["firehose", "topic", "tracks"]
"""What a client receives: all posts, one topic of ten, or one topic by a filter of its own."""


class Process(Protocol):
    """The process that is measured."""

    @property
    def pid(self) -> int: ...


class Running(NamedTuple):
    """A measured server: its only process and its port."""

    process: Process
    port: int


class Server(ABC):
    """A measured server. ``column`` names it in the results."""

    column: str

    def __init__(self, site: Site) -> None:
        self.site = site

    @abstractmethod
    def running(self, rate: float = 0) -> AbstractContextManager[Running]:
        """Start a fresh server on the first core, and stop it at the end.

        A server whose upstream makes the events itself lets it make ``rate`` events a second.
        """

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the requests of ``count`` clients that share one token."""
        raise NotImplementedError

    def openings(self, count: int) -> list[tuple[str, list[str]]]:
        """Return the requests whose connects are measured, by name."""
        return [(self.column, self.streams("tracks", count))]

    def calls(self) -> dict[str, list[str]]:
        """Return the requests whose rate is measured, by name."""
        raise NotImplementedError

    async def feed(self, running: Running, kind: Kind, rate: float, done: asyncio.Event) -> None:  # noqa: ARG002 - others need them
        """Let posts reach the server at a rate until ``done`` is set. By default it hears those of the writer."""
        await post_steadily(self.site, rate, done)


class StreamServer(Server):
    """Our server, with one worker process, on the writer's Redis."""

    def __init__(self, site: Site, column: str = "ours") -> None:
        super().__init__(site)
        self.column = column

    @contextmanager
    def running(
        self,
        rate: float = 0,  # noqa: ARG002 - it hears the writer
        port: int = 0,
        workers: int = 1,
        replicas: Sequence[int] = (),
        heartbeat_seconds: int | None = None,
    ) -> Iterator[Running]:
        """Start a fresh server on the first core, and stop it at the end. It reads from the ports of ``replicas``."""
        flags = ["--redis", f"unix://{self.site.redis_socket}", "--workers", str(workers)]
        if heartbeat_seconds is not None:
            flags += ["--heartbeat-seconds", str(heartbeat_seconds)]
        if replicas:
            flags += ["--redis-read", " ".join(f"redis://127.0.0.1:{port}" for port in replicas)]
        process, address = self.site.serve("measured", *flags, port=port)
        yield from _kept(process, address)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the requests of ``count`` clients that share one token."""
        token = self.site.token(self.site.admin, "stream firehose")
        return [stream_request("/v1/stream", kind, number, token) for number in range(count)]

    def openings(self, count: int) -> list[tuple[str, list[str]]]:
        """Return the requests whose connects are measured, by name."""
        tokens = [self.site.token(uid, "stream firehose") for uid in self.site.users("listener", count)]
        different = [stream_request("/v1/stream", "tracks", n, token) for n, token in enumerate(tokens)]
        alike = self.streams("firehose", count)
        return [("different", different), ("different again", different), ("one token", alike)]

    def selections(self, count: int) -> dict[str, list[str]]:
        """Return the requests of ``count`` clients that all differ, by name: one author each, or one room each.

        An author and a room of each post of `post_to_rooms` have one client.
        """
        token = self.site.token(self.site.admin, "stream")
        people = [*self.site.users("author", len(self.site.authors)), *map(str, range(10**9, 10**9 + count))]
        head = f"\tAccept: text/event-stream\tAuthorization: Bearer {token}"
        return {
            "follows": [f"GET /v1/stream?follow={uid}{head}" for uid in people[:count]],
            "rooms": [f"GET /v1/stream?rule=meta.room:{number}{head}" for number in range(count)],
        }

    def calls(self) -> dict[str, list[str]]:
        """Return the requests whose rate is measured, by name."""
        readers = [self.site.token(uid, "read") for uid in self.site.readers]
        return {
            "me": [f"GET /v1/users/me\tAuthorization: Bearer {token}" for token in readers],
            "home": [f"GET /v1/timelines/home?count={HOME_POSTS}\tAuthorization: Bearer {token}" for token in readers],
            "post": _posts("/v1/statuses", [self.site.token(uid, "write") for uid in self.site.posters]),
        }


class QueueServer(Server):
    """An ordinary aiohttp server, with a queue for each client."""

    column = "queue"

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - it hears the writer
        """Start a fresh server on the first core, and stop it at the end."""
        command = [sys.executable, "-m", "bench.queue_server", "--socket", self.site.redis_socket]
        yield from _started(self.site, self.column, command)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the same clients' requests in the format of this server."""
        return [f"GET /sub?track={quote(words_of(kind, number))}" for number in range(count)]


class Floor(Server):
    """The C program that does the least. With ``batch`` it joins the events of one read from Redis."""

    def __init__(self, site: Site, program: str, *, batch: bool = False) -> None:
        super().__init__(site)
        self.column = "floor batch" if batch else "floor"
        self._command = [program, "--socket", site.redis_socket, *(["--batch"] if batch else [])]

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - it hears the writer
        """Start it on the first core, and stop it at the end."""
        yield from _started(self.site, "floor", self._command)

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return the same clients' requests. The floor reads only the topic in them."""
        return [f"GET /{words_of(kind, number)}" for number in range(count)]


class BareServer(Server):
    """An aiohttp server that does nothing else than the protocol."""

    column = "bare"

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - it gets no posts
        """Start a fresh server on the first core, and stop it at the end."""
        yield from _started(self.site, self.column, [sys.executable, "-m", "bench.bare_server"])

    def streams(self, kind: Kind, count: int) -> list[str]:
        """Return requests of the same length as those of our server."""
        token = self.site.token(self.site.admin, "stream firehose")
        return [stream_request("/stream", kind, number, token) for number in range(count)]


class BookServer(Server):
    """The program of the book, with as many followers and posts in home timelines as our server has."""

    column = "book"

    @contextmanager
    def running(self, rate: float = 0) -> Iterator[Running]:  # noqa: ARG002 - it hears nothing
        """Start a fresh server on the first core, and stop it at the end."""
        asyncio.run(self._prepare())
        command = [sys.executable, "-m", "bench.book_server", "--socket", self.site.redis_socket]
        yield from _started(self.site, self.column, command)

    def calls(self) -> dict[str, list[str]]:
        """Return the requests whose rate is measured, by name."""
        readers = [self.site.token(uid, "read") for uid in self.site.readers]
        return {
            "home": [f"GET /home\tAuthorization: Bearer {token}" for token in readers],
            "post": _posts("/statuses", [self.site.token(uid, "write") for uid in self.site.posters]),
        }

    async def _prepare(self) -> None:
        site = self.site
        friends, followers = site.users("friend", FOLLOWERS), site.users("follower", FOLLOWERS)
        async with Redis(unix_socket_path=site.redis_socket) as redis:
            for uid in (*site.posters, *site.readers, *friends, *followers):
                await book_server.create_user(redis, uid, f"user{uid}")
            for reader in site.readers:
                await book_server.follow_user(redis, reader, friends)
            for follower in followers:
                await book_server.follow_user(redis, follower, site.posters)
            for number in range(HOME_POSTS):
                await book_server.post_status(redis, friends[number % len(friends)], message(number))


def words_of(kind: Kind, number: int) -> str:
    """Return the words that client ``number`` waits for. Empty if it receives everything."""
    return {"firehose": "", "topic": f"topic{number % TOPICS}", "tracks": track_of(number)}[kind]


def stream_request(path: str, kind: Kind, number: int, token: str) -> str:
    """Return the request of one client of our server."""
    query = f"track={quote(words_of(kind, number))}" if kind != "firehose" else "firehose=true"
    return f"GET {path}?{query}\tAccept: text/event-stream\tAuthorization: Bearer {token}"


def _posts(path: str, tokens: list[str]) -> list[str]:
    """Return requests that post, each with one of the tokens in turn."""
    bodies = (json.dumps({"message": message(n), "meta": {"t": n}}, separators=(",", ":")) for n in range(BODIES))
    return [
        f"POST {path}\tContent-Type: application/json\tAuthorization: Bearer {tokens[n % len(tokens)]}\t@{body}"
        for n, body in enumerate(bodies)
    ]


def _started(site: Site, name: str, command: list[str]) -> Iterator[Running]:
    process = site.start(name, command)
    address = wait_for_line(site.folder / f"{name}.out", "listening on ", process)
    yield from _kept(process, address)


def _kept(process: "subprocess.Popen[bytes]", address: str) -> Iterator[Running]:
    try:
        pin(process.pid, first_core())
        yield Running(process, int(address.rpartition(":")[2]))
    finally:
        end(process)
