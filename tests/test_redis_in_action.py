"""The defects of the program that chapter 8 of *Redis in Action* builds, as far as no other test has them.

The book's server was the model of this one, and the docstrings use its names. ``end_to_end/test_bad_input.py`` has the
defects in what a server refuses.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from filters.event import Event
from filters.sample import Sample
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.end_to_end.api import Api
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess
from tests.stream_server.store.job_queue import drain, home
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import ids
from tests.waiting import PATIENCE


@pytest.fixture
def redis_client(server: Server) -> Iterator[Any]:
    with server.redis_client() as client:
        yield client


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    """A store whose job passes handle five users and whose timelines hold eight statuses."""
    made = Store(redis_url, size_limits=SizeLimits(timeline_max=8, fanout_batch_size=5), timeout_seconds=PATIENCE)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def raw(redis_server: RedisProcess) -> Iterator[Any]:
    with redis_server.client() as client:
        yield client


async def told(consumer: Consumer, *expected: tuple[str, str]) -> None:
    """Check the events of a stream and their order."""
    await consumer.until(lambda c: len(c.received) >= len(expected))
    assert consumer.received == list(expected)


# The streaming half: filters, framing, connections.


@pytest.mark.parametrize("base", [{"sample": "100"}, {"track": "walrus"}, {"locations": "20,50,21,51"}])
async def test_every_filter_survives_a_delete(api: Api, base: dict[str, str]) -> None:
    """The book's deleted status had only texts: `'5' % 100` raised in the sample and ended the stream."""
    uid = await api.user()
    async with await api.stream(base) as consumer:
        made = [await api.post(uid, "a walrus", location={"lon": 20.5, "lat": 50.5}) for _ in range(2)]
        for one in made:
            await api.delete(uid, one["id"])
        expected = [("post", one["id"]) for one in made] + [("delete", one["id"]) for one in made]
        await consumer.until(lambda c: set(expected) <= set(c.received))
        assert [one for one in consumer.received if one in expected] == expected


async def test_a_delete_reaches_exactly_those_whom_the_post_reached(api: Api) -> None:
    """A good idea of the book: the whole post decides which streams receive its delete, but its text is not sent."""
    uid = await api.user()
    async with await api.stream({"track": "okapi"}) as hears, await api.stream({"track": "tapir"}) as other:
        made = await api.post(uid, "an okapi")
        tapir = await api.post(uid, "a tapir")
        await api.delete(uid, made["id"])
        await told(hears, ("post", made["id"]), ("delete", made["id"]))
        assert hears.of("delete")[0]["status"] == {"id": made["id"], "uid": uid, "deleted": True}
        await other.reached(hears.of("delete")[0]["cursor"])
        assert other.received == [("post", tapir["id"])]


async def test_the_confirmation_of_a_subscription_is_no_event(api: Api, redis_client: Any) -> None:
    """The book parsed the confirmation of SUBSCRIBE as an event. Here the feed subscribes while streams are open."""
    uid = await api.user()
    async with await api.stream({"follow": uid}) as consumer:
        for turn in range(3):
            assert redis_client.client_kill_filter(_type="pubsub") >= 1
            await api.post(uid, f"after {turn}")
            await consumer.until(lambda c, turn=turn: len(c.received) == turn + 1)  # type: ignore[misc]  # the default's type
        assert not consumer.ended


def threads(server: Server) -> int:
    assert server.process is not None
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted by Linux")
async def test_a_client_costs_no_thread_and_no_connection_to_redis(api: Api, redis_client: Any, server: Server) -> None:
    """In the book, each client had a thread and a connection."""

    def listeners() -> int:
        return len([one for one in redis_client.client_list() if int(one["sub"]) > 0])

    async with await api.stream({"track": "a"}):
        before = threads(server), listeners(), len(redis_client.client_list())
        assert before[1] == 1
        consumers = [await api.stream({"track": f"word{i}"}) for i in range(60)]
        assert await api.metric("streams") >= 61
        # Requests may open connections meanwhile, which all requests share; none belongs to a stream.
        assert (threads(server), listeners()) == before[:2]
        assert len(redis_client.client_list()) < before[2] + 60
        for consumer in consumers:
            await consumer.close()


async def test_a_token_names_the_user_and_does_not_choose_the_sample(api: Api) -> None:
    """In the book, the URL gave any `identifier`, which seeded the sample. Here a token names the user."""
    for headers in ({}, {"Authorization": "Bearer identifier"}):
        answer = await api.call("GET", "/v1/stream", params={"sample": "50"}, headers=headers)
        assert answer.error[:2] == (401, "invalid_token")
    ann, bob = await api.user(), await api.user()
    async with (
        await api.stream({"sample": "50"}, uid=ann) as first,
        await api.stream({"sample": "50"}, uid=bob) as second,
    ):
        made = [(await api.post(ann, f"{i}"))["id"] for i in range(40)]
        head = await api.head()
        await first.reached(head)
        await second.reached(head)
        assert first.received == second.received
        sampled = Sample(Decimal(50))
        own = [one for _, one in first.received if one in made]
        assert own == [one for one in made if sampled.matches(Event("post", status_id=one))]


async def test_all_filters_that_are_given_count(api: Api) -> None:
    """The book used only the first filter. Here any of three lets a post in, and a post that matches none stays out."""
    uid, other = await api.user(), await api.user()
    async with await api.stream({"track": "lemur", "follow": uid, "locations": "30,50,31,51"}) as consumer:
        made = [
            await api.post(other, "a lemur"),
            await api.post(uid, "followed"),
            await api.post(other, "there", location={"lon": 30.5, "lat": 50.5}),
        ]
        await api.post(other, "neither")
        made.append(await api.post(uid, "the last lemur"))
        await told(consumer, *(("post", one["id"]) for one in made))


# The social half: timelines and what is done later.


async def followers_of_one_moment(store: Store, raw: Any, count: int) -> tuple[str, list[str]]:
    """Create an author and followers who all followed in the same millisecond."""
    author, *fans = await People(store).users(count + 1)
    for fan in fans:
        await store.follows.follow(fan, author, IdempotencyKey.generate())
        raw.zadd(keys.key_for("following", fan), {author: 1_800_000_000_000})
    raw.zadd(keys.key_for("followers", author), dict.fromkeys(fans, 1_800_000_000_000))
    return author, fans


async def test_a_status_reaches_all_list_and_home_timelines(store: Store, raw: Any) -> None:
    """The book's `syndicate_status_list` queued a task with wrong arguments, so only the first pass had an effect."""
    author, fans = await followers_of_one_moment(store, raw, 18)
    lists = []
    for fan in fans[:12]:
        made = json.loads(await store.lists.create(fan, "mine", "", False, IdempotencyKey.generate()))
        await store.lists.add_member(fan, made["id"], author, IdempotencyKey.generate())
        lists.append(made["id"])
    status = (await People(store).status(author))["id"]
    assert sum(status in home(raw, fan) for fan in fans) == 5
    await drain(store, raw)
    assert all(home(raw, fan) == {status} for fan in fans)
    for fan, list_id in zip(fans, lists, strict=False):
        assert ids(await store.timelines.read_list(fan, list_id, PageRequest())) == [status]
    await store.statuses.delete(author, status, IdempotencyKey.generate())
    await drain(store, raw)
    assert not any(home(raw, fan) for fan in fans)
    assert not any(raw.exists(keys.list_timeline(list_id)) for list_id in lists)


async def test_a_list_that_loses_a_member_is_refilled(store: Store, raw: Any) -> None:
    """The book's `unfollow_user_list` called the refill without its connection."""
    people = People(store)
    owner, stays, goes = await people.users(3)
    made = json.loads(await store.lists.create(owner, "mine", "", False, IdempotencyKey.generate()))["id"]
    old = [(await people.status(stays))["id"] for _ in range(6)]
    for _ in range(8):
        await people.status(goes)
    for member in (stays, goes):
        await store.lists.add_member(owner, made, member, IdempotencyKey.generate())
    await drain(store, raw)
    await store.lists.remove_member(owner, made, goes, IdempotencyKey.generate())
    await drain(store, raw)
    assert ids(await store.timelines.read_list(owner, made, PageRequest())) == old[::-1]


@pytest.mark.parametrize("count", [1, 3, 7])
async def test_followers_of_one_moment_are_paged_exactly_once(store: Store, raw: Any, count: int) -> None:
    """The book paged followers by score alone, so followers of one moment came twice or never.

    Here both directions work.
    """
    author, fans = await followers_of_one_moment(store, raw, 17)
    down, piece = [], PageRequest(count)
    while True:
        page = await store.follows.list_followers(author, author, piece)
        down += ids(page)
        if page.next is None:
            break
        piece = PageRequest(count, before=page.next)
    assert len(down) == len(set(down)) == 17
    assert set(down) == set(fans)
    up, piece = ids(page)[::-1], PageRequest(count, after=page.prev)
    while piece.after is not None:
        page = await store.follows.list_followers(author, author, piece)
        up += ids(page)[::-1]
        piece = PageRequest(count, after=page.prev)
    assert up == down[::-1]


async def test_two_follows_at_once_both_count(store: Store, raw: Any) -> None:
    """In the book, a follow set the counters to totals read before, so of two follows at once one was lost."""
    author, *fans = await People(store).users(31)
    verbs = [store.follows.follow] * 3 + [store.follows.unfollow]
    await asyncio.gather(*(verb(fan, author, IdempotencyKey.generate()) for verb in verbs for fan in fans[:10]))
    await asyncio.gather(*(store.follows.follow(fan, author, IdempotencyKey.generate()) for fan in fans))
    for uid in (author, *fans):
        counted = [int(one) for one in raw.hmget(keys.key_for("user", uid), "followers", "following")]
        assert counted == [raw.zcard(keys.key_for("followers", uid)), raw.zcard(keys.key_for("following", uid))]
    assert raw.zcard(keys.key_for("followers", author)) == 30
