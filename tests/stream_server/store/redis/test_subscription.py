"""A subscription hands over the messages of one read at once and in order, and waits for the listener's work."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import closing, suppress
from typing import Any

import pytest
import redis

from stream_server.errors import Unavailable
from stream_server.store.redis import subscription as subscription_module
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.subscription import MAX_WAITING_BYTES, MESSAGE_BYTES, Subscription, Work
from tests.waiting import eventually

pytestmark = pytest.mark.every_redis

CHANNELS = ("first", "second")


@pytest.fixture
def aside() -> list[bytes]:
    """What was read of the channel ``aside``."""
    return []


@pytest.fixture
async def subscription(redis_url: str, aside: list[bytes]) -> AsyncIterator[Subscription]:
    client = RedisClient(redis_url, 5.0)
    with closing(await client.subscribe(CHANNELS, {"aside": aside.append})) as opened:
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

    async def note_drop(self) -> None:
        self.seen.append("dropped")

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


async def test_redis_keeps_nothing_for_a_listener_that_works(subscription: Subscription, raw: "redis.Redis") -> None:
    """The subscription reads on. Redis would disconnect a subscriber for whom it keeps a megabyte."""
    before: Any = raw.config_get("client-output-buffer-limit")
    listener = Listener(work_after="a")
    listening = asyncio.create_task(subscription.deliver(listener.handle))
    _publish(raw, "a")
    await eventually(listener.heard("a"))
    raw.config_set("client-output-buffer-limit", "pubsub 1mb 0 0")
    sent = [f"{number} {'x' * 1000}" for number in range(MAX_WAITING_BYTES // 2000)]
    try:
        for message in sent:
            raw.publish("first", message)
            await asyncio.sleep(0)
    finally:
        raw.config_set("client-output-buffer-limit", before["client-output-buffer-limit"])
    listener.may_go_on.set()
    await eventually(listener.heard("a", "worked", *sent))
    listening.cancel()


async def test_too_many_waiting_messages_are_dropped_and_the_listener_is_told(
    subscription: Subscription, raw: "redis.Redis", aside: list[bytes]
) -> None:
    """Nothing waits until the listener has been told: it reads all of that elsewhere. What stands aside is kept."""
    listener = Listener(work_after="a")
    listening = asyncio.create_task(subscription.deliver(listener.handle, on_dropped=listener.note_drop))
    _publish(raw, "a", "b")
    await eventually(listener.heard("a"))
    big = "x" * (MAX_WAITING_BYTES // 4)
    raw.publish("aside", "first")
    for _ in range(4):
        raw.publish("first", big)
    raw.publish("first", "later")
    raw.publish("aside", "last")
    await eventually(lambda: aside == [b"first", b"last"], what="all to be read")
    assert (subscription._has_dropped, len(subscription._waiting)) == (True, 0)
    listener.may_go_on.set()
    await eventually(listener.heard("a", "worked", "dropped"))
    _publish(raw, "c")
    await eventually(listener.heard("a", "worked", "dropped", "c"))
    listening.cancel()


async def test_waiting_messages_without_bytes_are_counted(
    subscription: Subscription, raw: "redis.Redis", aside: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take memory, and the time of other tasks when they are handed over."""
    monkeypatch.setattr(subscription_module, "MAX_WAITING_BYTES", 100 * MESSAGE_BYTES)
    monkeypatch.setattr(subscription_module, "SLICE_BYTES", 10 * MESSAGE_BYTES)
    listener = Listener(work_after="a")
    listening = asyncio.create_task(subscription.deliver(listener.handle, listener.after_read, listener.note_drop))
    _publish(raw, "a", *[""] * 100)
    await eventually(lambda: len(subscription._waiting) == 100)
    listener.may_go_on.set()
    await eventually(lambda: len(listener.seen) > 100 and listener.seen[-1] == "|")
    runs = "".join(each or "." for each in listener.seen[listener.seen.index("worked") :]).split("|")
    assert {len(run.removeprefix("worked")) for run in runs} <= {0, 10}, "ten in each turn of the loop"

    listener.may_go_on.clear()
    _publish(raw, "a", *[""] * 101)
    raw.publish("aside", "last")
    await eventually(lambda: aside == [b"last"], what="all to be read")
    assert (subscription._has_dropped, len(subscription._waiting)) == (True, 0)
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
        subscription = await client.subscribe(CHANNELS, {})
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
            await client.subscribe(CHANNELS, {})
    finally:
        raw.config_set("maxclients", 10_000)
        await client.close()
