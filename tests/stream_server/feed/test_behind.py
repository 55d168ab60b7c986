"""A feed that is behind: Redis keeps nothing for it, it loses no entry, and it asks Redis for none twice."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from stream_server.store.redis import subscription as subscription_module
from stream_server.store.social.open_streams import ASK_CHANNEL
from tests.redis_process import RedisProcess
from tests.stream_server.feed.conftest import NEVER
from tests.stream_server.feed.node import LIMITS, LogWriter, Node, record_checks
from tests.waiting import eventually


async def test_a_subscriber_that_redis_cuts_for_its_output_buffer_misses_nothing(
    without_canary: Node, writer: LogWriter, redis_server: RedisProcess
) -> None:
    node, client = without_canary, writer.client
    before: Any = client.config_get("client-output-buffer-limit")
    noted = _cut_notes(redis_server)
    client.config_set("client-output-buffer-limit", "pubsub 65536 0 0")
    try:
        positions = [writer.write()]
        await node.expect_received(positions)
        with client.pipeline() as step:  # one transaction: Redis sends nothing to anybody meanwhile
            for _ in range(400):
                step.publish("events:post", b"x" * 1000)
            step.execute()
        positions += [writer.write() for _ in range(20)]
        await node.expect_received(positions)
    finally:
        client.config_set("client-output-buffer-limit", before["client-output-buffer-limit"])
    assert _cut_notes(redis_server) > noted
    assert node.feed.reconnects == 1


@pytest.mark.parametrize("is_cut_before", [False, True])
async def test_a_flood_while_the_feed_works_neither_cuts_it_nor_loses_an_entry(
    without_canary: Node, writer: LogWriter, redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch,
    *, is_cut_before: bool,
) -> None:  # fmt: skip
    """The hub waits for slow clients, while it is live or after it has lost its link.

    Redis would cut a subscriber for whom it keeps a megabyte. It would cut the new link too, again and again.
    """
    node, client = without_canary, writer.client
    monkeypatch.setattr(subscription_module, "MAX_WAITING_BYTES", 200_000)
    before: Any = client.config_get("client-output-buffer-limit")
    noted, works, may_go_on = _cut_notes(redis_server), asyncio.Event(), asyncio.Event()

    async def drained() -> None:
        works.set()
        await may_go_on.wait()

    monkeypatch.setattr(type(node.hub.live.flusher), "is_busy", property(lambda _: not may_go_on.is_set()))
    monkeypatch.setattr(node.hub.live.flusher, "drained", drained)
    positions = [writer.write(published=not is_cut_before)]
    if is_cut_before:
        assert client.client_kill_filter(_type="pubsub") == 1
    await works.wait()
    looked_up = record_checks(node, monkeypatch)
    client.config_set("client-output-buffer-limit", "pubsub 1mb 0 0")
    try:
        for number in range(600):
            status = {"id": str(number + 1), "uid": "7", "message": "x" * 5000}
            positions.append(writer.write(msgspec.json.encode({"wire": {"status": status}})))
            await asyncio.sleep(0)  # lets the feed read
        assert client.publish(ASK_CHANNEL, b"ask whose?") == 1
        await eventually(lambda: node.questions == [b"ask whose?"], what="all to be read, and the question to be heard")
        may_go_on.set()
        await eventually(lambda: node.hub.head == positions[-1], seconds=30)
        positions.append(writer.write())  # arrives behind all that waited
        await eventually(lambda: node.hub.head == positions[-1])
    finally:
        client.config_set("client-output-buffer-limit", before["client-output-buffer-limit"])
    assert (_cut_notes(redis_server) - noted, node.feed.reconnects, node.jumps) == (0, int(is_cut_before), [])
    assert node.feed.recovered > 500, "they were dropped, and read from the log"
    assert (len(looked_up), node.feed.malformed) == (0, 0)
    assert node.feed.duplicates <= 1, "nothing is looked at twice but perhaps the last one, which comes by both ways"
    received = node.received()  # the newest, as far as the ring reaches back
    assert received == positions[-len(received) :]


async def test_stale_messages_ask_redis_nothing(
    redis_url: str, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A feed that was behind gets them for what it has read, also for what its ring does not remember any more."""
    node = Node(redis_url, NEVER, replace(LIMITS, ring_bytes=5000))
    await node.open()
    try:
        body = writer.new_post()
        positions = [writer.write(body) for _ in range(200)]
        await eventually(lambda: node.hub.head == positions[-1])
        assert node.hub.ring.floor in positions[100:], "the ring forgot half of them"
        looked_up = record_checks(node, monkeypatch)
        for position in positions:
            writer.publish(position, body)
        await eventually(lambda: node.feed.duplicates + node.feed.malformed == 200)
        assert (len(looked_up), node.feed.duplicates) == (0, 200)
        writer.publish(positions[-1]._replace(n=1), body)  # an old number with a new id: was the log rolled back?
        await eventually(lambda: node.feed.malformed == 1)
        assert looked_up == [positions[-1]]
    finally:
        await node.close()


def _cut_notes(server: RedisProcess) -> int:
    return (server.folder / "redis.log").read_text().count("overcoming of output buffer limits")
