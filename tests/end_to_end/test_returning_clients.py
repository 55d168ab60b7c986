"""From replay to live: clients leave and return at random positions of a log that grows all the time.

Each visit is compared with the log: it must have received exactly the entries from its starting point up to its last
cursor, in order.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from stream_server.client import Backoff, Client, Event, Gap, Post
from stream_server.client.connection import Framing
from stream_server.store import keys
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import CONTROL, number
from tests.end_to_end.faults.author import Author
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.faults.site import Site, site
from tests.redis_process import RedisProcess
from tests.waiting import eventually

AUTHORS = 6
CLIENTS = 9
VISITS = 8
CUTS = 20

RING_BYTES = 40_000
"""Some dozens of entries. A client that was away for longer reads from the log, the others from the ring."""

AWAY = (0, 0, 0, 3, 15, 120)
"""Numbers of posts that a client misses before it returns. It chooses one at random."""


class Line(NamedTuple):
    n: int
    ms: int
    uid: str
    status_id: str


class Visit(NamedTuple):
    """One visit: the users followed (all if empty), where it began, what it received, and the last number."""

    followed: frozenset[str]
    since: str
    behind: int
    received: list[str]
    reached: int


def log_of(redis: RedisProcess) -> list[Line]:
    with redis.client() as client:
        rows: Any = client.xrange(keys.LOG)
    return list(_lines(rows))


def _lines(rows: Sequence[tuple[bytes, dict[bytes, bytes]]]) -> Iterator[Line]:
    for entry_id, fields in rows:
        if fields[b"k"] == b"post":
            status = msgspec.json.decode(fields[b"e"])["wire"]["status"]
            yield Line(int(fields[b"n"]), int(entry_id.split(b"-")[0]), status["uid"], status["id"])


def due(visit: Visit, log: Sequence[Line]) -> list[str]:
    """Return the entries that the visit must receive: those after a cursor, or those from a time on."""
    if visit.since.endswith("Z"):
        ms = round(datetime.fromisoformat(visit.since).timestamp() * 1000)
        behind = [line for line in log if line.ms >= ms]
    else:
        behind = [line for line in log if line.n > number(visit.since)]
    followed = [line for line in behind if not visit.followed or line.uid in visit.followed]
    return [line.status_id for line in followed if line.n <= visit.reached]


class ReturningClient:
    """A client that comes and goes. It returns to its last cursor, to an older one, or by a time."""

    def __init__(self, seed: int, broken: Site, followed: frozenset[str], authors: Sequence[Author]) -> None:
        self.chance = random.Random(seed)
        self.site = broken
        self.followed = followed
        self.authors = authors
        self.visits: list[Visit] = []
        self.places: list[tuple[str, str]] = []

    async def live(self) -> None:
        while len(self.visits) < VISITS:
            await self._visit(self._since())
            await self._be_away(self.chance.choice(AWAY))

    def _since(self) -> str:
        """Choose a cursor or a time of the past, most often the last cursor."""
        if not self.places:
            return self.site.head()
        last = self.places[-1][0]
        cursor, at = self.chance.choice(self.places[-60:])
        return self.chance.choice((last, last, last, cursor, at))

    async def _visit(self, since: str) -> None:
        framing = self.chance.choice(("sse", "ndjson"))
        params = {"follow": ",".join(self.followed)} if self.followed else {"firehose": "true"}
        by_header = framing == "sse" and not since.endswith("Z")
        given = params | ({} if by_header else {"since": since})
        api: Api = self.chance.choice(self.site.apis)
        behind = 0 if since.endswith("Z") else number(self.site.head()) - number(since)
        consumer = await api.stream(given, framing=framing, last_event_id=since if by_header else None)
        patience = self.chance.randint(1, 40)
        await consumer.until(lambda c: len(c.events) >= patience or len(c.of("heartbeat")) > 3)
        if self.chance.random() < 0.5 and consumer.response.connection is not None:
            transport = consumer.response.connection.transport
            assert transport is not None
            transport.abort()
        await consumer.close()
        assert not consumer.of("gap")
        assert not consumer.of("goodbye")
        heard = [event["status"]["id"] for event in consumer.events]
        self.visits.append(Visit(self.followed, since, behind, heard, number(consumer.cursor)))
        self.places += [(m["cursor"], m["at"]) for m in consumer.messages if m["kind"] not in CONTROL]
        self.places.append((consumer.cursor, consumer.messages[-1]["at"]))

    async def _be_away(self, posts: int) -> None:
        before = self._written()
        await eventually(lambda: self._written() >= before + posts, what="more entries on the log")

    def _written(self) -> int:
        return sum(len(author.acknowledged) for author in self.authors)


@pytest.mark.extended
@pytest.mark.parametrize(
    "layout", [pytest.param("one worker", marks=pytest.mark.nightly), "two workers", "two servers"]
)
async def test_no_visit_misses_repeats_or_reorders_events(tmp_path: Path, layout: str) -> None:
    """Clients visit any server from their earlier cursors and from times, while six authors post without a pause."""
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(site(tmp_path, layout, "--ring-bytes", str(RING_BYTES), direct=True))
        uids = [await made.apis[0].user() for _ in range(AUTHORS)]
        await made.apis[0].post(made.apis[0].admin, "the log begins")
        authors = [await stack.enter_async_context(Author(uid, *made.apis)) for uid in uids]
        whom = (frozenset(uids), frozenset(uids[:2]), frozenset[str]())
        clients = [ReturningClient(seed, made, whom[seed % 3], authors) for seed in range(CLIENTS)]
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.live())
        for author in authors:
            await author.stop()
        log = log_of(made.redis)
    visits = [visit for client in clients for visit in client.visits]
    for visit in visits:
        assert visit.received == due(visit, log), visit
    for author in authors:
        assert [line.status_id for line in log if line.uid == author.uid] == author.acknowledged
    # The visits covered all cases: within the ring, far behind it, and with nothing to read.
    assert sum(bool(visit.received) for visit in visits) > len(visits) / 2
    assert any(0 < visit.behind <= 15 for visit in visits)
    assert any(visit.behind > 100 for visit in visits)
    assert any(visit.since.endswith("Z") for visit in visits)


class Reading:
    def __init__(self, client: Client, followed: str, framing: Framing) -> None:
        self.client = client
        swift = Backoff(initial_seconds=0.02, max_seconds=0.2)
        self.stream = client.stream(follow=followed, framing=framing, backoff=swift)
        self.messages: list[Event] = []

    @property
    def ids(self) -> list[str]:
        return [message.status.id for message in self.messages if isinstance(message, Post)]

    def has_more_than(self, count: int, task: "asyncio.Task[None]") -> bool:
        return task.done() or len(self.messages) > count

    async def run(self) -> None:
        async with self.client:
            async for message in self.stream:
                self.messages.append(message)


async def reading(proxy: Proxy, followed: str, uid: str, framing: Framing) -> tuple[Reading, "asyncio.Task[None]"]:
    url = "http://{}:{}".format(*proxy.address)
    made = Reading(Client(url, lambda: mint(uid)), followed, framing)
    task = asyncio.create_task(made.run())
    await eventually(lambda: made.stream.connections == 1, what="the client to connect")
    return made, task


def address(api: Api) -> tuple[str, int]:
    host, port = api.server.address.removeprefix("http://").split(":")
    return host, int(port)


@pytest.mark.parametrize("framing", ["sse", "ndjson", pytest.param("websocket", marks=pytest.mark.extended)])
async def test_the_client_library_yields_each_event_once_over_a_link_that_is_cut(
    tmp_path: Path, framing: Framing
) -> None:
    """The link is cut twenty times at any byte.

    The client yields each acknowledged post once and in order, without gaps.
    """
    async with AsyncExitStack() as stack:
        made = await stack.enter_async_context(site(tmp_path, "one worker", "--retry-ms", "20", direct=True))
        (api,) = made.apis
        uid = await api.user()
        proxy = await stack.enter_async_context(Proxy(address(api), tcp=True))
        read, task = await reading(proxy, uid, uid, framing)
        async with Author(uid, api) as author:
            for turn in range(CUTS):
                await eventually(partial(read.has_more_than, len(read.messages), task), what=f"turn {turn}")
                if turn % 3 == 0:
                    await author.has_posted(5)
                await proxy.cut()
        await eventually(lambda: task.done() or len(read.ids) >= len(author.acknowledged), what="all")
        task.cancel()
        await asyncio.wait({task})
        assert read.ids == author.acknowledged
        assert not [message for message in read.messages if message.kind == "gap"]
        assert proxy.cuts >= CUTS
        assert read.stream.connections >= CUTS


async def test_the_client_library_yields_a_gap(tmp_path: Path) -> None:
    """The client's position is trimmed while it is away.

    It yields the gap with its count, and the remaining posts once.
    """
    async with site(tmp_path, "one worker", "--ring-bytes", "0", "--retry-ms", "20", direct=True) as made:
        (api,) = made.apis
        uid = await api.user()
        async with Proxy(address(api), tcp=True) as proxy:
            read, task = await reading(proxy, uid, uid, "sse")
            first = (await api.post(uid, "first"))["id"]
            await eventually(lambda: read.ids == [first], what="the first")
            proxy.refuse()
            await proxy.cut()
            posted = [(await api.post(uid, f"number {n}"))["id"] for n in range(5)]
            with made.redis.client() as client:
                rows: Any = client.xrange(keys.LOG)
                client.xtrim(keys.LOG, minid=rows[-2][0], approximate=False)
            await eventually(lambda: proxy.refused > 0, what="an attempt to reconnect")
            proxy.refuse(False)
            await eventually(lambda: task.done() or read.ids[-1] == posted[-1], what="the last")
            task.cancel()
            await asyncio.wait({task})
        assert read.ids == [first, *posted[-2:]]
        (gap,) = [message for message in read.messages if isinstance(message, Gap)]
        assert (gap.reason, gap.count) == ("trimmed", 3)
