"""A subscription hands over the messages of one read at once and in order, and waits for the listener's work."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.subscription import Subscription, Work
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis

CHANNELS = ("first", "second")


@pytest.fixture
async def subscription(redis_url: str) -> AsyncIterator[Subscription]:
    client = RedisClient(redis_url, 5.0)
    with closing(await client.subscribe(CHANNELS)) as opened:
        yield opened
    await client.close()


class Listener:
    """Notes what happens. ``work_after`` names a message that leaves work: to wait for ``may_go_on``."""

    def __init__(self, work_after: str = "") -> None:
        self.seen: list[str] = []
        self.may_go_on = asyncio.Event()
        self._work_after = work_after

    def handle(self, message: bytes) -> Work | None:
        self.seen.append(message.decode())
        return self._work if message.decode() == self._work_after else None

    def after_read(self) -> None:
        self.seen.append("|")

    async def _work(self) -> None:
        await self.may_go_on.wait()
        self.seen.append("worked")

    def heard(self, *messages: str) -> Callable[[], bool]:
        return lambda: [each for each in self.seen if each != "|"] == list(messages)


def _publish(raw: "redis.Redis", *messages: str) -> None:
    """Publish in one transaction, so that all messages arrive in one read."""
    with raw.pipeline(transaction=True) as together:
        for number, message in enumerate(messages):
            together.publish(CHANNELS[number % 2], message)
        together.execute()


async def test_one_read_is_handed_over_at_once_and_in_order(subscription: Subscription, raw: "redis.Redis") -> None:
    listener = Listener()
    listening = asyncio.create_task(subscription.deliver(listener.handle, listener.after_read))
    await eventually(lambda: listener.seen == ["|"], what="it listens")
    _publish(raw, "a", "b", "c")
    await eventually(listener.heard("a", "b", "c"))
    assert listener.seen == ["|", "a", "b", "c", "|"]
    listening.cancel()


async def test_the_last_message_of_a_read_is_known(subscription: Subscription, raw: "redis.Redis") -> None:
    seen: list[tuple[bytes, bool]] = []
    _publish(raw, "kept 1", "kept 2")
    listening = asyncio.create_task(subscription.deliver(lambda m: seen.append((m, subscription.has_more()))))
    await eventually(lambda: len(seen) == 2)
    _publish(raw, "a", "b", "c")
    await eventually(lambda: len(seen) == 5)
    _publish(raw, "d")
    await eventually(lambda: len(seen) == 6)
    assert [has_more for _, has_more in seen] == [True, False, True, True, False, False]
    listening.cancel()


async def test_messages_before_the_listener_are_kept(subscription: Subscription, raw: "redis.Redis") -> None:
    _publish(raw, "a", "b")
    listener = Listener()
    listening = asyncio.create_task(subscription.deliver(listener.handle))
    await eventually(listener.heard("a", "b"))
    listening.cancel()


async def test_the_next_message_waits_for_the_work(subscription: Subscription, raw: "redis.Redis") -> None:
    listener = Listener(work_after="b")
    listening = asyncio.create_task(subscription.deliver(listener.handle, listener.after_read))
    await eventually(lambda: listener.seen == ["|"], what="it listens")
    _publish(raw, "a", "b", "c", "d")
    await eventually(listener.heard("a", "b"))
    _publish(raw, "e")
    assert raw.pubsub_numsub("first") == [(b"first", 1)]
    assert listener.heard("a", "b")()
    listener.may_go_on.set()
    await eventually(listener.heard("a", "b", "worked", "c", "d", "e"))
    listening.cancel()


async def test_an_error_of_the_listener_ends_the_delivery(subscription: Subscription, raw: "redis.Redis") -> None:
    def refuse(message: bytes) -> None:
        raise ZeroDivisionError(message)

    listening = asyncio.create_task(subscription.deliver(refuse))
    await asyncio.sleep(0)
    _publish(raw, "a", "b")
    with pytest.raises(ZeroDivisionError, match="a"):
        await listening


async def test_a_lost_connection_gives_its_last_messages_first(subscription: Subscription, raw: "redis.Redis") -> None:
    listener = Listener(work_after="a")
    listening = asyncio.create_task(subscription.deliver(listener.handle))
    _publish(raw, "a", "b")
    await eventually(listener.heard("a"))
    assert raw.client_kill_filter(_type="pubsub") == 1
    listener.may_go_on.set()
    with pytest.raises(Unavailable):
        await listening
    assert listener.heard("a", "worked", "b")()


async def test_a_lost_subscription_leaves_no_reference_cycle(redis_url: str, raw: "redis.Redis") -> None:
    client = RedisClient(redis_url, 5.0)
    gc.collect()
    gc.disable()
    try:
        subscription = await client.subscribe(CHANNELS)
        gone = weakref.ref(subscription)
        assert raw.client_kill_filter(_type="pubsub") == 1
        for _ in range(2):  # whoever asks again is told again
            with suppress(Unavailable):
                await subscription.deliver(Listener().handle)
                pytest.fail("it has ended")
        del subscription
        await eventually(lambda: gone() is None, what="the subscription to be freed")
    finally:
        gc.enable()
        await client.close()


async def test_a_refused_subscription_is_unavailable(redis_url: str, raw: "redis.Redis") -> None:
    client = RedisClient(redis_url, 5.0)
    raw.config_set("maxclients", 1)
    try:
        with pytest.raises(Unavailable):
            await client.subscribe(CHANNELS)
    finally:
        raw.config_set("maxclients", 10_000)
        await client.close()
