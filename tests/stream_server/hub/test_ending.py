"""Streams and polls that are ended while they wait: for their client, or for a log that does not answer."""

import asyncio
from collections.abc import Callable

import pytest

from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.poll import LongPoll
from tests.stream_server.hub.world import World
from tests.waiting import eventually

GOODBYE = reasons.shutdown_reason(1.5)


async def test_who_does_not_read_is_sent_away_from_where_it_was_written_to(ringless: World) -> None:
    """What was handed over is not said again to whoever returns with the goodbye's cursor, and nothing is missed."""
    start = ringless.hub.head
    posts = [ringless.post(f"redis {n}") for n in range(20)]
    real = ringless.log.read_page
    _, socket = ringless.open(start, track="redis")

    async def page(after: Position, most: int) -> LogPage:
        socket.block()  # hello was read, and nothing from here on
        return await real(after, most)

    ringless.log.read_page = page  # type: ignore[method-assign]  # the fault
    await eventually(lambda: socket.waiting, what="a page that is not read")
    ringless.hub.stop(lambda: GOODBYE)
    await eventually(lambda: socket.finished, what="the end")
    socket.unblock()
    told = [message["cursor"] for message in socket.messages() if message["kind"] == "post"]
    assert told
    assert told == [post.position.cursor for post in posts][: len(told)]
    assert socket.messages()[-1]["cursor"] == told[-1]
    assert socket.messages()[-1]["code"] == "shutdown"


async def test_who_waits_for_the_log_is_sent_away_at_once(ringless: World) -> None:
    """A log that never answers holds neither a stream nor a poll."""
    start, asked = ringless.hub.head, asyncio.Event()
    ringless.post("redis")

    async def silent(after: Position, most: int) -> LogPage:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    ringless.log.read_page = silent  # type: ignore[method-assign]  # the fault
    _, socket = ringless.open(start, track="redis")
    poll = asyncio.create_task(
        LongPoll(ringless.hub, ringless.ask(start, track="redis"), limit=10, initial_gap=None).run(60)
    )
    await asked.wait()
    await eventually(lambda: len(ringless.hub.registry) == 2, what="both to be there")
    ringless.hub.stop(lambda: GOODBYE)
    async with asyncio.timeout(20):
        polled = await poll
    assert (polled.items, polled.position, polled.disconnect_reason) == ([], start, GOODBYE)
    await socket.hears("hello", "goodbye")
    assert socket.messages()[-1]["cursor"] == start.cursor


@pytest.mark.parametrize(
    "end", [lambda world: world.hub.stop(lambda: GOODBYE), lambda world: world.revoke("1", "j")], ids=["stop", "revoke"]
)
async def test_a_poll_whose_wait_ends_in_the_same_turn_harms_nobody(
    end: Callable[[World], object], world: World
) -> None:
    """Who ends everybody reaches all, also behind a poll whose own time ran out a moment before in a long turn."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    poll = LongPoll(world.hub, world.ask(track="redis"), limit=10, initial_gap=None)
    running = asyncio.create_task(poll.run(0.05))
    await eventually(lambda: poll._wake_future is not None, what="the poll to wait")
    other = LongPoll(world.hub, world.ask(track="redis"), limit=10, initial_gap=None)
    waiting = asyncio.create_task(other.run(60))
    await eventually(lambda: other._wake_future is not None, what="the other to wait")
    patience = poll._timeout
    assert patience is not None
    patience.reschedule(loop.time())  # its expiry is in the queue of this turn's end, and then comes who ends all

    def both() -> None:
        assert patience.expired()
        end(world)
        ended.set()

    loop.call_soon(both)
    async with asyncio.timeout(20):
        await ended.wait()
        assert (await running).items == []
        assert (await waiting).disconnect_reason is not None
