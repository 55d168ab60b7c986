"""The census of open streams: in each order, page by page, and when other processes or Redis do not answer."""

from typing import Any, cast, get_args

import msgspec
import pytest

from stream_server.errors import ApiError, InvalidCursor, Unavailable
from stream_server.feed import stream_census
from stream_server.feed.stream_census import Order, StreamCensus, StreamRow
from stream_server.feed.stream_sums import SumOrder
from stream_server.hub.client import Client, drop_bytes
from stream_server.store.social.open_streams import CensusQuestion
from tests.stream_server.hub.world import World


class Others:
    """Processes that answer each question at once, by their own census, or an outage of Redis."""

    def __init__(self, *census: StreamCensus, silent: int = 0, error: ApiError | None = None) -> None:
        self.census, self.silent, self.error = census, silent, error
        self.answers: list[bytes] = []

    async def living_processes(self, _now_ms: int) -> set[str]:
        if self.error is not None:
            raise self.error
        return {"own", *(f"other{n}" for n in range(len(self.census) + self.silent))}

    async def ask(self, question: CensusQuestion) -> None:
        self.answers = []
        for each in self.census:
            await each.answer(msgspec.json.decode(msgspec.json.encode(question), type=CensusQuestion))

    async def answer(self, _question: CensusQuestion, described: list[bytes]) -> None:
        self.answers += described

    async def read_answers(self, _question: CensusQuestion) -> list[bytes]:
        return self.answers


class Still(Client):
    """A client that neither reads nor is live, with numbers in another order each."""

    def __init__(self, world: World, user: str, number: int) -> None:
        super().__init__(world.request(user=user, track="tea"), drop_bytes)
        self.opened_ms = 1_700_000_000_000.5 + number * 3 % 7
        self.written_before_joining = number * 4 % 7
        self._waiting = number * 5 % 7

    def buffered_bytes(self) -> float:
        return self._waiting


def census_of(world: World, others: Others, process: str = "own") -> StreamCensus:
    return StreamCensus(world.hub, cast(Any, others), process, 1)


def census_of_two(*users: str) -> StreamCensus:
    """Return the census of one of two processes, each of which has a stream of each user, a post each, and a poll."""
    worlds = World(), World()
    worlds[1]._requests = opened = 100
    for world in worlds:
        world.poll(world.request(track="tea"))
        for user in users:
            opened += 1
            world.hub.registry.add(Still(world, user, opened))
            world.post("tea")
    others = Others()
    others.census = (census_of(worlds[1], others, "other"),)
    return census_of(worlds[0], others)


async def read_all(census: StreamCensus, order: Order, count: int, user: str | None = None) -> list[StreamRow]:
    """Return the rows of all pages."""
    rows, before = list[StreamRow](), None
    while True:
        page = await census.read_page(order, count, before, user)
        assert page.complete
        assert len(page.rows) <= count
        rows += page.rows
        before = page.next
        if before is None:
            assert page.total == len(rows)
            return rows


@pytest.mark.parametrize("order", get_args(Order))
@pytest.mark.parametrize("count", [1, 3, 100])
async def test_each_stream_of_all_processes_is_on_one_page_and_in_order(
    monkeypatch: pytest.MonkeyPatch, order: Order, count: int
) -> None:
    """Polls are no streams. Each slice has one client, so what a slice keeps is compared with the next ones."""
    monkeypatch.setattr(stream_census, "SLICE_CLIENTS", 1)
    census = census_of_two("1", "2", "1", "1")
    rows = await read_all(census, order, count)
    assert len({row.connection for row in rows}) == len(rows) == 8
    member = {"behind": "behind", "buffer": "buffer_bytes", "delivered": "delivered", "opened": "opened"}[order]
    values = [getattr(row, member) for row in rows]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 1
    assert {row.uid for row in await read_all(census, order, count, "2")} == {"2"}
    assert [row.uid for row in await read_all(census, order, count, "3")] == []
    found = await census.find(rows[-1].connection)
    assert found is not None
    assert found.connection == rows[-1].connection
    assert await census.find("none") is None


async def test_who_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_census, "ANSWER_SECONDS", 0.05)
    world = World()
    world.open(track="tea")
    for others in (Others(silent=1), Others(error=Unavailable("away"))):
        page = await census_of(world, others).read_page("behind", 10)
        assert (len(page.rows), page.total, page.next, page.complete) == (1, 1, None, False)


@pytest.mark.parametrize("place", ["", "7", "~c1", "x~c1", "nan~c1", "inf~c1", "7~"])
async def test_another_place_is_refused(place: str) -> None:
    with pytest.raises(InvalidCursor):
        await census_of(World(), Others()).read_page("behind", 10, place)


@pytest.mark.parametrize("order", get_args(SumOrder))
async def test_streams_of_all_processes_are_added_up_by_user(monkeypatch: pytest.MonkeyPatch, order: SumOrder) -> None:
    """Polls do not count, equal sums have an order, and a process tells of its largest users only."""
    monkeypatch.setattr(stream_census, "SLICE_CLIENTS", 2)
    census = census_of_two("1", "2", "1", "1", "")
    rows = await read_all(census, "opened", 100)
    sums, total, complete = await census.read_sums(order, 10)
    assert (total, complete, len(sums)) == (10, True, 3)
    values = [getattr(each, order) for each in sums]
    assert values == sorted(values, reverse=True)
    assert sums[0].uid == "1"
    for each in sums:
        own = [row for row in rows if (row.uid, row.reader) == (each.uid, each.reader)]
        assert each.streams == len(own)
        assert each.delivered == sum(row.delivered for row in own)
        assert each.buffer == sum(row.buffer_bytes for row in own)
        assert each.behind == max(row.behind for row in own)
    monkeypatch.setattr(stream_census, "MAX_SUMS", 1)
    assert [each.uid for each in (await census.read_sums("streams", 10))[0]] == ["1"]
