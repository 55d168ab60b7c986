"""The cache of viewers: the users without a stream whose viewers are kept, and how these stay current."""

import asyncio

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer import VIEWER_WEIGHT
from stream_server.hub.visibility.viewer_cache import ViewerCache
from tests.stream_server.hub.world import Graph, World, user_json
from tests.waiting import eventually


class Store:
    """The relations of users, and the users who were read, in order."""

    def __init__(self) -> None:
        self.graphs: dict[str, Graph] = {}
        self.read: list[str] = []
        self.failures = 0

    async def get_graph(self, user_id: str) -> Graph:
        """Return the relations of a user after a moment, or fail if ``failures`` says so."""
        self.read.append(user_id)
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise Unavailable("Redis does not answer")
        return self.graphs.get(user_id, Graph())

    def cache(self, max_kept_relations: int) -> ViewerCache:
        """Return a cache that reads from this store."""
        return ViewerCache(RestrictedAccounts(), self.get_graph, max_kept_relations)


async def test_a_user_who_returns_is_not_read_again() -> None:
    store = Store()
    viewers = store.cache(2 * VIEWER_WEIGHT)
    for user in ("1", "2", "1", "2"):
        await viewers.get(user)
    assert (store.read, len(viewers), len(viewers._kept)) == (["1", "2"], 2, 2)


async def test_the_viewer_that_was_unused_for_longest_is_dropped_first() -> None:
    store = Store()
    viewers = store.cache(2 * VIEWER_WEIGHT)
    for user in ("1", "2", "1", "3"):
        await viewers.get(user)
    assert viewers.get_loaded("2") is None
    assert viewers.get_loaded("1") is not None
    assert (store.read, len(viewers)) == (["1", "2", "3"], 2)


async def test_a_viewer_with_too_many_relations_lives_only_as_long_as_its_streams() -> None:
    store = Store()
    store.graphs["1"] = Graph(following=dict.fromkeys(map(str, range(VIEWER_WEIGHT + 1)), 1))
    viewers = store.cache(2 * VIEWER_WEIGHT)
    stream_of_1 = await viewers.get("1")
    assert (len(viewers), len(viewers._kept)) == (1, 0)
    assert viewers.get_loaded("1") is stream_of_1
    del stream_of_1
    await asyncio.sleep(0)  # the loop lets go of the future that gave it
    assert len(viewers) == 0
    await viewers.get("2")  # the memory of the dropped viewer counts no more
    await viewers.get("3")
    assert len(viewers._kept) == 2


async def test_callers_of_one_user_share_a_read() -> None:
    store = Store()
    viewers = store.cache(0)
    asked = [asyncio.create_task(viewers.get("1")) for _ in range(3)]
    assert len({id(viewer) for viewer in await asyncio.gather(*asked)}) == 1
    assert store.read == ["1"]


async def test_a_read_that_fails_fails_for_all_who_wait_and_the_next_caller_reads_again() -> None:
    store = Store()
    store.failures = 1
    viewers = store.cache(0)
    results = await asyncio.gather(*(viewers.get("1") for _ in range(3)), return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert (await viewers.get("1")).is_loaded
    assert store.read == ["1", "1"]


async def test_a_caller_that_leaves_ends_the_read_of_no_other() -> None:
    store = Store()
    viewers = store.cache(0)
    first, second = (asyncio.create_task(viewers.get("1")) for _ in range(2))
    await asyncio.sleep(0)  # the first one begins the read, the second one waits for it
    first.cancel()
    assert (await second).is_loaded
    assert (first.cancelled(), store.read) == (True, ["1"])


async def test_a_read_that_nobody_uses_leaves_nothing() -> None:
    store = Store()
    viewers = store.cache(2 * VIEWER_WEIGHT)
    await viewers.start_reading("1")
    await eventually(lambda: len(viewers) == 0)
    store.failures = 1
    viewers.start_reading("2")
    await eventually(lambda: len(viewers) == 0)
    assert (len(viewers._kept), viewers._reads, store.read) == (0, {}, ["1", "2"])


async def test_a_viewer_that_is_dropped_while_it_is_read_is_read_again() -> None:
    store = Store()
    viewers = store.cache(0)
    asked = [asyncio.create_task(viewers.get("1")) for _ in range(2)]
    await asyncio.sleep(0)
    viewers.clear()
    assert len({id(viewer) for viewer in await asyncio.gather(*asked)}) == 1
    assert store.read == ["1", "1"]


async def test_viewers_read_from_lost_entries_are_not_kept() -> None:
    store = Store()
    store.graphs = {"1": Graph(head=Position(1, 0, 5)), "2": Graph(head=LOG_START)}
    viewers = store.cache(2 * VIEWER_WEIGHT)
    for user in ("1", "2"):
        await viewers.get(user)
    viewers.forget_read_between(Position(1, 0, 4), Position(1, 0, 9))
    assert (viewers.get_loaded("1"), len(viewers._kept)) == (None, 1)
    viewers.clear()
    assert (len(viewers), len(viewers._kept)) == (0, 0)
    for user in ("3", "4"):
        await viewers.get(user)
    assert len(viewers._kept) == 2


async def test_viewers_of_which_some_page_may_show_lost_entries_are_read_again() -> None:
    """Their pages were read from before the loss until after it, or they are still being read."""

    class Paged(Graph):
        applied_from = Position(1, 0, 3)

    store = Store()
    store.graphs = {"1": Paged(head=Position(1, 0, 12)), "2": Paged(head=Position(1, 0, 4))}
    viewers = store.cache(4 * VIEWER_WEIGHT)
    for user in ("1", "2"):
        await viewers.get(user)
    waits = asyncio.create_task(viewers.get("3"))
    await asyncio.sleep(0)  # its read has begun
    viewers.forget_read_between(Position(1, 0, 4), Position(1, 0, 9))
    assert (viewers.get_loaded("1") is None, viewers.get_loaded("2") is None) == (True, False)
    await waits
    assert store.read == ["1", "2", "3", "3"]


async def test_a_stream_of_a_user_who_returns_obeys_a_block_made_meanwhile(world: World) -> None:
    first, _ = world.open(user="1", track="red")
    await world.until_live()
    first.connection_lost()
    world.publish("block", "users:1", source=user_json("1"), target=user_json("7"))
    _, again = world.open(user="1", track="red")
    await world.until_live()
    world.post("red 1", uid="7")
    world.post("red 2", uid="8")
    await again.expect_texts("red 2")
