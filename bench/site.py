"""The parts that all measured servers share: a folder, a Redis, a writer, users and their tokens."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
from redis import Redis

from bench.process import end, free_port, last_core, pin, wait_for_line
from bench.replica import MOST

AUTHORS = 20
"""Number of users who post."""

USERS_AT_ONCE = 1000
"""Most users that one request creates."""

POSTERS = 20
"""Number of users whose posts are measured."""

FOLLOWERS = 10
"""Number of followers of each of them."""

READERS = 32
"""Number of users whose home timelines are read. Each follows ten users."""

HOME_POSTS = 30
"""Number of posts in each home timeline."""

LOADED = ("reads", "writes", "statuses", "write_bytes", "connects", "polls", "anonymous", "follows")
"""The rate limits that a load reaches."""

LIMITS_OF_A_LOAD = {
    "TRUSTED_PROXIES": "127.0.0.1", "STREAMS_PER_USER": "1000000000", "STREAMS_PER_ADDRESS": "1000000000",
    "LIMITS": " ".join(f"{name}=1000000000" for name in (*LOADED, "dialect_connects")),
}  # fmt: skip
"""All limits are on and counted, as in production, and so large that a load from one machine does not reach them."""

FORMER_LIMITS = {
    **{f"LIMIT_{name.upper()}": "1000000000" for name in LOADED}, "RECONNECT_LIMIT": "1000000000", "LIMITS": "on",
}  # fmt: skip
"""The same for a version that is measured beside this one and has a setting for each limit."""

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""


class Site:
    """The folder of one run, and the writer: a server that owns the Redis and accepts the posts."""

    def __init__(self, folder: Path, checkout: Path = ROOT, python: str = sys.executable) -> None:
        self.folder = folder
        self.checkout = checkout
        self.python = python
        self.secret = secrets.token_urlsafe(32)
        self.bus_secret = secrets.token_urlsafe(32)
        self.data = folder / "data"
        self.address = ""
        self.writer: subprocess.Popen[bytes] | None = None
        self.redis_socket = ""
        self.authors: list[str] = []
        self.admin = ""
        self.posters: list[str] = []
        self.readers: list[str] = []
        self._users: dict[str, list[str]] = {}

    def start(self, name: str, command: list[str]) -> "subprocess.Popen[bytes]":
        """Start a child process. Its output goes to ``<name>.out`` and ``<name>.err`` in the folder."""
        with (self.folder / f"{name}.out").open("wb") as out, (self.folder / f"{name}.err").open("wb") as err:
            return subprocess.Popen(command, cwd=self.checkout, env=self._environment(), stdout=out, stderr=err)

    def serve(self, name: str, *flags: str, port: int = 0) -> "tuple[subprocess.Popen[bytes], str]":
        """Start `stream-server serve` of the checkout. Return the process and its address."""
        command = [self.python, "-m", "stream_server", "serve", "--port", str(port), *flags]
        process = self.start(name, command)
        address = wait_for_line(self.folder / f"{name}.out", "stream-server listening on ", process)
        return process, address

    def people(self) -> None:
        """Create the users who post, and the user who listens."""
        login = "b" + uuid.uuid4().hex[:10]
        body = {"login": login, "name": login, "email": f"{login}@example.com", "password": secrets.token_urlsafe()}
        self.admin = self.call("/v1/users", body)["id"]
        self.authors = [self.token(uid, "write") for uid in self.users("author", AUTHORS)]

    def users(self, name: str, count: int) -> list[str]:
        """Return the ids of ``count`` users, named by ``name`` and a number. Create those that do not exist yet."""
        known = self._users.setdefault(name, [])
        token = self.token(self.admin, "admin")
        while (first := len(known)) < count:
            numbers = range(first, min(count, first + USERS_AT_ONCE))
            logins = [{"login": f"{name}{n}", "name": f"{name.title()} {n}"} for n in numbers]
            made = self.call("/v1/admin/users", {"users": logins}, token)["users"]
            known += [user["id"] for user in made]
        return known[:count]

    def prepare_requests(self) -> None:
        """Create users who post to followers, and readers whose home timelines have a page of posts.

        Raises RuntimeError if a home timeline is not filled in time.
        """
        self.posters, friends = self.users("poster", POSTERS), self.users("friend", FOLLOWERS)
        self.readers, followers = self.users("reader", READERS), self.users("follower", FOLLOWERS)
        follows = dict.fromkeys(self.readers, friends) | dict.fromkeys(followers, self.posters)
        for reader, followed in follows.items():
            self.call("/v1/users/me/following", {"follow": followed}, self.token(reader, "write"))
        for number in range(HOME_POSTS):
            text = f"what {number} friends say about #delayed flights at http://example.com/flights/{number}"
            self.call("/v1/statuses", {"message": text}, self.token(friends[number % FOLLOWERS], "write"))
        end = time.monotonic() + 10
        for token in [self.token(reader, "read") for reader in self.readers]:
            while len(self.call(f"/v1/timelines/home?count={HOME_POSTS}", None, token)["statuses"]) < HOME_POSTS:
                if time.monotonic() > end:
                    raise RuntimeError("a home timeline was not filled")
                time.sleep(0.1)

    def redis_pid(self) -> int:
        """Return the process id of Redis."""
        with Redis(unix_socket_path=self.redis_socket) as client:
            return int(client.info("server")["process_id"])

    def open_redis_port(self) -> int:
        """Let Redis listen on a port of the loopback address too, where replicas find it. Return the port."""
        with Redis(unix_socket_path=self.redis_socket) as client:
            port = int(client.config_get("port")["port"])
            if not port:
                port = free_port()
                client.config_set("bind", "127.0.0.1")
                client.config_set("port", port)
        return port

    @property
    def most_replicas(self) -> int:
        """The most replicas that the server of the checkout reads from: version 1.0 takes one."""
        return MOST if self._knows("blanks between their URLs") else 1

    def token(self, sub: str, scope: str) -> str:
        """Return a token that is valid for an hour."""
        now = int(time.time())
        claims = {
            "sub": sub, "iss": "stream-server", "aud": "stream-server", "iat": now, "exp": now + 3600,
            "jti": uuid.uuid4().hex, "scope": scope,
        }  # fmt: skip
        return jwt.encode(claims, self.secret, algorithm="HS256")

    def call(self, path: str, body: dict[str, Any] | None, token: str = "") -> Any:
        """POST a body to the writer, or GET without one. Return the JSON of the answer."""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.address + path, data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_SERVER_")}
        secrets_of_site = {"STREAM_SERVER_JWT_SECRET": self.secret, "STREAM_SERVER_BUS_SECRET": self.bus_secret}
        limits = LIMITS_OF_A_LOAD | (FORMER_LIMITS if self._knows("limit_reads:") else {})
        return own | {f"STREAM_SERVER_{name}": value for name, value in limits.items()} | secrets_of_site

    def _knows(self, text: str) -> bool:
        """Return whether the settings of the checkout, which may be another version, have this text."""
        return text in (self.checkout / "stream_server" / "config" / "settings.py").read_text(encoding="utf-8")


@contextmanager
def site(checkout: Path = ROOT, python: str = sys.executable) -> Iterator[Site]:
    """Create a site with its writer on the last core. Everything is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="stream-server-bench-") as folder:
        made = Site(Path(folder), checkout, python)
        writer, made.address = made.serve("writer", "--data-dir", str(made.data))
        made.writer = writer
        try:
            pin(writer.pid, last_core())
            made.redis_socket = json.loads((made.data / "server.json").read_text())["redis"].removeprefix("unix://")
            made.people()
            yield made
        finally:
            end(writer)
