"""The command ``cluster demo``: a Redis Cluster with two servers on this machine."""

import asyncio

import click

from stream_server.commands.exit_codes import CommandFailure


@click.group()
def cluster() -> None:
    """Try a server on a Redis Cluster of this machine."""


@cluster.command()
@click.option("--port", type=click.IntRange(0, 65_535), default=0, help="Port of nginx; any free one by default.")
def demo(*, port: int) -> None:
    """Start a cluster with two servers and nginx on this machine, with sample content, until Ctrl-C.

    Without nginx it shows the addresses of both servers.
    """
    # Imported here, because importing the server takes time and other commands do not need it.
    from stream_server.demo import cluster_demo  # noqa: PLC0415 - see above

    try:
        asyncio.run(cluster_demo.run(port, click.echo))
    except cluster_demo.DemoFault as fault:
        raise CommandFailure(str(fault)) from None
