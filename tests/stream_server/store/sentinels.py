"""A service under three Sentinels: a primary and two replicas, all real processes on free ports."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import redis

from tests.redis_process import RedisProcess, free_port
from tests.stream_server.store.replicas import LIVELY, PORTED, linked
from tests.waiting import PATIENCE, eventually

SERVICE = "main"

DOWN_AFTER_MS = 2000
"""Milliseconds of silence after which a Sentinel calls a server down. Long enough for a busy machine."""

CONFIGURED = """\
port {port}
bind 127.0.0.1
dir {folder}
logfile sentinel.log
sentinel monitor {service} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {service} {down_after}
sentinel failover-timeout {service} 10000
sentinel parallel-syncs {service} 2
"""


class SentinelProcess:
    """One Sentinel process, with a folder for the configuration file that it rewrites."""

    def __init__(self, binary: Path, primary: RedisProcess) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="ssw-"))
        self._file = self.folder / "sentinel.conf"
        self._command = [str(binary), str(self._file), "--sentinel"]
        self._file.write_text(
            CONFIGURED.format(
                port=self.port, folder=self.folder, service=SERVICE, primary=primary.port, down_after=DOWN_AFTER_MS
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(PATIENCE)

    @property
    def log(self) -> str:
        return (self.folder / "sentinel.log").read_text(errors="replace")

    def run(self, *command: str) -> None:
        with redis.Redis(port=self.port) as client:
            client.execute_command(*command)

    def primary_port(self) -> int:
        """The port of the primary by this Sentinel, or 0 if it does not answer."""
        return int(self._state().get("port", 0))

    def ready(self) -> bool:
        """Whether the Sentinel knows both other Sentinels and both replicas."""
        state = self._state()
        return state.get("num-other-sentinels") == 2 and state.get("num-slaves") == 2

    def _state(self) -> dict[str, int]:
        with redis.Redis(port=self.port) as client:
            try:
                return dict(client.sentinel_masters()[SERVICE])
            except (redis.RedisError, KeyError):
                return {}


class Watch:
    """A primary, two replicas and three Sentinels."""

    def __init__(self, servers: list[RedisProcess], sentinels: list[SentinelProcess]) -> None:
        self.servers = servers
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        return f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in self.sentinels)}/{SERVICE}"

    async def settled(self) -> None:
        """Wait until the replicas are in sync and the Sentinels know all servers.

        A Sentinel that got no processor for two seconds distrusts its clock, and does nothing for thirty (TILT).
        """
        for replica in self.servers[1:]:
            await linked(replica)
        await eventually(
            lambda: all(each.ready() for each in self.sentinels), seconds=2 * PATIENCE, what="Sentinels ready"
        )

    async def failed_over(self) -> RedisProcess:
        """Wait until all Sentinels name one of the replicas. Returns it."""
        old = self.servers[0].port
        await eventually(
            lambda: (
                len({each.primary_port() for each in self.sentinels} - {old, 0}) == 1
                and all(each.primary_port() not in {old, 0} for each in self.sentinels)
            ),
            seconds=2 * PATIENCE,
            what="a failover",
        )
        named = self.sentinels[0].primary_port()
        return next(server for server in self.servers if server.port == named)


@contextmanager
def watch(binary: Path) -> Iterator[Watch]:
    """Start all six processes. They find each other in a few seconds."""
    with ExitStack() as stack:
        servers = [stack.enter_context(RedisProcess(binary, *LIVELY, port=PORTED)) for _ in range(3)]
        for replica in servers[1:]:
            replica.replica_of(servers[0])
        sentinels = [stack.enter_context(SentinelProcess(binary, servers[0])) for _ in range(3)]
        yield Watch(servers, sentinels)
