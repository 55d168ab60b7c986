"""The time from the log to the sockets: each live event once for each client, under the kind of its filter."""

from dataclasses import replace

import pytest

from filters.registry import installed_registry
from filters.subscription import parse_subscription
from stream_server.hub.group import BUCKET_SECONDS, FILTER_KINDS, ClientGroup, DeliveryTimes
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.stream_server.hub.world import LIMITS, World
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("parameters", "kind"),
    [
        ({"track": "a,b"}, "track"),
        ({"follow": "1"}, "follow"),
        ({"locations": "0,0,1,1"}, "locations"),
        ({"rule": "a"}, "rule"),
        ({"sample": "1"}, "sample"),
        ({"firehose": "true", "language": "en"}, "firehose"),
        ({"track": "a", "follow": "1"}, "combined"),
    ],
)
def test_a_group_has_the_kind_of_its_filters(parameters: dict[str, str], kind: str) -> None:
    subscription = parse_subscription(parameters, installed_registry())
    group = ClientGroup("", subscription, select_framing(NDJSON, chunked=True), None)
    assert FILTER_KINDS[group.filter_kind] == kind


def test_the_events_of_a_slice_are_counted_in_one_bucket() -> None:
    times = DeliveryTimes()
    times.add(0, 1)
    times.add(5, 7)
    times.add(0, 2)
    times.end_slice(4.0)
    times.add(0, 2)
    times.end_slice(60_000.0)
    times.end_slice(-5.0)
    found = {kind: (counts, seconds) for kind, counts, seconds in times.histograms()}
    bounds = [*BUCKET_SECONDS, float("inf")]
    assert {bounds[n]: count for n, count in enumerate(found["track"][0]) if count} == {0.005: 3, float("inf"): 2}
    assert {bounds[n]: count for n, count in enumerate(found["firehose"][0]) if count} == {0.005: 7}
    assert found["track"][1] == pytest.approx(3 * 0.004 + 2 * 60)


async def test_each_delivery_to_a_live_client_is_counted_once() -> None:
    """Groups of one and of many clients, several flushes, a heartbeat-free world: the sums are the deliveries."""
    world = World()
    for _ in range(3):
        world.open(track="post")
    world.open(firehose="true")
    world.open(follow="7")
    await world.until_live(5)
    for number in range(4):
        world.post(f"post {number}")
        if number % 2:
            await eventually(lambda: world.hub.live.flusher.times.delivered == 5 * (number + 1))  # noqa: B023 - awaited here
    counts = {kind: sum(counts) for kind, counts, _ in world.hub.live.flusher.times.histograms() if any(counts)}
    assert counts == {"track": 12, "firehose": 4, "follow": 4}
    assert sum(counts.values()) == world.hub.live.flusher.times.delivered


async def test_an_entry_that_matched_nobody_does_not_make_the_next_delivery_late() -> None:
    world = World(replace(LIMITS, buffer_bytes=100_000))  # both entries are of one wave
    world.open(track="tea")
    await world.until_live(1)
    world.post("coffee")
    world.now_ms += 60_000
    world.post("tea")
    await eventually(lambda: world.hub.live.flusher.times.delivered == 1)
    (seconds,) = (seconds for _, counts, seconds in world.hub.live.flusher.times.histograms() if any(counts))
    assert seconds < 1
