"""The figures of the last hour: sums over workers, restarts, and a store that is away for a while."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from stream_server.errors import Unavailable
from stream_server.monitoring.history import HistoryRecorder, Sample, merge
from stream_server.monitoring.metrics import Metrics
from stream_server.store.operation_samples import OperationSamples
from tests.stream_server.hub.world import World
from tests.waiting import eventually


class Clock:
    """A clock that only a test moves."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Samples(OperationSamples):
    """What is stored, or nothing while ``is_away``."""

    def __init__(self) -> None:
        self.kept: dict[bytes, int] = {}
        self.is_away = False

    async def add(self, server: str, samples: Mapping[bytes, int]) -> None:
        if self.is_away:
            raise Unavailable("Redis is away")
        self.kept |= {server.encode() + sample: at for sample, at in samples.items()}

    async def read(self, server: str, since: int, until: int) -> list[bytes]:
        return [key.removeprefix(server.encode()) for key, at in self.kept.items() if since <= at <= until]


class Worker:
    """A worker with counters that a test raises."""

    def __init__(
        self, samples: OperationSamples, clock: Clock, number: int, monotonic: Clock | None = None
    ) -> None:
        self.metrics, self.delivered, self.cpu = Metrics(number), 0, Clock(0.0)
        self.metrics.watch("stream_server_events_delivered_total", lambda: self.delivered)
        self.metrics.watch("stream_server_log_entries", lambda: 7)
        self.metrics.watch("stream_server_streams", lambda: {"sse": 2, "poll": 1})
        self.recorder = HistoryRecorder(
            self.metrics, World().hub, samples, "host:1", number, unix_time=clock, monotonic=monotonic or clock,
            cpu_seconds=self.cpu,
        )  # fmt: skip


def sample(at: int, worker: int, **more: float) -> Sample:
    return msgspec.structs.replace(Sample(at, worker, *[0] * 12), **more)


def test_figures_of_one_thing_are_the_highest_and_parts_are_added() -> None:
    rows = [sample(20, 2, events_delivered=3, events_published=5, lag_ms=1), sample(10, 1, streams=4)]
    rows += [sample(20, 1, events_delivered=0.25, events_published=4, lag_ms=9), sample(20, 1, events_delivered=0.5)]
    found = merge(rows)
    assert found.at == ["1970-01-01T00:00:10.000Z", "1970-01-01T00:00:20.000Z"]
    assert (found.workers, found.streams, found.events_delivered) == ([1, 2], [4, 0], [0, 3.5])
    assert (found.events_published, found.lag_ms) == ([0, 5], [0, 1])


async def test_a_restarted_worker_leaves_what_it_did_before() -> None:
    """The successor counts from zero, and the hour of its predecessor stays. Of ten seconds, rates are per second."""
    samples, clock = Samples(), Clock(1_000_000.0)
    first, other = Worker(samples, clock, 1), Worker(samples, clock, 2)
    for worker, delivered in ((first, 40), (other, 10)):
        worker.delivered, worker.cpu.now = delivered, 2.5
    clock.now += 10.01
    await first.recorder.record()
    await other.recorder.record()
    successor = Worker(samples, clock, 1)
    successor.delivered = 20
    clock.now += 10
    await successor.recorder.record()
    clock.now += 5
    found = await other.recorder.read()
    assert [round(rate, 1) for rate in found.events_delivered] == [5.0, 2.0]
    assert [round(share) for share in found.cpu_percent] == [50, 0]
    assert (found.workers, found.streams, found.log_entries) == ([2, 1], [6, 3], [7, 7])


async def test_samples_wait_while_redis_is_away_and_no_more_than_an_hour_of_them() -> None:
    samples, clock = Samples(), Clock(2_000_000.0)
    worker = Worker(samples, clock, 1)
    samples.is_away = True
    for _ in range(400):
        clock.now += 10
        await worker.recorder.record()
    assert samples.kept == {}
    samples.is_away = False
    clock.now += 10
    await worker.recorder.record()
    assert len(samples.kept) == 360
    clock.now += 5
    assert len((await worker.recorder.read()).at) == 360


async def test_the_newest_time_is_shown_once_all_workers_have_stored_it() -> None:
    samples, clock = Samples(), Clock(3_000_000.0)
    worker = Worker(samples, clock, 1)
    clock.now += 10
    await worker.recorder.record()
    assert (await worker.recorder.read()).at == []
    clock.now += 2
    assert len((await worker.recorder.read()).at) == 1


async def test_samples_of_another_version_are_left_out() -> None:
    samples, clock = Samples(), Clock(4_000_000.0)
    worker = Worker(samples, clock, 1)
    samples.kept = {b"host:1[1,2]": 3_999_990, b"host:1nonsense": 3_999_990}
    assert (await worker.recorder.read()).at == []


async def test_a_clock_that_is_set_changes_no_rate() -> None:
    samples, clock, monotonic = Samples(), Clock(6_000_000.0), Clock(5.0)
    worker = Worker(samples, clock, 1, monotonic)
    rates = []
    for step in (10, -3600, 10, 86400):
        worker.delivered += 40
        clock.now += step
        monotonic.now += 10
        rates.append(worker.recorder.take().events_delivered)
    assert rates == [4.0] * 4


@pytest.mark.parametrize(
    ("late", "waits", "times"),
    [
        ([-0.004] * 3, [9, 10.004, 10.004], [7_000_010, 7_000_020, 7_000_030]),
        ([7, 0, 0], [9, 13, 10], [7_000_020, 7_000_030, 7_000_040]),
    ],
)
async def test_a_timer_that_is_early_or_late_gives_no_second_sample_of_a_time(
    monkeypatch: pytest.MonkeyPatch, late: list[float], waits: list[float], times: list[int]
) -> None:
    """A second sample, of some milliseconds, would take the place of the one of ten seconds."""
    samples, clock = Samples(), Clock(7_000_001.0)
    worker, waited = Worker(samples, clock, 1), list[float]()

    async def sleep(seconds: float) -> None:
        if len(waited) == len(late):
            raise asyncio.CancelledError
        clock.now += seconds + late[len(waited)]
        waited.append(round(seconds, 3))
        worker.delivered += 40

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await worker.recorder.run()
    assert (waited, list(samples.kept.values())) == (waits, times)


async def test_a_sample_is_taken_at_each_multiple_of_ten_seconds() -> None:
    samples, clock = Samples(), Clock(5_000_009.999)
    running = asyncio.create_task(Worker(samples, clock, 1).recorder.run())
    await eventually(lambda: list(samples.kept.values()) == [5_000_010], what="the first sample")
    running.cancel()
