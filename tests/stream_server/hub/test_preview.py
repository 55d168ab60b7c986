"""A preview counts what a rule would have matched, within limits."""

import asyncio
import json

import pytest

from filters.subscription import parse_subscription
from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.hub import look_back as preview
from stream_server.hub.catchup.reader import MAX_PAGE_ENTRIES
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.hub.limits import MAX_CONCURRENT_PREVIEWS
from stream_server.hub.look_back import PreviewResult, RulePreview
from stream_server.hub.messages import ROLLED_BACK
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.stream_server.hub.world import REGISTRY, World
from tests.stream_server.web.limits.clocks import Clocks


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give previews a minute, because a second may be too short on a busy machine."""
    monkeypatch.setattr(preview, "MAX_WORK_SECONDS", 60.0)
    monkeypatch.setattr(preview, "MAX_QUEUE_SECONDS", 60.0)


async def preview_tea(world: World, since: Position = LOG_START, *, is_over: bool = False) -> PreviewResult:
    """Preview a rule on all of the log, for a user who may still take processor time, or who has taken too much."""
    clocks = Clocks()
    payer = clocks.processor_time().payer("192.0.2.1", "1")
    payer.charge(1.0 if is_over else 0.0)
    subscription = parse_subscription({"rule": "tea", "kinds": "post"}, REGISTRY, explain=True)
    view = select_framing(NDJSON, chunked=True)
    request = SubscribeRequest("c", "1", StreamToken("j"), subscription, view, since, world.viewer("1"))
    return await RulePreview(world.hub, request, payer).run()


def example_texts(counted: PreviewResult) -> list[str]:
    return [json.loads(picked.entry.wire)["status"]["message"] for picked in counted.examples]


async def test_a_preview_counts_all_matches_and_keeps_the_last_as_examples(world: World) -> None:
    for number in range(3 * MAX_PAGE_ENTRIES):
        world.post(f"tea {number}" if number % 2 else f"milk {number}")
    world.post("tea at last")
    found = await preview_tea(world)
    assert found.matched_count == 3 * MAX_PAGE_ENTRIES // 2 + 1
    assert (found.scanned_count, found.start, found.is_complete) == (3 * MAX_PAGE_ENTRIES + 1, LOG_START, True)
    assert example_texts(found)[-2:] == [f"tea {3 * MAX_PAGE_ENTRIES - 1}", "tea at last"]
    assert len(found.examples) == preview.MAX_EXAMPLES
    assert len(world.hub.registry) == 0


async def test_a_preview_of_an_empty_log_is_complete(world: World) -> None:
    assert await preview_tea(world) == PreviewResult(0, 0, LOG_START, True, [], world.now_ms)


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


@pytest.mark.parametrize("ring_entries", [0, 1, MAX_PAGE_ENTRIES + 10, 3 * MAX_PAGE_ENTRIES])
async def test_a_preview_at_its_limit_has_scanned_the_newest_entries(
    without_ring: World, monkeypatch: pytest.MonkeyPatch, ring_entries: int
) -> None:
    """It shows the newest ten matches, wherever they are: in the ring, on the log, or in both."""
    world, count = without_ring, 3 * MAX_PAGE_ENTRIES
    for number in range(count - ring_entries):
        world.post(f"tea {number}")
    world.hub.ring._max_bytes = 1 << 30
    for number in range(count - ring_entries, count):
        world.post(f"tea {number}")
    newest = [f"tea {number}" for number in range(count)][-preview.MAX_EXAMPLES :]
    whole = await preview_tea(world)
    assert (whole.matched_count, whole.is_complete, example_texts(whole)) == (count, True, newest)
    for limit, value in (("MAX_WORK_SECONDS", 1e-9), ("MIN_WORK_SECONDS", 1e-9), ("MAX_SCANNED_ENTRIES", 1)):
        with monkeypatch.context() as patched:
            patched.setattr(preview, limit, value)
            found = await preview_tea(world, is_over=limit == "MIN_WORK_SECONDS")
        assert 0 < found.matched_count == found.scanned_count == count - found.start.n < 2 * MAX_PAGE_ENTRIES
        assert not found.is_complete
        assert example_texts(found)[-found.matched_count :] == newest[-found.matched_count :]


async def test_a_preview_scans_exactly_the_requested_span(world: World) -> None:
    posts = [world.post(f"tea {number}") for number in range(2 * MAX_PAGE_ENTRIES)]
    for since in (posts[0], posts[MAX_PAGE_ENTRIES - 1], posts[-2], posts[-1]):
        found = await preview_tea(world, since.position)
        after = len(posts) - since.position.n
        assert found[:4] == (after, after, since.position, True)


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


async def test_a_preview_of_a_log_that_lost_its_end_meanwhile_is_refused(world: World) -> None:
    posts = [world.post(f"tea {number}") for number in range(2 * MAX_PAGE_ENTRIES)]
    asked = asyncio.create_task(preview_tea(world))
    while not len(world.hub.registry):  # noqa: ASYNC110 - the registry sets no event
        await asyncio.sleep(0)  # each iteration of the loop: a whole preview takes less time than a wait
    world.hub.move_head(posts[MAX_PAGE_ENTRIES // 2].position, ROLLED_BACK)
    with pytest.raises(Unavailable):
        await asked
