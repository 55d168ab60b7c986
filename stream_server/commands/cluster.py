"""The command ``cluster``: make a Redis Cluster for the server, move its core, and check it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from stream_server.commands.exit_codes import FAILED, OK, CommandFailure
from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.store.redis import cluster_layout
from stream_server.store.redis.cluster_check import ClusterFinding, check_cluster
from stream_server.store.redis.cluster_move import move_core as run_move
from stream_server.store.redis.cluster_node import CORE_SLOT, AdminNodes, ClusterFault, Say, parse_address

TIMEOUT_SECONDS = 10.0

EPILOG = """
\b
Examples:
  stream-server cluster create 10.0.0.1:6379 10.0.0.2:6379 10.0.0.3:6379 10.0.0.4:6379 10.0.0.5:6379 10.0.0.6:6379 \\
      --replicas 1
  stream-server cluster check 10.0.0.1:6379
  stream-server cluster move-core 10.0.0.7:6379 --member 10.0.0.1:6379
  stream-server cluster demo
"""


def _login_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--ca-file", default="", metavar="FILE", help="Certificates to trust; implies --tls."),
        click.option("--tls", is_flag=True, help="Connect with TLS."),
        click.option("--password", default="", envvar="REDISCLI_AUTH", show_envvar=True,
                     help="Password of the nodes; `redis-cli` reads the same variable."),
        click.option("--username", default="", help="User of the nodes, if not the default one."),
    ):  # fmt: skip
        function = option(function)
    return function


def _nodes(login: dict[str, Any]) -> AdminNodes:
    options: dict[str, Any] = {"username": login["username"] or None, "password": login["password"] or None}
    if login["tls"] or login["ca_file"]:
        options |= {"ssl": True, "ssl_ca_certs": login["ca_file"] or None}
    return AdminNodes(TIMEOUT_SECONDS, **options)


def _run(work: Any) -> Any:
    try:
        return asyncio.run(work)
    except ClusterFault as fault:
        raise CommandFailure(str(fault)) from None


@click.group(epilog=EPILOG)
def cluster() -> None:
    """Make a Redis Cluster for the server, move its core, and check it."""


@cluster.command()
@click.argument("nodes", nargs=-1, required=True, metavar="HOST:PORT…")
@click.option("--replicas", type=click.IntRange(0, 5), default=1, show_default=True, help="Replicas of each primary.")
@JSON_OPTION
@_login_options
def create(*, nodes: tuple[str, ...], replicas: int, as_json: bool, **login: Any) -> None:
    """Make a cluster of empty nodes. The first one becomes the primary of the core, whose slot is alone on its shard.

    All nodes run in cluster mode (`cluster-enabled yes`), and their ports and bus ports are open to each other.
    """
    _run(_create(nodes, replicas, partial(click.echo, err=as_json), login))
    if as_json:
        print_json({"redis": _url(nodes)})


def _url(names: tuple[str, ...]) -> str:
    return f"redis+cluster://{','.join(names)}"


async def _create(names: tuple[str, ...], replicas: int, say: Say, login: dict[str, Any]) -> None:
    async with _nodes(login) as nodes:
        if len({*names}) < len(names):
            raise ClusterFault("a node is named twice")
        made = [nodes.connect(parse_address(name)) for name in names]
        shards = cluster_layout.plan_shards(made, replicas)
        for node in made:
            await cluster_layout.check_empty(node)
        for shard, ranges in zip(shards, cluster_layout.plan_ranges(len(shards)), strict=True):
            slots = ", ".join(f"{first}-{last}" if last > first else f"{first} (the core)" for first, last in ranges)
            copies = ", ".join(node.name for node in shard[1:]) or "none"
            say(f"primary {shard[0].name}: slots {slots}; replicas: {copies}")
        await cluster_layout.create(shards, say)
        say(f"all nodes agree: start servers with --redis {_url(names)}")


@cluster.command()
@click.argument("node", metavar="HOST:PORT")
@click.option("--member", default="", metavar="HOST:PORT", help="Any node of the cluster, if HOST:PORT is a new one.")
@click.option("--copy-seconds", type=click.FloatRange(1), default=3600.0, show_default=True,
              help="Longest wait for the copy of the data.")  # fmt: skip
@JSON_OPTION
@_login_options
def move_core(*, node: str, member: str, copy_seconds: float, as_json: bool, **login: Any) -> None:
    """Make HOST:PORT the primary of the core: a replica of it or a new node. No acknowledged write is lost."""
    seconds = _run(_move_core(node, member, copy_seconds, partial(click.echo, err=as_json), login))
    if as_json:
        print_json({"core": node, "seconds": round(seconds, 3)})


async def _move_core(node: str, member: str, copy_seconds: float, say: Say, login: dict[str, Any]) -> float:
    async with _nodes(login) as nodes:
        target = nodes.connect(parse_address(node))
        known = nodes.connect(parse_address(member)) if member else target
        seconds = await run_move(nodes, target, known, copy_seconds, say)
    if seconds:
        say(f"{node} owns slot {CORE_SLOT}; the failover took {seconds * 1000:.0f} ms")
        say("the old primary is its replica now, and may be stopped when another replica is there")
    return seconds


@cluster.command()
@click.argument("node", metavar="HOST:PORT")
@click.option("--write-replicas", type=click.IntRange(0, 16), default=0, show_default=True, help="As the servers have.")
@JSON_OPTION
@_login_options
@click.pass_context
def check(context: click.Context, /, *, node: str, write_replicas: int, as_json: bool, **login: Any) -> None:
    """Say what is set up wrongly in the cluster of HOST:PORT. The exit code is 1 if writes would be refused."""
    found: list[ClusterFinding] = _run(_check(node, write_replicas, login))
    if as_json:
        print_json([{"grave": finding.is_grave, "sentence": finding.sentence} for finding in found])
    else:
        for finding in found:
            click.echo(f"{'NO' if finding.is_grave else '!!'} {finding.sentence}")
        if not found:
            click.echo("ok: the cluster is set up well")
    context.exit(FAILED if any(finding.is_grave for finding in found) else OK)


@cluster.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port of nginx; any free one by default.")
def demo(*, port: int) -> None:
    """Start a cluster with two servers and nginx on this machine, with sample content, until Ctrl-C.

    It needs redis-server 7 or newer. Without nginx it shows the addresses of both servers.
    """
    # Imported here, because importing the server takes time and other commands do not need it.
    from stream_server.demo import child_processes, cluster_demo  # noqa: PLC0415 - see above

    try:
        _run(cluster_demo.run(port, click.echo))
    except child_processes.DemoFault as fault:
        raise CommandFailure(str(fault)) from None


async def _check(node: str, write_replicas: int, login: dict[str, Any]) -> list[ClusterFinding]:
    async with _nodes(login) as nodes:
        return await check_cluster(nodes, nodes.connect(parse_address(node)), write_replicas)
