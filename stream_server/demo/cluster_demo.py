"""Runs ``stream-server cluster demo``: six Redis nodes, two servers and nginx, with the content of ``serve --demo``.

The nodes are three primaries, each with a replica, as docs/cluster.md lays them out. All of it is on the loopback, in a
temporary folder, and ends with the demo. The servers share a data folder, and so the key of tokens.
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
from typing import Self

from stream_server.client import Client, ClientFailure
from stream_server.config import config
from stream_server.config.data_folder import write_private
from stream_server.config.settings import Config
from stream_server.demo import walkthrough
from stream_server.errors import ApiError
from stream_server.runtime.child_processes import SERVE, ChildProcesses
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.runtime.private_folder import PrivateFolder
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_nodes import parse_rows
from stream_server.store.redis.cluster_topology import CORE_SLOT
from stream_server.store.redis.protocol import parse_info

HOST = "127.0.0.1"
SERVERS = 2
REDIS_TIMEOUT_SECONDS = 10.0

SLOTS = ((CORE_SLOT, CORE_SLOT), (0, 8191), (8192, CORE_SLOT - 1, CORE_SLOT + 1, 16_383))
"""First and last slots of each primary. The first one has the core's slot alone."""

NODES = 2 * len(SLOTS)

NODE_OPTIONS = (
    "--bind", HOST, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
    "--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "yes",
    "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
    "--hash-max-listpack-value", "1024", "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
)  # fmt: skip
"""As docs/cluster.md advises. A replica goes where none is left."""

NO_NGINX = "nginx is not installed, so nothing spreads clients over the two servers: use either address"

NGINX_CONFIGURATION = """\
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
  map $uri $stream_upgrade {{ ~^/v1/stream(/user)?$ $http_upgrade; default ''; }}
  map $stream_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 256k;
    client_body_buffer_size 256k;
    large_client_header_buffers 4 64k;
    location / {{
      proxy_pass http://servers;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $stream_upgrade;
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
"""Its settings for streams are those of a real site."""

STOP_SECONDS = 8.0
"""Seconds that a process has to end after SIGTERM, before SIGKILL. A server takes 4 s to send its goodbyes."""

START_SECONDS = 60.0
POLL_SECONDS = 0.05

FIRST_PORT, LAST_PORT = 12_000, 30_000
"""Ports that Linux gives to no outgoing connection, so a process that was killed can have its port again."""

PrintText = Callable[[str], None]


class DemoFault(Exception):
    """Raised if the demo cannot start. The message is one sentence for a person."""


class DemoProcesses:
    """The processes of a demo. Each writes what it says into the file ``<name>.log`` of ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children = ChildProcesses(folder, signal.SIGTERM)  # nginx has children of its own

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._children.stop(STOP_SECONDS)

    async def start(self, name: str, check: Callable[[], Awaitable[bool]], *command: str | Path) -> int:
        """Start a process, wait until ``check`` is true, and return the process's id.

        Raises :class:`DemoFault` with the end of the log if the process ends first.
        """
        log = self.folder / f"{name}.log"
        child = self._children.start(log, *command)
        with suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                while not child.ended.done():
                    if await check():
                        return child.pid
                    await asyncio.sleep(POLL_SECONDS)
        said = log.read_text(errors="replace").splitlines()[-3:]
        raise DemoFault(f"{name} did not start: {' '.join(said) or 'it said nothing'}")


def free_ports(count: int) -> list[int]:
    """Return TCP ports that are free now on the loopback."""
    found: list[int] = []
    chance = random.SystemRandom()  # the common one may be seeded, and programs then look for the same ports
    with ExitStack() as stack:
        while len(found) < count:
            port = chance.randrange(FIRST_PORT, LAST_PORT)
            with suppress(OSError):
                stack.enter_context(socket.create_server((HOST, port)))
                found.append(port)
    return found


async def run(port: int, print_text: PrintText) -> None:
    """Run the demo until SIGINT or SIGTERM. ``port`` is that of nginx; 0 means any free one.

    Raises `DemoFault` if it cannot start.
    """
    _stop_at_signals()
    with suppress(asyncio.CancelledError):
        async with AsyncExitStack() as stack:
            private = PrivateFolder()
            stack.callback(private.remove)
            processes = await stack.enter_async_context(DemoProcesses(private.path))
            print_text("starting six Redis nodes")
            names, core_pid = await _start_cluster(processes, print_text)
            settings = _settings(private.path, f"redis+cluster://{','.join(names)}")
            print_text(f"starting {SERVERS} servers")
            servers = await _start_servers(settings, processes)
            address = await _start_front(processes, port, servers, print_text)
            print_text(_guide(address, servers, names, core_pid))
            await walkthrough.run_demo(settings, address, print_text)
            await asyncio.Event().wait()
    print_text("stopped")


def _stop_at_signals() -> None:
    """Cancel the current task at the first SIGINT or SIGTERM. Later ones do nothing: they would break off the stop."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lambda: task.cancelling() or task.cancel())


async def _start_cluster(processes: DemoProcesses, print_text: PrintText) -> tuple[list[str], int]:
    """Start the nodes and make the cluster. Return their addresses and the process of the core's primary.

    The primaries come first, that of the core at the beginning, then their replicas in the same order.
    """
    try:
        binary = (await asyncio.to_thread(find_redis_binary)).path
    except EmbeddedRedisError as error:
        raise DemoFault(str(error)) from None
    ports = free_ports(2 * NODES)
    names = [f"{HOST}:{port}" for port in ports[:NODES]]
    async with AsyncExitStack() as stack:
        clients = [RedisClient(f"redis://{name}", REDIS_TIMEOUT_SECONDS) for name in names]
        for client in clients:
            stack.push_async_callback(client.close)
        pairs = zip(ports[:NODES], ports[NODES:], strict=True)
        pids = await asyncio.gather(*(_start_node(binary, processes, *each) for each in pairs))
        try:
            await _join(clients, ports, print_text)
        except ApiError as error:
            raise DemoFault(f"the cluster was not made: {error.message}") from error
    return names, pids[0]


async def _start_node(binary: Path, processes: DemoProcesses, port: int, bus_port: int) -> int:
    folder = processes.folder / f"redis-{port}"
    folder.mkdir()
    command = (binary, "--port", str(port), "--cluster-port", str(bus_port), "--dir", folder, *NODE_OPTIONS)
    return await processes.start(folder.name, partial(_accepts, port), *command)


async def _join(clients: Sequence[RedisClient], ports: Sequence[int], print_text: PrintText) -> None:
    """Give the primaries their slots and replicas, and wait until all nodes agree."""
    ids = []
    for at, client in enumerate(clients):
        commands: list[tuple[str | int, ...]] = [("CLUSTER", "MYID"), ("CLUSTER", "SET-CONFIG-EPOCH", at + 1)]
        if at < len(SLOTS):
            commands.append(("CLUSTER", "ADDSLOTSRANGE", *SLOTS[at]))
        # Each meets each other one, because gossip takes seconds.
        commands += (("CLUSTER", "MEET", HOST, ports[other], ports[NODES + other]) for other in range(at))
        ids.append((await client.execute(*commands))[0])
    await _wait(clients, _knows_all, "meet")
    print_text(f"{NODES} nodes know each other")
    for client, primary_id in zip(clients[len(SLOTS) :], ids, strict=False):
        await client.execute(("CLUSTER", "REPLICATE", primary_id))
    print_text("the replicas copy their primaries")
    await _wait(clients, _agrees, "agree")


async def _wait(clients: Sequence[RedisClient], check: Callable[[Sequence[bytes]], bool], what: str) -> None:
    end, asked = time.monotonic() + START_SECONDS, (("CLUSTER", "NODES"), ("CLUSTER", "INFO"), ("INFO", "replication"))
    while not all([check(await client.execute(*asked)) for client in clients]):
        if time.monotonic() > end:
            raise DemoFault(f"the nodes of the cluster did not {what}")
        await asyncio.sleep(POLL_SECONDS)


def _knows_all(told: Sequence[bytes]) -> bool:
    rows = parse_rows(told[0])
    return len(rows) == NODES and not any("handshake" in row.flags for row in rows)


def _agrees(told: Sequence[bytes]) -> bool:
    replicas = sum(bool(row.primary) for row in parse_rows(told[0]))
    is_linked = parse_info(told[2]).get("master_link_status", "up") == "up"
    return replicas == len(SLOTS) and is_linked and parse_info(told[1])["cluster_state"] == "ok"


def _settings(folder: Path, redis_url: str) -> Config:
    """Write the settings of the servers into a file that only this user can read, and load them."""
    file = folder / "server.toml"
    rows = {
        "redis": redis_url,
        "data_dir": str(folder / "data"),
        "trusted_proxies": HOST,
        "forwarded_header": "X-Forwarded-For",
    }
    write_private(file, "".join(f'{name} = "{value}"\n' for name, value in rows.items()).encode())
    return config.load({"settings_file": str(file)})


async def _start_servers(settings: Config, processes: DemoProcesses) -> list[int]:
    """Start the servers, wait until they are ready, and return their ports."""
    ports = free_ports(SERVERS)
    await asyncio.gather(*(_start_server(settings, processes, port) for port in ports))
    return ports


async def _start_server(settings: Config, processes: DemoProcesses, port: int) -> None:
    flags = ("--settings-file", settings.settings_file, "--host", HOST, "--port", str(port))
    await processes.start(f"server-{port}", partial(_is_ready, f"http://{HOST}:{port}"), *SERVE, *flags)


async def _is_ready(url: str) -> bool:
    try:
        async with Client(url, attempts=1, seconds=3) as api:
            await api.request("GET", "/readyz")
    except ClientFailure:
        return False
    return True


async def _start_front(processes: DemoProcesses, port: int, servers: list[int], print_text: PrintText) -> str:
    """Start nginx and return its address, or that of the first server if there is no nginx."""
    nginx = find_nginx()
    if nginx is None:
        print_text(NO_NGINX)
        return f"http://{HOST}:{servers[0]}"
    front = port or free_ports(1)[0]
    await _start_nginx(nginx, processes, front, servers)
    return f"http://{HOST}:{front}"


def find_nginx() -> Path | None:
    """Return the path of nginx, or None if it is not installed. It may be outside the PATH of ordinary users."""
    path = os.pathsep.join([*os.get_exec_path(), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("nginx", path=path)
    return None if found is None else Path(found)


async def _start_nginx(nginx: Path, processes: "DemoProcesses", port: int, servers: Sequence[int]) -> None:
    """Start nginx on a port of the loopback before servers on others, and wait until it accepts connections."""
    folder = processes.folder / "nginx"
    folder.mkdir()
    upstream = " ".join(f"server {HOST}:{server};" for server in servers)
    file = folder / "nginx.conf"
    file.write_text(NGINX_CONFIGURATION.format(folder=folder, port=port, servers=upstream))
    await processes.start("nginx", partial(_accepts, port), nginx, "-c", file, "-p", folder)


async def _accepts(port: int) -> bool:
    """Return whether a port of the loopback accepts connections."""
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def _guide(address: str, servers: list[int], names: list[str], core_pid: int) -> str:
    """Return what runs where, and how to see the cluster recover."""
    count = len(SLOTS)
    program = walkthrough.program_name()
    lines = [
        f"stream-server listening on {address}",
        f"  servers    {', '.join(f'http://{HOST}:{port}' for port in servers)}",
        f"  core       {names[0]} (process {core_pid}), replica {names[count]}",
        f"  timelines  {', '.join(names[1:count])}, replicas {', '.join(names[count + 1 :])}",
        f"  check      {program} doctor --redis redis+cluster://{names[1]}",
        f"  fail over  kill -9 {core_pid}    # posts fail for about four seconds, streams stay open",
    ]
    return "\n".join(lines)
