"""A preview counts what a rule would have matched, within limits."""

import asyncio
import json

import pytest

from filters.params import parse_subscription
from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import preview
from stream_server.hub.catchup.reader import MAX_PAGE_ENTRIES
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.hub.limits import MAX_CONCURRENT_PREVIEWS
from stream_server.hub.preview import PreviewResult, RulePreview
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.stream_server.hub.world import REGISTRY, Graph, World


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give previews a minute, because a second may be too short on a busy machine."""
    monkeypatch.setattr(preview, "MAX_WORK_SECONDS", 60.0)
    monkeypatch.setattr(preview, "MAX_QUEUE_SECONDS", 60.0)


async def preview_tea(world: World, since: Position = LOG_START) -> PreviewResult:
    """Preview a rule on all of the log."""
    subscription = parse_subscription({"rule": "tea", "kinds": "post"}, REGISTRY, explain=True)
    view = select_framing(NDJSON, chunked=True)
    request = SubscribeRequest("c", "1", StreamToken("j"), subscription, view, since, world.viewer("1"))
    return await RulePreview(world.hub, request).run()


def example_texts(counted: PreviewResult) -> list[str]:
    return [json.loads(picked.entry.wire)["status"]["message"] for picked in counted.examples]


async def test_a_preview_counts_all_matches_and_keeps_the_last_as_examples(world: World) -> None:
    for number in range(3 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}" if number % 2 else f"milk {number}")
    last = world.post("tea at last")
    found = await preview_tea(world)
    assert found.matched_count == 3 * MAX_PAGE_ENTRIES // 2 + 1
    assert (found.end_position, found.is_complete) == (last.position, True)
    assert example_texts(found)[-2:] == [f"tea {3 * MAX_PAGE_ENTRIES - 1}", "tea at last"]
    assert len(found.examples) == preview.MAX_EXAMPLES
    assert len(world.hub.registry) == 0


async def test_a_preview_of_an_empty_log_is_complete(world: World) -> None:
    assert await preview_tea(world) == PreviewResult(0, LOG_START, True, [], world.now_ms)


async def test_a_preview_that_would_wait_too_long_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preview, "MAX_QUEUE_SECONDS", 0.01)
    for _ in range(MAX_CONCURRENT_PREVIEWS):
        await world.hub.preview_slots.acquire()
    with pytest.raises(Unavailable) as refused:
        await preview_tea(world)
    assert refused.value.retry_after == 5
    for _ in range(MAX_CONCURRENT_PREVIEWS):
        world.hub.preview_slots.release()
    assert (await preview_tea(world)).is_complete


async def test_a_preview_omits_hidden_and_deleted_posts(world: World) -> None:
    world.graphs["1"] = Graph(blocks={"8": 1})
    world.post("tea of the blocked", uid="8")
    world.delete(world.post("tea that is gone"))
    world.publish("protect", user={"id": "7"})
    world.post("tea for friends", audience="followers:7")
    world.post("tea", uid="9")
    assert example_texts(await preview_tea(world)) == ["tea"]
    world.publish("unprotect", user={"id": "7"})
    assert example_texts(await preview_tea(world)) == ["tea for friends", "tea"]


async def test_a_preview_at_its_time_limit_is_incomplete(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(2 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    monkeypatch.setattr(preview, "MAX_WORK_SECONDS", 1e-9)
    found = await preview_tea(world)
    assert 0 < found.matched_count == found.end_position.n <= MAX_PAGE_ENTRIES
    assert not found.is_complete


async def test_other_tasks_run_between_two_pages(world: World) -> None:
    for number in range(3 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    iterations = 0

    async def other() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)  # counts each iteration of the loop

    task = asyncio.create_task(other())
    await preview_tea(world)
    task.cancel()
    assert iterations >= 3


async def test_a_preview_of_a_trimmed_log_is_incomplete(without_ring: World) -> None:
    for number in range(10):
        without_ring.post(f"tea {number}")
    without_ring.log.floor_n = 4
    found = await preview_tea(without_ring)
    assert (found.matched_count, found.is_complete) == (6, False)


async def test_a_suspended_user_gets_no_preview(world: World) -> None:
    world.post("tea")
    world.publish("suspend", "-", uid="1")
    with pytest.raises(Unavailable):
        await preview_tea(world)
    assert len(world.hub.registry) == 0


async def test_few_previews_run_at_once(world: World) -> None:
    for number in range(2 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}")
    here: list[int] = []

    async def watch() -> None:
        while True:
            here.append(len(world.hub.registry))
            await asyncio.sleep(0)  # looks in each iteration of the loop

    watching = asyncio.create_task(watch())
    found = await asyncio.gather(*(preview_tea(world) for _ in range(3 * MAX_CONCURRENT_PREVIEWS)))
    watching.cancel()
    assert max(here) == MAX_CONCURRENT_PREVIEWS
    assert {one.matched_count for one in found} == {2 * MAX_PAGE_ENTRIES}
