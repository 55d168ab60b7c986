"""Graphs that are read in pages while they change: each step is small, and the log's entries make them exact."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis

from stream_server.errors import InternalError
from stream_server.events.position import LOG_START
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer import Viewer
from stream_server.store import keys
from stream_server.store.social import user_graph
from stream_server.store.social.user_graph import RELATIONS
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key

Watch = Callable[[str, Any], Awaitable[None]]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_graph, "MAX_STEP_RELATIONS", 4)
    monkeypatch.setattr(user_graph, "PAGE_MEMBERS", 3)


def watch_calls(store: Store, monkeypatch: pytest.MonkeyPatch, watch: Watch) -> None:
    """Call ``watch`` with the last command and the replies of each read of a graph, before the reader goes on."""
    redis = store.user_graphs._redis
    run_pipeline = redis.run_pipeline

    async def watched(commands: Any, timeout_seconds: float) -> Any:
        replies = await run_pipeline(commands, timeout_seconds)
        last = commands[-1]
        name = last.split(b"\r\n")[2].decode() if isinstance(last, bytes) else last[0]
        if name in ("ZSCAN", "XREVRANGE"):
            await watch(name, replies)
        return replies

    monkeypatch.setattr(redis, "run_pipeline", watched)


def stored(raw: "redis.Redis", uid: str) -> list[dict[str, int]]:
    """The relations of a user as Redis has them now."""
    found: list[Any] = [raw.zrange(keys.key_for(name, uid), 0, -1, withscores=True) for name in RELATIONS]
    return [{member.decode(): int(score) for member, score in pairs} for pairs in found]


def ended_of(stored_ends: dict[str, int]) -> dict[tuple[str, int], int]:
    """The relations that ended, of the set that Redis has."""
    ended = {}
    for member, end in stored_ends.items():
        other, _, begin = member.partition("-")
        ended[other, int(begin)] = end
    return ended


class Changes:
    """Changes the relations of one user at random, by the store's own writes."""

    def __init__(self, store: Store, uid: str, others: list[str], seed: int) -> None:
        self.store, self.uid, self.others = store, uid, others
        self.source = random.Random(seed)
        self.made = 0

    async def change(self) -> None:
        """Make one random change."""
        store, me, other = self.store, self.uid, self.source.choice(self.others)
        acts: list[tuple[Any, str, str]] = [
            (store.follows.follow, me, other), (store.follows.unfollow, me, other), (store.follows.follow, me, other),
            (store.blocks.block, other, me), (store.blocks.unblock, other, me), (store.blocks.block, me, other),
            (store.blocks.unblock, me, other), (store.mutes.mute, me, other), (store.mutes.unmute, me, other),
        ]  # fmt: skip
        act, source, target = self.source.choice(acts)
        try:
            await act(source, target, new_key())
        except Exception:  # noqa: BLE001 - a follow of a user who is blocked is refused, and changes nothing
            return
        self.made += 1


@pytest.fixture
def _pages_of_small_sets(raw: Any) -> Iterator[None]:
    """Let Redis return also small sets in pages."""
    name = "zset-max-listpack-entries"
    before = raw.config_get(name)[name]
    raw.config_set(name, 0)
    yield
    raw.config_set(name, before)


@pytest.mark.usefixtures("_pages_of_small_sets")
@pytest.mark.parametrize("seed", range(3))
async def test_a_graph_read_in_pages_while_it_changes_is_exact_at_its_head(
    store: Store, people: People, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    me, *others = await people.users(14)
    changes = Changes(store, me, others, seed)
    for _ in range(60):
        await changes.change()
    pages = 0

    async def change_meanwhile(name: str, reply: Any) -> None:
        nonlocal pages
        pages += name == "ZSCAN"
        for _ in range(3):
            await changes.change()

    with monkeypatch.context() as patched:
        watch_calls(store, patched, change_meanwhile)
        before = changes.made
        graph = await store.user_graphs.get_graph(me)
        assert (changes.made > before, pages >= len(RELATIONS), graph.applied_from < graph.head) == (True, True, True)
    for _ in range(10):
        await changes.change()
    viewer = Viewer(me, RestrictedAccounts())
    viewer.load(graph)
    for entry in await store.log.read(LOG_START, 10_000):
        if me in entry.event.user_ids:
            viewer.apply(entry)
    *relations, ended = stored(raw, me)
    assert [viewer.following, viewer.blocks, viewer.blockers, viewer.mutes, viewer.groups] == relations
    assert viewer.ended == ended_of(ended) != {}


async def test_the_first_relation_of_a_user_whose_numbers_were_just_read_comes_by_the_log(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis may do another command between two of a call."""
    ann, bob = await people.users(2)
    redis = store.user_graphs._redis
    run_pipeline = redis.run_pipeline

    async def interrupted(commands: Any, timeout_seconds: float) -> Any:
        monkeypatch.undo()
        replies = await run_pipeline(commands[:-1], timeout_seconds)
        await store.blocks.block(ann, bob, new_key())
        return [*replies, *await run_pipeline(commands[-1:], timeout_seconds)]

    monkeypatch.setattr(redis, "run_pipeline", interrupted)
    graph = await store.user_graphs.get_graph(ann)
    blocked_at = await store.log.head()
    assert (graph.blocks, graph.applied_from < blocked_at, graph.head) == ({}, True, blocked_at)


async def test_a_relation_that_comes_before_the_read_of_a_small_graph_is_in_it_up_to_its_head(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob, carl = await people.users(3)
    await store.mutes.mute(ann, carl, new_key())

    async def block(_: str, __: Any) -> None:
        monkeypatch.undo()
        await store.blocks.block(ann, bob, new_key())

    watch_calls(store, monkeypatch, block)
    graph = await store.user_graphs.get_graph(ann)
    blocked_at = await store.log.head()
    assert (set(graph.blocks), graph.applied_from < blocked_at, graph.head) == ({bob}, True, blocked_at)


async def test_no_step_reads_more_than_its_share_and_large_sets_are_complete(
    store: Store, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Redis returns a set of at most 128 members at once, and of others about as many members as are asked for."""
    for number, name in enumerate(RELATIONS):
        members = {f"{member}-{member}": member // 20 for member in range(9 * number, 1000)}
        raw.zadd(keys.key_for(name, "1"), members)
    sizes: list[int] = []

    async def measure(name: str, replies: Any) -> None:
        sizes.extend(len(reply[1]) // 2 for reply in replies if name == "ZSCAN")

    watch_calls(store, monkeypatch, measure)
    monkeypatch.setattr(user_graph, "PAGE_MEMBERS", 30)
    graph = await store.user_graphs.get_graph("1")
    *relations, ended = stored(raw, "1")
    assert (list(graph[:5]), graph.ended) == (relations, ended_of(ended))
    assert max(sizes) < 128
    assert len(sizes) > 100


async def test_small_graphs_share_calls_and_wait_for_no_large_one(
    store: Store, raw: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid in ("1", "2", "3", "4"):
        raw.zadd(keys.key_for("following", uid), {"8": 1, "9": 2})
    raw.zadd(keys.key_for("blockers", "7"), {str(member): 5 for member in range(50)})
    calls: list[str] = []
    may_go_on = asyncio.Event()

    async def hold_pages(name: str, replies: Any) -> None:
        calls.append(name)
        if name == "ZSCAN":
            await may_go_on.wait()

    watch_calls(store, monkeypatch, hold_pages)
    assert not any((await store.user_graphs.get_graph("5"))[:6])
    assert calls == ["XREVRANGE"]  # of a user without relations only their numbers are read
    await asyncio.gather(*map(store.user_graphs.get_graph, ("1", "2", "5")))
    assert calls == ["XREVRANGE"] * 3
    asked = [store.user_graphs.get_graph(uid) for uid in ("7", "1", "2", "3", "4")]
    small = await asyncio.gather(*asked[1:])
    assert [set(graph.following) for graph in small] == [{"8", "9"}] * 4
    assert calls[3:].count("XREVRANGE") == 1 + 2, "numbers, then two steps"
    assert not asked[0].done()
    may_go_on.set()
    assert len((await asked[0]).blockers) == 50


async def test_a_user_is_among_the_protected_accounts_while_protected(store: Store, people: People) -> None:
    ann, _ = await people.users(2)
    for is_protected, found in ((True, {ann}), (False, set())):
        await store.users.update(ann, {"protected": is_protected}, new_key())
        assert (await store.user_graphs.get_restricted_accounts()).protected == found


async def test_restricted_accounts_are_read_in_pages(store: Store, people: People, raw: "redis.Redis") -> None:
    raw.sadd(keys.key_for("protected"), *map(str, range(2000)))
    raw.zadd(keys.key_for("suspended"), {str(member): 7 for member in range(40)})
    await people.user("ann")
    found = await store.user_graphs.get_restricted_accounts()
    assert found[:2] == (frozenset(map(str, range(2000))), frozenset(map(str, range(40))))
    assert found.applied_from == found.head == await store.log.head()


async def test_a_large_read_that_fails_fails_for_its_user_only(store: Store, raw: "redis.Redis") -> None:
    raw.zadd(keys.key_for("following", "1"), {"8": 1})
    raw.set(keys.key_for("mutes", "1"), "no set")
    raw.zadd(keys.key_for("following", "2"), {"8": 1})
    asked = [store.user_graphs.get_graph(uid) for uid in ("1", "2")]
    assert set((await asked[1]).following) == {"8"}
    with pytest.raises(InternalError):
        await asked[0]
