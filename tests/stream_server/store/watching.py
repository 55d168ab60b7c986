"""A service that three Sentinels watch: a primary and two replicas, all of them real processes on free ports."""

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
from tests.waiting import eventually

SERVICE = "main"

DOWN_AFTER_MS = 2000
"""Silence after which a Sentinel calls a server down: a machine that is busy is not an outage, but may look like one.

Then there is another failover, so whoever wants to know who the primary is asks when all is quiet.
"""

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
    """One Sentinel; it writes its own file, so it has a folder."""

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
        """SIGKILL, and wait."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(5)

    @property
    def log(self) -> str:
        """What it has logged."""
        return (self.folder / "sentinel.log").read_text(errors="replace")

    def run(self, *command: str) -> None:
        """One command, on a connection of its own."""
        with redis.Redis(port=self.port) as client:
            client.execute_command(*command)

    def primary_port(self) -> int:
        """Where the primary is, by this one; 0 while it says nothing."""
        return int(self._state().get("port", 0))

    def ready(self) -> bool:
        """Whether it knows both others and both replicas."""
        state = self._state()
        return state.get("num-other-sentinels") == 2 and state.get("num-slaves") == 2

    def _state(self) -> dict[str, int]:
        with redis.Redis(port=self.port) as client:
            try:
                return dict(client.sentinel_masters()[SERVICE])
            except (redis.RedisError, KeyError):
                return {}


class Watch:
    """The servers and their Sentinels."""

    def __init__(self, servers: list[RedisProcess], sentinels: list[SentinelProcess]) -> None:
        self.servers = servers
        self.sentinels = sentinels

    @property
    def url(self) -> str:
        """The service, by all its Sentinels."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in self.sentinels)}/{SERVICE}"

    async def settled(self) -> None:
        """Until the replicas have what the primary has, and the Sentinels know everybody."""
        for replica in self.servers[1:]:
            await linked(replica)
        await eventually(lambda: all(each.ready() for each in self.sentinels), seconds=60, what="Sentinels ready")

    async def failed_over(self) -> RedisProcess:
        """Until all Sentinels name one of the replicas; gives it."""
        old = self.servers[0].port
        await eventually(
            lambda: (
                len({each.primary_port() for each in self.sentinels} - {old, 0}) == 1
                and all(each.primary_port() not in {old, 0} for each in self.sentinels)
            ),
            seconds=90,
            what="a failover",
        )
        named = self.sentinels[0].primary_port()
        return next(server for server in self.servers if server.port == named)


@contextmanager
def watch(binary: Path) -> Iterator[Watch]:
    """All six processes, started; they find each other in a few seconds."""
    with ExitStack() as stack:
        servers = [stack.enter_context(RedisProcess(binary, *LIVELY, port=PORTED)) for _ in range(3)]
        for replica in servers[1:]:
            replica.replica_of(servers[0])
        sentinels = [stack.enter_context(SentinelProcess(binary, servers[0])) for _ in range(3)]
        yield Watch(servers, sentinels)
