"""Runs a demo on a Redis Cluster until Ctrl-C: six nodes, two servers and nginx, with the content of ``serve --demo``.

``make cluster`` runs it, with the packages that a server needs and no others. The nodes are three primaries, each with
a replica, as docs/cluster.md lays them out. All of it is on the loopback, in one temporary folder, and ends with the
demo, also if the demo is killed.
"""

import asyncio
import secrets
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from stream_server.config import config
from stream_server.config.data_folder import SECRET_FILE, make_private, write_private
from stream_server.demo import walkthrough
from tests.end_to_end.nginx import Nginx, find_nginx, shipped
from tests.end_to_end.server import Server
from tests.preloaded.launcher import AnyProcess
from tests.redis_cluster import PRIMARIES, PrivateCluster
from tests.redis_process import newest

AS_ADVISED = (
    "--cluster-allow-replica-migration", "yes", "--hash-max-listpack-value", "1024",
    "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
)  # fmt: skip
"""Options of a node beside those of tests. A replica goes where none is left."""

BEHIND_NGINX = ("--trusted-proxies", "127.0.0.1", "--forwarded-header", "X-Forwarded-For")
NO_NGINX = "nginx is not installed, so nothing spreads clients over the two servers: use either address"

WATCH = 'while read -r pid; do pids="$pids $pid"; done; kill $pids; until rm -rf "$1"; do sleep 0.1; done'
"""Reads the ids of processes from a pipe. When the demo dies, the kernel closes the pipe, and the shell ends them.

While they end, they may write files into a folder that is just being removed.
"""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port of nginx; any free one by default.")
def main(*, port: int) -> None:
    """Start a Redis Cluster with two servers and nginx on this machine, with sample content, until Ctrl-C."""
    for number in SIGNALS:
        signal.signal(number, _stop)
    try:
        with ExitStack() as stack:
            _run(stack, port)
    except KeyboardInterrupt:
        click.echo("stopped")
    except (AssertionError, TimeoutError) as error:
        raise click.ClickException(str(error)) from None


def _stop(_number: int, _frame: object) -> None:
    """Begin the stop. A later signal does nothing: it would break the stop off."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _run(stack: ExitStack, port: int) -> None:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ssd-"))
    tempfile.tempdir = folder  # the nodes and nginx make their folders in it
    watcher = subprocess.Popen(
        ["/bin/sh", "-c", WATCH, "-", folder],
        stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    stack.callback(watcher.communicate)
    stack.callback(watcher.kill)  # before its pipe closes, so that it ends no other process with an old id

    def watch(process: AnyProcess | None) -> None:
        assert process is not None
        assert watcher.stdin is not None
        watcher.stdin.write(b"%d\n" % process.pid)
        watcher.stdin.flush()

    click.echo("starting six Redis nodes")
    cluster = PrivateCluster(newest(), *AS_ADVISED)
    stack.callback(cluster.stop)
    cluster.start(made=False)
    for node in cluster.nodes:
        watch(node.process)
    click.echo("making the cluster")
    cluster.make()
    click.echo("starting two servers")
    key = secrets.token_hex(32)
    own = {f"STREAM_SERVER_{name}": None for name in ("JWT_SECRET", "LIMITS", "PASSWORD_MEMORY_KIB")}
    servers = [
        Server(Path(folder) / name, "--redis", cluster.url, *BEHIND_NGINX, variables=own, preloaded=False)
        for name in ("first", "second")
    ]
    for server in servers:  # commands find one of the servers, and the key in its data folder
        make_private(server.data)
        write_private(server.data / SECRET_FILE, key.encode())
    for server in servers:
        watch(server.start().process)
        stack.callback(server.stop)  # not killed, so it takes the file along by which commands find it
    addresses = [server.address for server in servers]
    address = addresses[0]
    if find_nginx() is None:
        click.echo(NO_NGINX)
    else:
        nginx = stack.enter_context(Nginx(shipped(addresses), port))
        watch(nginx.process)
        address = nginx.address
    click.echo(_guide(address, addresses, cluster))
    settings = config.load({"redis": cluster.url, "jwt_secret": key})
    asyncio.run(walkthrough.run_demo(settings, address, click.echo))
    signal.pause()


def _guide(address: str, servers: list[str], cluster: PrivateCluster) -> str:
    """Return what runs where, and how to see the cluster recover."""
    names = [f"127.0.0.1:{node.port}" for node in cluster.nodes]
    core = cluster.nodes[0].process
    assert core is not None
    lines = [
        f"stream-server listening on {address}",
        f"  servers    {', '.join(servers)}",
        f"  core       {names[0]} (process {core.pid}), replica {names[PRIMARIES]}",
        f"  timelines  {', '.join(names[1:PRIMARIES])}, replicas {', '.join(names[PRIMARIES + 1 :])}",
        f"  check      {Path(sys.executable).with_name('stream-server')} doctor --redis redis+cluster://{names[1]}",
        f"  fail over  kill -9 {core.pid}    # posts fail for about four seconds, streams stay open",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
