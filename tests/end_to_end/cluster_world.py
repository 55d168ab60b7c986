"""Servers on a Redis Cluster under load: authors who post at a fixed pace, and 100 streams that must get it all.

The core has two replicas, and two servers wait for one of them (``--write-replicas 1``), so nothing that they
acknowledged may be lost. The second one reads the log from a replica. A third server waits for no replica.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from stream_server.events.position import LOG_START
from stream_server.store.jobs.repair import RepairFinding
from stream_server.store.store import Store
from tests.end_to_end.api import Api, mint
from tests.end_to_end.faults.author import Author
from tests.end_to_end.many_streams import ManyStreams, RawStream
from tests.end_to_end.server import Server
from tests.redis_cluster import CORE_SLOT, Node, PrivateCluster
from tests.redis_process import newest
from tests.stream_server.store.people import open_store
from tests.waiting import PATIENCE, eventually

AUTHORS = 10
POSTS_PER_SECOND = 50
STREAMS = 100
FOLLOWERS = 3

FLAGS = ("--canary-seconds", "0.5", "--heartbeat-seconds", "1", "--redis-timeout-seconds", "2")

GOODBYE = re.compile(rb'"kind":"goodbye","cursor":"([^"]+)".*"code":"resync"')
POST = re.compile(rb'\{"kind":"(post|gap)".*')


class PacedAuthor(Author):
    """An author who begins a post every ``AUTHORS / POSTS_PER_SECOND`` seconds, unless the one before takes longer."""

    def __init__(self, uid: str, *apis: Api) -> None:
        super().__init__(uid, *apis)
        self._next = 0.0

    async def _attempt(self, message: str, key: str) -> bool:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, self._next - now))  # the pace of the load; waits for nothing
        self._next = max(self._next, now) + AUTHORS / POSTS_PER_SECOND
        return await super()._attempt(message, key)


class Listening:
    """The streams of one author at one server. All get the same."""

    def __init__(self, author: PacedAuthor, server: Server, count: int) -> None:
        self.author = author
        self._address = server.address
        self.streams = self._open(count)
        self._since = len(author.acknowledged)

    def _open(self, count: int, more: str = "") -> ManyStreams:
        return ManyStreams(self._address, mint(self.author.uid), count, f"follow={self.author.uid}{more}")

    def wanted(self, lost: Collection[str]) -> list[str]:
        """Return the ids of the acknowledged posts since the streams began, without those that were lost."""
        return [one for one in self.author.acknowledged[self._since :] if one not in lost]

    async def until_last(self, lost: Collection[str]) -> None:
        """Wait until each stream has the last post. A stream that the server ended with `resync` is resumed."""
        for last in self.wanted(lost)[-1:]:
            named = f'"id":"{last}"'.encode()
            await asyncio.gather(*(self._until(stream, named) for stream in self.streams.all))

    async def _until(self, stream: RawStream, named: bytes) -> None:
        try:
            await eventually(lambda: named in stream.received or stream.ended.is_set())
        except AssertionError:
            raise AssertionError(f"{named!r} did not come, the last was {bytes(stream.received[-900:])!r}") from None
        goodbye = GOODBYE.search(bytes(stream.received))
        if goodbye is not None:
            stream.ended.clear()
            async with self._open(1, f"&since={goodbye[1].decode()}") as resumed:
                (again,) = resumed.all
                await eventually(lambda: named in again.received, what="the last post after resuming")
                stream.received += again.received

    def complaints(self, lost: Collection[str]) -> Iterator[str]:
        """Yield what is missing, twice, out of order, or a ghost without a gap, by stream."""
        wanted = self.wanted(lost)
        for stream in self.streams.all:
            got, gaps = _posts_of(stream)
            ghosts = set(got) - set(wanted)
            if stream.ended.is_set():
                yield f"a stream of {self.author.uid} ended: {bytes(stream.received[-300:])!r}"
            if [one for one in got if one not in ghosts] != wanted:
                missing = [one for one in wanted if one not in got]
                yield f"of {len(wanted)} posts of {self.author.uid} missing {missing[:5]}, got {len(got)}"
            if max(Counter(got).values(), default=0) > 1:
                yield f"a post of {self.author.uid} twice"
            if ghosts and "rolled_back" not in gaps:
                yield f"ghosts {ghosts} of {self.author.uid} without a gap"


def _posts_of(stream: RawStream) -> tuple[list[str], set[str]]:
    """Return the ids of the posts of a stream, and the reasons of its gaps."""
    messages = [json.loads(found.group()) for found in POST.finditer(bytes(stream.received))]
    posts = [message["status"]["id"] for message in messages if message["kind"] == "post"]
    return posts, {message["reason"] for message in messages if message["kind"] == "gap"}


class ClusterWorld:
    """The cluster, the servers, and what a test asks of them."""

    def __init__(self, cluster: PrivateCluster, servers: Sequence[Server], store: Store) -> None:
        """``store`` is on the same cluster, to look into it during and after faults."""
        self.cluster = cluster
        self.servers = servers
        self.store = store

    @property
    def careful(self) -> Sequence[Server]:
        """The two servers that wait for a replica."""
        return self.servers[:2]

    @staticmethod
    async def is_ready(server: Server) -> bool:
        async with aiohttp.ClientSession() as session, session.get(f"{server.address}/readyz") as answer:
            return bool(answer.status == 200)

    @staticmethod
    async def warns(server: Server, sentence: str) -> bool:
        """Whether the server warns of this, for those who may read the metrics."""
        async with aiohttp.ClientSession() as session, session.get(f"{server.address}/readyz") as answer:
            return sentence in (await answer.json()).get("warnings", [])

    async def jobs(self) -> int:
        """Return the number of jobs that wait, also those that failed too often."""
        depth = await self.store.job_queue.measure_depth()
        return depth.total + depth.parked

    async def repair_findings(self, *, fix: bool = False) -> list[RepairFinding]:
        """Wait until no job is left, and return what `repair` then finds and, with ``fix``, repairs."""

        async def is_idle() -> bool:
            return await self.jobs() == 0

        await eventually(is_idle, what="no job is left")
        return await self.store.repair.run(fix=fix)

    async def posts_on_log(self) -> dict[str, list[tuple[str, str]]]:
        """Return the ids and messages of all posts on the log, by author, in order."""
        found, after = dict[str, list[tuple[str, str]]](), LOG_START
        while entries := await self.store.log.read(after, 1000):
            for status in (json.loads(entry.wire)["status"] for entry in entries if entry.kind == "post"):
                found.setdefault(status["uid"], []).append((status["id"], status["message"]))
            after = entries[-1].position
        return found

    def logs(self) -> list[Node]:
        """Return the primaries that have a log. More than one would be a fork."""
        return [node for node in self.cluster.primaries() if node.run("CLUSTER", "COUNTKEYSINSLOT", CORE_SLOT)]

    def heal(self, killed: Sequence[Node] = ()) -> None:
        """Undo all faults, and wait until the cluster is whole."""
        for node in killed:
            node.start()
        self.cluster.close_slot(CORE_SLOT)
        self.cluster.agreed()


class Load:
    """Ten authors and 100 streams for the time of one fault.

    Attributes:
        lost: The ids of acknowledged posts that are not on the log, after :meth:`finish`.
    """

    def __init__(self, world: ClusterWorld, writing: Sequence[Server]) -> None:
        """``writing`` are the servers that the authors use in turn."""
        self._world = world
        self._writing = writing
        self._stack = AsyncExitStack()
        self.authors: list[PacedAuthor] = []
        self.listening: list[Listening] = []
        self.lost: set[str] = set()

    async def __aenter__(self) -> Self:
        apis = [await self._stack.enter_async_context(Api(server)) for server in self._writing]
        logins = [f"{apis[0].admin[-6:]}{at}x" for at in range(AUTHORS + FOLLOWERS)]
        people = list((await apis[0].users(logins)).values())
        for uid in people[:AUTHORS]:
            for follower in people[AUTHORS:]:
                await apis[0].follow(follower, uid)
        self.authors = [PacedAuthor(uid, *apis) for uid in people[:AUTHORS]]
        each = STREAMS // AUTHORS // len(self._world.careful)
        for author in self.authors:
            for server in self._world.careful:
                listening = Listening(author, server, each)
                await self._stack.enter_async_context(listening.streams)
                self.listening.append(listening)
        for author in self.authors:
            await author.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        for author in self.authors:
            await author.__aexit__(kind, error, tb)
        await self._stack.aclose()

    @property
    def acknowledged(self) -> int:
        return sum(len(author.acknowledged) for author in self.authors)

    @property
    def refused(self) -> Counter[str]:
        return sum((author.refused for author in self.authors), Counter())

    async def goes_on(self, seconds: float) -> None:
        """Wait until as many more posts are acknowledged as come in ``seconds``."""
        target = self.acknowledged + int(seconds * POSTS_PER_SECOND)

        def is_there() -> bool:
            for author in self.authors:
                assert not author._failed(), author._task
            return self.acknowledged >= target

        await eventually(is_there, seconds=PATIENCE + 4 * seconds, what=f"posts acknowledged; refused: {self.refused}")

    async def finish(self, *, may_lose: bool = False) -> list[str]:
        """Stop the authors, wait until all streams have the last posts, and return all complaints.

        With ``may_lose``, an acknowledged post that is lost is no complaint if each stream that had it was told.
        """
        await asyncio.gather(*(author.stop() for author in self.authors))
        posts = await self._world.posts_on_log()
        on_log = {one for author in self.authors for one, _ in posts.get(author.uid, [])}
        self.lost = {one for author in self.authors for one in author.acknowledged} - on_log
        left_out = self.lost if may_lose else set()
        found = []
        for author in self.authors:
            numbered = [(one, f"number {number}") for number, one in enumerate(author.acknowledged)]
            if posts.get(author.uid, []) != [each for each in numbered if each[0] not in left_out]:
                found.append(f"{author.uid}: {len(numbered)} acknowledged, on the log {posts.get(author.uid)}")
        for each in self.listening:
            await each.until_last(self.lost)
            found += each.complaints(left_out)
        return found


@asynccontextmanager
async def cluster_world(folder: Path) -> AsyncIterator[ClusterWorld]:
    """Run the cluster and the three servers."""
    with ExitStack() as stack:
        cluster = stack.enter_context(PrivateCluster(newest()))
        cluster.add_node().run("CLUSTER", "REPLICATE", cluster.owner().id)
        cluster.agreed()
        careful = ("--write-replicas", "1")
        near = (*careful, "--redis-read", cluster.url)
        servers = [
            stack.enter_context(Server(folder / str(at), "--redis", cluster.url, *FLAGS, *more))
            for at, more in enumerate((careful, near, ()))
        ]
        async with open_store(cluster.url) as store:
            yield ClusterWorld(cluster, servers, store)
