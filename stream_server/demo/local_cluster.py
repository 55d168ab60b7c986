"""A Redis Cluster on this machine for a demo: three primaries, each with a replica, as docs/cluster.md lays it out.

Beside it run the servers and nginx; the demo starts and ends all of them.
"""

import asyncio
import os
import random
import shutil
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

from stream_server.errors import ApiError
from stream_server.runtime.shim import die_with_parent
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_nodes import parse_rows
from stream_server.store.redis.cluster_topology import CORE_SLOT
from stream_server.store.redis.replies import parse_info

STOP_SECONDS = 8.0
"""Seconds that a process has to end after SIGTERM, before SIGKILL. A server takes 4 s to send its goodbyes."""

START_SECONDS = 60.0
POLL_SECONDS = 0.05

FIRST_PORT, LAST_PORT = 12_000, 30_000
"""Ports that Linux gives to no outgoing connection, so a process that was killed can have its port again."""


class DemoFault(Exception):
    """Raised if the demo cannot start. The message is one sentence for a person."""


class ChildProcesses:
    """Starts processes in ``folder``, and ends them in reverse order at the end of ``async with``.

    Each has a session of its own, so Ctrl-C reaches only the demo, which ends them in order. On Linux they also end
    when the demo is killed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._running:
            await _end(self._running.pop())

    async def start(self, name: str, *command: str | Path) -> asyncio.subprocess.Process:
        """Start a process. What it says is in the file ``name.log`` of the folder."""
        with (self.folder / f"{name}.log").open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                preexec_fn=die_with_parent(signal.SIGTERM),
            )
        self._running.append(process)
        return process

    async def wait_for(
        self, name: str, process: asyncio.subprocess.Process, check: Callable[[], Awaitable[bool]]
    ) -> None:
        """Wait until ``check`` is true. Raises :class:`DemoFault` with the end of the log if the process ends first."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while process.returncode is None:
                    if await check():
                        return
                    await asyncio.sleep(POLL_SECONDS)
        said = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-3:]
        raise DemoFault(f"{name} did not start: {' '.join(said) or 'it said nothing'}")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, which may have ended or be stopped."""
    if process.returncode is None:
        for number in (signal.SIGTERM, signal.SIGCONT):
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)  # asyncio's method would read the exit code, which it then misses
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
    await process.wait()


def free_ports(count: int) -> list[int]:
    """Return TCP ports that are free now on the loopback."""
    found: list[int] = []
    chance = random.SystemRandom()  # the common one may be seeded, and programs then look for the same ports
    with ExitStack() as stack:
        while len(found) < count:
            port = chance.randrange(FIRST_PORT, LAST_PORT)
            with suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
                found.append(port)
    return found


HOST = "127.0.0.1"
TIMEOUT_SECONDS = 10.0

SLOTS = (
    (CORE_SLOT, CORE_SLOT),
    (0, 8191),
    (8192, CORE_SLOT - 1, CORE_SLOT + 1, 16_383),
)
"""First and last slots of each primary. The first one has the core's slot alone."""

NODES = 2 * len(SLOTS)

OPTIONS = (
    "--bind", HOST, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
    "--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "yes",
    "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
    "--hash-max-listpack-value", "1024", "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
)  # fmt: skip
"""As docs/cluster.md advises. A replica goes where none is left."""


class LocalNode(NamedTuple):
    """A running node: its port and process id."""

    port: int
    pid: int


class LocalCluster(NamedTuple):
    """A running cluster: its primaries, that of the core first, then their replicas in the same order."""

    nodes: tuple[LocalNode, ...]

    @property
    def url(self) -> str:
        """The value of ``--redis``."""
        return f"redis+cluster://{','.join(f'{HOST}:{node.port}' for node in self.nodes)}"

    @property
    def core(self) -> LocalNode:
        """The core's primary at the start."""
        return self.nodes[0]


async def start_cluster(binary: Path, children: ChildProcesses, say: Callable[[str], None]) -> LocalCluster:
    """Start the nodes and make the cluster. Raises :class:`DemoFault`."""
    ports = free_ports(2 * NODES)
    bus_ports = ports[NODES:]
    async with AsyncExitStack() as stack:
        clients = [RedisClient(f"redis://{HOST}:{port}", TIMEOUT_SECONDS) for port in ports[:NODES]]
        for client in clients:
            stack.push_async_callback(client.close)
        starts = (_start_node(binary, children, ports[at], bus_ports[at], clients[at]) for at in range(NODES))
        nodes = await asyncio.gather(*starts)
        try:
            await _join(clients, nodes, bus_ports, say)
        except ApiError as error:
            raise DemoFault(f"the cluster was not made: {error.message}") from error
    return LocalCluster(tuple(nodes))


async def _start_node(
    binary: Path, children: ChildProcesses, port: int, bus_port: int, client: RedisClient
) -> LocalNode:
    async def answers() -> bool:
        try:
            return bool(await client.execute(("PING",)))
        except ApiError:
            return False

    folder = children.folder / f"redis-{port}"
    folder.mkdir()
    command = (binary, "--port", str(port), "--cluster-port", str(bus_port), "--dir", folder, *OPTIONS)
    process = await children.start(folder.name, *command)
    await children.wait_for(folder.name, process, answers)
    return LocalNode(port, process.pid)


async def _join(
    clients: Sequence[RedisClient], nodes: Sequence[LocalNode], bus_ports: Sequence[int], say: Callable[[str], None]
) -> None:
    """Give the primaries their slots and replicas, and wait until all nodes agree."""
    ids = []
    for at, client in enumerate(clients):
        commands: list[tuple[str | int, ...]] = [("CLUSTER", "SET-CONFIG-EPOCH", at + 1), ("CLUSTER", "MYID")]
        if at < len(SLOTS):
            commands.append(("CLUSTER", "ADDSLOTSRANGE", *SLOTS[at]))
        met = ((HOST, other.port, bus) for other, bus in zip(nodes[:at], bus_ports, strict=False))
        commands += (("CLUSTER", "MEET", *each) for each in met)  # each other one: gossip takes seconds
        ids.append((await client.execute(*commands))[1])
    await _wait(lambda: _all(clients, _knows_all), "meet")
    say(f"{NODES} nodes know each other")
    for at, client in enumerate(clients[len(SLOTS) :]):
        await client.execute(("CLUSTER", "REPLICATE", ids[at]))
    say("the replicas copy their primaries")
    await _wait(lambda: _all(clients, _is_ready), "agree")


async def _wait(check: Callable[[], Awaitable[bool]], what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not await check():
        if time.monotonic() > end:
            raise DemoFault(f"the nodes of the cluster did not {what}")
        await asyncio.sleep(POLL_SECONDS)


async def _all(clients: Sequence[RedisClient], check: Callable[[Any], bool]) -> bool:
    asked = (("CLUSTER", "NODES"), ("CLUSTER", "INFO"), ("INFO", "replication"))
    return all([check(await client.execute(*asked)) for client in clients])


def _knows_all(told: Sequence[bytes]) -> bool:
    rows = parse_rows(told[0])
    return len(rows) == NODES and not any("handshake" in row.flags for row in rows)


def _is_ready(told: Sequence[bytes]) -> bool:
    replicas = sum(bool(row.primary) for row in parse_rows(told[0]))
    is_linked = parse_info(told[2]).get("master_link_status", "up") == "up"
    return replicas == len(SLOTS) and is_linked and parse_info(told[1])["cluster_state"] == "ok"


CONFIGURATION = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream servers {{ {servers} keepalive 32; }}
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 256k;
    client_body_buffer_size 256k;
    large_client_header_buffers 4 64k;
    location / {{
      proxy_pass http://servers;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header Forwarded "";
      proxy_set_header X-Real-IP "";
      proxy_buffering off;
      proxy_read_timeout 75s;
      proxy_connect_timeout 2s;
    }}
  }}
}}
"""


def find_nginx() -> Path | None:
    """Return the path of nginx, or None if it is not installed. It may be outside the PATH of ordinary users."""
    path = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("nginx", path=path)
    return None if found is None else Path(found)


async def start_front(nginx: Path, children: ChildProcesses, port: int, servers: Sequence[int]) -> None:
    """Start nginx on a port of the loopback before servers on others, and wait until it accepts connections."""
    folder = children.folder / "nginx"
    folder.mkdir()
    text = CONFIGURATION.format(
        folder=folder, port=port, servers=" ".join(f"server 127.0.0.1:{server};" for server in servers)
    )
    file = folder / "nginx.conf"
    file.write_text(text)
    process = await children.start("nginx", nginx, "-c", file, "-p", folder)
    await children.wait_for("nginx", process, partial(accepts, port))


async def accepts(port: int) -> bool:
    """Return whether a port of the loopback accepts connections."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
