"""This server, and a plain aiohttp server with a queue for each client."""

from importlib.metadata import version
from typing import ClassVar

from bench import lineup
from bench.peers.peer import Peer
from bench.peers.programs import said
from bench.site import ROOT, Site


class StreamServer(lineup.StreamServer, Peer):
    """Our server, with one worker process."""

    chooses: ClassVar = {
        "firehose": "all posts", "topic": "`track`: one word of ten", "tracks": "`track`: that word or one of its own",
    }  # fmt: skip
    settings = (
        "default settings, one process; limits are counted but high. Posts go to a second process, so its CPU time "
        "includes Redis' messages but not the posts. Each post is on the disk before it is sent"
    )

    def __init__(self, site: Site) -> None:
        super().__init__(site, "stream-server")

    def version(self) -> str:
        commit = said("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD").strip()
        return f"{version('social-stream-server')} ({commit})" if " " not in commit else version("stream-server")


class QueueServer(lineup.QueueServer, Peer):
    """An aiohttp server with a queue and a task for each client, which awaits each write."""

    column = "aiohttp + queue"
    chooses: ClassVar = {"firehose": "all posts", "topic": "a set of words", "tracks": "a set of words"}
    settings = "`bench/queue_server.py`; no tokens, no history; the same Redis messages as stream-server"

    def version(self) -> str:
        return f"aiohttp {version('aiohttp')}"
