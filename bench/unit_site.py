"""What the measurement of unit costs needs: a Redis, a server that does the deeds, one that only hears, and people."""

import asyncio
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redis import Redis

from bench.poster import Connection, in_turn
from bench.process import end, first_core, free_port, last_core, pin
from bench.site import Site
from stream_server.runtime.embedded_redis import EmbeddedRedis
from stream_server.store import keys

SYNCED = "everysec"
"""When Redis syncs the append-only file, as on a large site."""

OPTIONS = ("--bind", "127.0.0.1", "--auto-aof-rewrite-percentage", "0")
"""Options of Redis. A rewrite of the append-only file would disturb its size."""

FOLLOWS_AT_ONCE = 200
"""Most users in one request to follow."""

FULL_HOME = 1000
"""Length of a full home timeline: the default of `--timeline-max`."""

OLD_ID = 1 << 40
"""A status id that is older than all others."""

QUIET = "track=nobodysaysthis"
"""The only stream of the server that hears. Without any stream a server leaves entries undecoded."""


class UnitSite:
    """The processes of one run. ``writer`` does the deeds and ``hearer`` only hears their entries."""

    def __init__(self, site: Site, embedded: EmbeddedRedis, port: int) -> None:
        self.site = site
        self.redis_pid, self.redis_port = embedded.redis_pid, port
        self.redis_version = str(embedded.engine)
        self.redis = Redis(port=port)
        self.writer = self.serve("writer")
        site.address = self.writer[1]
        site.people()

    def serve(self, name: str, *flags: str) -> "tuple[subprocess.Popen[bytes], str]":
        """Start a server on the first core. Return the process and its address."""
        process, address = self.site.serve(name, "--redis", f"redis://127.0.0.1:{self.redis_port}", *flags)
        pin(process.pid, first_core())
        return process, address

    def tokens(self, ids: list[str], scope: str) -> list[str]:
        """Return a token of each user."""
        return [self.site.token(uid, scope) for uid in ids]

    def fill_homes(self, readers: list[str]) -> None:
        """Fill home timelines up to their full length with old ids, so that each new status pushes one out."""
        ids = {str(OLD_ID + at): OLD_ID + at for at in range(FULL_HOME)}
        with self.redis.pipeline(transaction=False) as commands:
            for reader in readers:
                commands.zadd(keys.home_timeline(reader), ids)
            commands.execute()

    async def follow(self, followers: list[str], authors: list[str]) -> None:
        """Let each of ``followers`` follow all ``authors``."""
        tokens = self.tokens(followers, "write")

        async def follow(connection: Connection, number: int) -> None:
            await connection.call("POST", "/v1/users/me/following", tokens[number], {"follow": authors})

        await in_turn(self.site.address, len(followers), follow)


@asynccontextmanager
async def unit_site(checkout: Path, python: str) -> AsyncIterator[UnitSite]:
    """Start Redis and the server that writes. Everything is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="stream-server-bench-") as folder:
        port = free_port()
        embedded = await EmbeddedRedis.start(None, appendfsync=SYNCED, extra=[*OPTIONS, "--port", str(port)])
        made = None
        try:
            pin(embedded.redis_pid, last_core())
            made = await asyncio.to_thread(UnitSite, Site(Path(folder), checkout, python), embedded, port)
            yield made
        finally:
            if made is not None:
                end(made.writer[0])
                made.redis.close()
            await embedded.stop()


@asynccontextmanager
async def hearing(site: UnitSite) -> AsyncIterator[int]:
    """Start the server that only hears, with one stream. Yield its process id."""
    process, address = await asyncio.to_thread(site.serve, "hearer", "--job-workers", "0")
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
        token = site.site.token(site.site.admin, "stream")
        writer.write(f"GET /v1/stream?{QUIET} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        await reader.readuntil(b"hello")
        yield process.pid
        writer.close()
    finally:
        await asyncio.to_thread(end, process)
