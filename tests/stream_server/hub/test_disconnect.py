"""Streams and polls that are ended while they wait for their client or for the log."""

import asyncio
from collections.abc import Callable

import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import disconnect as reasons
from stream_server.hub import poll as long_poll
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.delivery import Delivery
from tests.stream_server.hub.world import World
from tests.waiting import PATIENCE, eventually

GOODBYE = reasons.shutdown_reason(1.5)


async def test_the_goodbye_of_a_client_that_does_not_read_has_the_last_written_cursor(without_ring: World) -> None:
    start = without_ring.hub.head
    posts = [without_ring.post(f"redis {n}") for n in range(20)]
    real = without_ring.log.read_page
    _, socket = without_ring.open(start, track="redis")

    async def page(after: Position, most: int) -> LogPage:
        socket.block()  # hello was read, and nothing from here on
        return await real(after, most)

    without_ring.log.read_page = page  # type: ignore[method-assign]  # the fault
    await eventually(lambda: socket.waiting, what="a page that is not read")
    without_ring.hub.stop(lambda: GOODBYE)
    await eventually(lambda: socket.finished, what="the end")
    socket.unblock()
    cursors = [message["cursor"] for message in socket.messages() if message["kind"] == "post"]
    assert cursors
    assert cursors == [post.position.cursor for post in posts][: len(cursors)]
    assert socket.messages()[-1]["cursor"] == cursors[-1]
    assert socket.messages()[-1]["code"] == "shutdown"


async def test_the_goodbye_has_the_first_of_two_reasons(world: World) -> None:
    stream, socket = world.open(track="redis")
    stream.disconnect(reasons.TOKEN_REVOKED)
    world.hub.stop(lambda: GOODBYE)
    await eventually(lambda: socket.finished, what="the end")
    assert [m.get("code") for m in socket.messages() if m["kind"] == "goodbye"] == [reasons.TOKEN_REVOKED.code]


async def test_a_poll_that_may_not_wait_tells_at_once_that_the_log_cannot_be_read(without_ring: World) -> None:
    start = without_ring.hub.head
    without_ring.post("redis")

    async def away(after: Position, most: int) -> LogPage:
        raise Unavailable("away")

    without_ring.log.read_page = away  # type: ignore[method-assign]  # the fault
    with pytest.raises(Unavailable):
        await asyncio.wait_for(without_ring.poll(without_ring.request(start, track="redis")).run(0), PATIENCE)


async def test_a_stop_ends_a_stream_and_a_poll_that_wait_for_the_log(without_ring: World) -> None:
    start, asked = without_ring.hub.head, asyncio.Event()
    without_ring.post("redis")

    async def silent(after: Position, most: int) -> LogPage:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    without_ring.log.read_page = silent  # type: ignore[method-assign]  # the fault
    _, socket = without_ring.open(start, track="redis")
    poll = asyncio.create_task(without_ring.poll(without_ring.request(start, track="redis")).run(60))
    await asked.wait()
    await eventually(lambda: len(without_ring.hub.registry) == 2, what="both to be there")
    without_ring.hub.stop(lambda: GOODBYE)
    async with asyncio.timeout(PATIENCE):
        polled = await poll
    assert (polled.items, polled.position, polled.disconnect_reason) == ([], start, GOODBYE)
    await socket.expect_kinds("hello", "goodbye")
    assert socket.messages()[-1]["cursor"] == start.cursor


@pytest.mark.parametrize(
    "end", [lambda world: world.hub.stop(lambda: GOODBYE), lambda world: world.revoke("1", "j")], ids=["stop", "revoke"]
)
async def test_a_poll_that_times_out_in_the_iteration_of_a_stop_keeps_no_other_client(
    end: Callable[[World], object], world: World
) -> None:
    """A stop or a revocation ends all polls, also if one of them times out in the same iteration of the loop."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    poll = world.poll(world.request(track="redis"))
    running = asyncio.create_task(poll.run(60))
    await eventually(lambda: poll._wake_future is not None, what="the poll to wait")
    other = world.poll(world.request(track="redis"))
    waiting = asyncio.create_task(other.run(60))
    await eventually(lambda: other._wake_future is not None, what="the other to wait")
    patience = poll._timeout
    assert patience is not None
    patience.reschedule(loop.time())  # it expires in the next iteration, just before `both`

    def both() -> None:
        assert patience.expired()
        end(world)
        ended.set()

    loop.call_soon(both)
    async with asyncio.timeout(PATIENCE):
        await ended.wait()
        assert (await running).items == []
        assert (await waiting).disconnect_reason is not None


async def test_an_answer_of_a_poll_ends_after_the_page_that_makes_it_large(
    monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    monkeypatch.setattr(long_poll, "MAX_ANSWER_BYTES", 1000)
    posts = [world.post(f"post {number}") for number in range(600)]
    position, found, sizes = LOG_START, list[Position](), list[int]()
    while position != world.hub.head:
        request = world.request(position, firehose="true")
        answer = await long_poll.LongPoll(world.hub, request, limit=1000).run(0)
        found += [item.entry.position for item in answer.items if isinstance(item, Delivery)]
        sizes.append(len(answer.items))
        position = answer.position
    assert found == [post.position for post in posts]
    assert max(sizes) < 300, "a page has 256"
