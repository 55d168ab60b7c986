"""What a subscription would have matched: read as a stream reads, counted, and within bounds."""

import asyncio
import json

import pytest

from filters.params import parse_subscription
from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import preview
from stream_server.hub.catchup.reader import MAX_PAGE_ENTRIES
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.limits import MAX_CONCURRENT_PREVIEWS
from stream_server.hub.preview import PreviewResult, RulePreview
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.stream_server.hub.world import REGISTRY, Graph, World


async def run(world: World, since: Position = LOG_START) -> PreviewResult:
    """What a rule finds for somebody of all that the world's log has."""
    subscription = parse_subscription({"rule": "tea", "kinds": "post"}, REGISTRY, explain=True)
    view = select_framing(NDJSON, chunked=True)
    return await RulePreview(
        world.hub, SubscribeRequest("c", "1", "j", subscription, view, since, world.viewer("1"))
    ).run()


def shown(counted: PreviewResult) -> list[str]:
    """The messages of the examples."""
    return [json.loads(picked.entry.wire)["status"]["message"] for picked in counted.examples]


async def test_all_are_counted_and_the_last_are_kept(world: World) -> None:
    """Up to the head, in log order, whoever else is connected."""
    for number in range(3 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}" if number % 2 else f"milk {number}")
    last = world.post("tea at last")
    found = await run(world)
    assert (found.matched_count, found.end_position, found.is_complete) == (
        3 * MAX_PAGE_ENTRIES // 2 + 1,
        last.position,
        True,
    )
    assert shown(found)[-2:] == [f"tea {3 * MAX_PAGE_ENTRIES - 1}", "tea at last"]
    assert len(found.examples) == preview.MAX_EXAMPLES
    assert len(world.hub.registry) == 0


async def test_of_an_empty_log_nothing_is_missing(world: World) -> None:
    """It begins and ends at the head."""
    assert await run(world) == PreviewResult(0, LOG_START, True, [], world.now_ms)


async def test_who_would_wait_for_long_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue without an end would be answered when nobody is there any more; the next has a turn again."""
    monkeypatch.setattr(preview, "MAX_QUEUE_SECONDS", 0.01)
    for _ in range(MAX_CONCURRENT_PREVIEWS):
        await world.hub.preview_slots.acquire()
    with pytest.raises(Unavailable) as refused:
        await run(world)
    assert refused.value.retry_after == 5
    for _ in range(MAX_CONCURRENT_PREVIEWS):
        world.hub.preview_slots.release()
    assert (await run(world)).is_complete


async def test_what_is_hidden_or_gone_does_not_count(world: World) -> None:
    """As for a stream that catches up."""
    world.graphs["1"] = Graph(blocks={"8": 1})
    world.post("tea of the blocked", uid="8")
    world.delete(world.post("tea that is gone"))
    world.post("tea for friends", audience="followers:7")
    world.post("tea")
    assert shown(await run(world)) == ["tea"]


async def test_it_ends_where_it_has_come_in_its_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is read at least, so that there is an answer at all; it is told that this is not all."""
    for number in range(2 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    monkeypatch.setattr(preview, "MAX_WORK_SECONDS", 1e-9)
    found = await run(world)
    assert 0 < found.matched_count == found.end_position.n <= MAX_PAGE_ENTRIES
    assert not found.is_complete


async def test_others_go_on_between_two_pages(world: World) -> None:
    """Nobody waits for all of it."""
    for number in range(3 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await run(world)
    task.cancel()
    assert turns >= 3


async def test_what_the_log_has_lost_is_no_whole(ringless: World) -> None:
    """What is left is counted."""
    for number in range(10):
        ringless.post(f"tea {number}")
    ringless.log.floor_n = 4
    found = await run(ringless)
    assert (found.matched_count, found.is_complete) == (6, False)


async def test_whoever_may_not_stream_is_told_nothing(world: World) -> None:
    """A suspension ends a stream, and so it does a preview."""
    world.post("tea")
    world.tell("suspend", "-", uid="1")
    with pytest.raises(Unavailable):
        await run(world)
    assert len(world.hub.registry) == 0


async def test_many_at_once_wait_for_one_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, a turn of the loop holds a page of few, and each hears all that was there in its turn."""
    monkeypatch.setattr(preview, "MAX_WORK_SECONDS", 60.0)  # on a busy machine a second may be too short for all of it
    for number in range(2 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    here: list[int] = []

    async def watch() -> None:
        while True:
            here.append(len(world.hub.registry))
            await asyncio.sleep(0)

    watching = asyncio.create_task(watch())
    found = await asyncio.gather(*(run(world) for _ in range(3 * MAX_CONCURRENT_PREVIEWS)))
    watching.cancel()
    assert max(here) == MAX_CONCURRENT_PREVIEWS
    assert {one.matched_count for one in found} == {2 * MAX_PAGE_ENTRIES}
