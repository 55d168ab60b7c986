"""Runs ``stream-server cluster demo``: six Redis nodes, two servers and nginx, with the content of ``serve --demo``.

All of it is on the loopback, in a temporary folder, and ends with the demo. The servers share one random key of tokens.
"""

import asyncio
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path

from stream_server.client import Client, ClientFailure
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.demo import walkthrough
from stream_server.demo.local_cluster import (
    HOST,
    ChildProcesses,
    DemoFault,
    LocalCluster,
    find_nginx,
    free_ports,
    start_cluster,
    start_front,
)
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.runtime.private_folder import PrivateFolder
from stream_server.runtime.sign_in_link import make_first_link
from stream_server.security.tokens import TokenAuthority
from stream_server.store.social.sign_ins import SignIn

SERVERS = 2
TOKEN_SECONDS = 86_400

NO_NGINX = "nginx is not installed, so nothing spreads clients over the two servers: use either address"

PrintText = Callable[[str], None]


async def run(port: int, print_text: PrintText) -> None:
    """Run the demo until SIGINT or SIGTERM. ``port`` is that of nginx; 0 means any free one.

    Raises `DemoFault` if it cannot start.
    """
    _stop_at_signals()
    try:
        binary = find_redis_binary().path
    except EmbeddedRedisError as error:
        raise DemoFault(str(error)) from None
    with suppress(asyncio.CancelledError):
        async with AsyncExitStack() as stack:
            private = PrivateFolder()
            stack.callback(private.remove)
            children = await stack.enter_async_context(ChildProcesses(private.path))
            print_text("starting six Redis nodes")
            cluster = await start_cluster(binary, children, print_text)
            settings = _settings(private.path, cluster.url)
            print_text(f"starting {SERVERS} servers")
            servers = await _start_servers(settings, children)
            address = await _start_front(children, port, servers, print_text)
            print_text(_guide(address, servers, cluster))
            await _run_content(settings, address, print_text)
            await asyncio.Event().wait()
    print_text("stopped")


def _stop_at_signals() -> None:
    """Cancel the current task at the first SIGINT or SIGTERM. Later ones do nothing: they would break off the stop."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def stop() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, _ignore)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def _ignore() -> None:
    """Do nothing at a signal."""


def _settings(folder: Path, redis_url: str) -> Config:
    """Write the settings of the servers into a file that only this user can read, and load them."""
    file = folder / "server.toml"
    file.touch(mode=0o600)
    rows = {
        "redis": redis_url,
        "jwt_secret": secrets.token_hex(32),
        "trusted_proxies": HOST,
        "forwarded_header": "X-Forwarded-For",
    }
    file.write_text("".join(f'{name} = "{value}"\n' for name, value in rows.items()))
    return config.load({"settings_file": str(file)})


async def _start_servers(settings: Config, children: ChildProcesses) -> list[int]:
    """Start the servers, wait until they are ready, and return their ports."""
    ports = free_ports(SERVERS)
    await asyncio.gather(*(_start_server(settings, children, port) for port in ports))
    return ports


async def _start_server(settings: Config, children: ChildProcesses, port: int) -> None:
    name = f"server-{port}"
    flags = ("--settings-file", settings.settings_file, "--host", HOST, "--port", str(port))
    process = await children.start(name, sys.executable, "-m", "stream_server", "serve", *flags)
    await children.wait_for(name, process, partial(_is_ready, f"http://{HOST}:{port}"))


async def _is_ready(url: str) -> bool:
    try:
        async with Client(url, attempts=1, seconds=3) as api:
            await api.request("GET", "/readyz")
    except ClientFailure:
        return False
    return True


async def _start_front(children: ChildProcesses, port: int, servers: list[int], print_text: PrintText) -> str:
    """Start nginx and return its address, or that of the first server if there is no nginx."""
    nginx = find_nginx()
    if nginx is None:
        print_text(NO_NGINX)
        return f"http://{HOST}:{servers[0]}"
    front = port or free_ports(1)[0]
    await start_front(nginx, children, front, servers)
    return f"http://{HOST}:{front}"


async def _run_content(settings: Config, address: str, print_text: PrintText) -> None:
    authority = TokenAuthority(settings, settings.jwt_secret)

    def sign_token(user_id: str, scopes: frozenset[str]) -> str:
        return authority.issue(user_id, scopes, TOKEN_SECONDS, time.time())[0]

    async def make_link(user_id: str, scopes: frozenset[str]) -> str:
        return await make_first_link(settings, address, SignIn(user_id, scopes))

    await walkthrough.run_demo(address, sign_token, make_link, print_text)


def _guide(address: str, servers: list[int], cluster: LocalCluster) -> str:
    """Return what runs where, and how to see the cluster recover."""
    primaries = len(cluster.nodes) // 2
    program = sys.argv[0] if Path(sys.argv[0]).name == "stream-server" else "stream-server"
    names = [f"{HOST}:{node.port}" for node in cluster.nodes]
    lines = [
        f"stream-server listening on {address}",
        f"  servers    {', '.join(f'http://{HOST}:{port}' for port in servers)}",
        f"  core       {names[0]} (process {cluster.core.pid}), replica {names[primaries]}",
        f"  timelines  {', '.join(names[1:primaries])}, replicas {', '.join(names[primaries + 1 :])}",
        f"  check      {program} doctor --redis redis+cluster://{names[1]}",
        f"  fail over  kill -9 {cluster.core.pid}    # posts fail for about four seconds, streams stay open",
    ]
    return "\n".join(lines)
