"""Slow clients: when a client is too slow, and what the hub does with a slow, stuck or broken one."""

import asyncio
from functools import partial

import pytest

from filters.event import Event
from filters.track import Track
from stream_server.errors import Unavailable
from stream_server.events.position import LOG_START
from stream_server.hub import disconnect as reasons
from stream_server.hub import stream_session
from stream_server.hub.heartbeats import CHECKS_PER_WINDOW, PeerSilence, SlowClientDetector, StallTimer
from stream_server.hub.stream_session import StreamSession
from tests.stream_server.hub.world import LIMITS, Socket, World
from tests.waiting import eventually

FAR = 1000
WINDOW = 60.0
CHECK_SECONDS = WINDOW / CHECKS_PER_WINDOW


def too_slow_after(behind: list[int], every: float = CHECK_SECONDS) -> float | None:
    """Seconds until a client is too slow that is so many entries behind at one check after the other."""
    detector = SlowClientDetector(FAR, WINDOW)
    for number, entries in enumerate(behind):
        if detector.is_too_slow(entries, number * every):
            return number * every
    return None


def test_a_client_that_falls_further_behind_for_a_whole_window_is_too_slow() -> None:
    assert too_slow_after([2000 + number for number in range(20)]) == WINDOW
    assert too_slow_after([2000 + number for number in range(2000)], every=0.1) == pytest.approx(WINDOW)


@pytest.mark.parametrize(
    "behind",
    [
        [FAR - number % 2 for number in range(100)],
        [2000] * 100,
        [200_000 - number for number in range(100)],
        [2000 + 10 * number - 15 * (number % CHECKS_PER_WINDOW == 0) for number in range(100)],
        [2000, 12_000, *range(11_990, 11_000, -10)],
        [*range(2000, 2007), 900, *range(2000, 2007), 1000, *range(2000, 2007)],
    ],
    ids=["near", "the log stands still", "from far behind", "gains once a window", "after a burst", "near at times"],
)
def test_a_client_that_gains_or_is_near_the_head_is_never_too_slow(behind: list[int]) -> None:
    assert too_slow_after(behind) is None


def test_few_checks_in_a_window_give_the_same_result() -> None:
    assert too_slow_after([2000, 2001, 2002, 2003], every=WINDOW / 2) == WINDOW
    assert too_slow_after([2000, 2001, 1999, 2000], every=WINDOW / 2) is None


def test_a_check_after_a_whole_window_without_checks_starts_a_new_window() -> None:
    assert too_slow_after([2000, 2001], every=WINDOW + 1) is None
    detector = SlowClientDetector(FAR, WINDOW)
    checks = [0.0, *(WINDOW + 1 + CHECK_SECONDS * number for number in range(CHECKS_PER_WINDOW + 1))]
    found = [detector.is_too_slow(2000 + number, now) for number, now in enumerate(checks)]
    assert found == [False] * (CHECKS_PER_WINDOW + 1) + [True]


def test_a_client_that_takes_no_byte_for_the_deadline_is_stalled() -> None:
    stall = StallTimer(30)
    assert [stall.is_over(100, now) for now in (0.0, 29.9)] == [False, False]
    assert [stall.is_over(99, now) for now in (29.95, 30.1, 59.9)] == [False, False, False]
    assert stall.is_over(99, 59.95)


@pytest.mark.parametrize(
    ("checks", "seconds"),
    [
        ([(0, 0.5), (5, 5.5), (9, 9.5)], 9),
        ([(0, 3600.0), (5, 3605.0)], 5),
        ([(0, 0.0), (3600, 3599.0)], 0),
        ([(0, 3.0), (5, 0.1), (9, 4.1)], 4),
        ([(0, 3.0), (5, 0.0), (9, 10.0)], 0),
    ],
    ids=["silent", "written after an hour", "written just now", "heard once", "all acknowledged between"],
)
def test_silence_counts_from_a_check_with_unacked_bytes(checks: list[tuple[float, float]], seconds: float) -> None:
    silence = PeerSilence()
    assert [silence.measure_seconds(said, now) for now, said in checks][-1] == seconds


async def test_a_client_that_falls_behind_is_warned_once(world: World) -> None:
    _, slow = world.open(firehose="true")
    _, quick = world.open(firehose="true")
    for burst in ("first", "second"):
        await world.until_live(2)
        slow.block()
        await world.post_until_demoted(size=500)
        world.post(burst)
        slow.unblock()
        await slow.expect_last_text(burst)
    (warning,) = (message for message in slow.messages() if message["kind"] == "warning")
    assert (warning["code"], warning["percent"]) == ("falling_behind", 100)
    assert slow.texts() == quick.texts()
    assert "warning" not in quick.kinds()


async def test_a_token_that_expires_while_the_log_cannot_be_read_ends_the_stream(without_ring: World) -> None:
    without_ring.post("one")
    without_ring.log.error = Unavailable("the log cannot be read")
    stream, socket = without_ring.open(LOG_START, firehose="true")
    await eventually(lambda: len(without_ring.hub.background_tasks) == 1)
    stream.disconnect(reasons.TOKEN_EXPIRED)
    await eventually(lambda: socket.kinds() == ["hello", "goodbye"], seconds=LIMITS.heartbeat_seconds / 100)


async def test_an_unexpected_error_of_the_log_ends_the_stream(without_ring: World) -> None:
    without_ring.post("one")
    without_ring.log.error = RuntimeError("not what was expected")
    _, socket = without_ring.open(LOG_START, firehose="true")
    await eventually(lambda: socket.aborted)
    assert without_ring.hub.background_tasks.failures == 1


@pytest.mark.parametrize("fault", [RuntimeError("the handler is closed"), OSError("what nobody foresaw")], ids=repr)
async def test_a_socket_that_raises_ends_its_own_stream_only(world: World, fault: Exception) -> None:
    streams = [world.open(firehose="true") for _ in range(5)]
    await world.until_live(5)
    broken, socket = streams[2]

    def closed(data: bytes) -> None:
        raise fault

    broken.write = socket.write = closed  # type: ignore[method-assign]  # the fault
    world.post("one")
    others = [other for stream, other in streams if stream is not broken]
    await eventually(lambda: all(other.texts() == ["one"] for other in others))
    await eventually(lambda: socket.aborted, what="the broken one to be dropped")
    world.post("two")
    await eventually(lambda: all(other.texts() == ["one", "two"] for other in others))
    assert world.hub.background_tasks.failures == 1


async def test_a_filter_that_raises_stops_no_other_filter_and_no_other_client(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = world.post("old")
    _, socket = world.open(LOG_START, user="1", following={"7"}, follow="@me", track="boom")
    _, other = world.open(firehose="true")
    await world.until_live(2)

    def broken(self: object, event: Event) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(Track, "matches", broken)
    world.post("boom", uid="9")
    world.delete(old)
    world.post("after", uid="7")
    await eventually(lambda: other.texts()[-1:] == ["after"])
    await eventually(lambda: socket.texts()[-1:] == ["after"])
    assert world.hub.counters.filter_failures + world.hub.catchup_reader.failures > 0


async def test_decoded_entries_are_dropped_after_two_heartbeats(world: World) -> None:
    _, socket = world.open(firehose="true")
    await world.until_live()
    entry = world.post("hello")
    await eventually(lambda: socket.texts() == ["hello"])
    for _ in range(2):  # at the second nobody has read it since the first
        world.hub.ring.drop_unread_caches()
    assert (entry._is_decoded, entry._frames) == (False, None)
    _, late = world.open(LOG_START, firehose="true")
    await eventually(lambda: late.texts() == ["hello"])


async def _trickle(socket: Socket) -> None:
    """Read a byte now and then, so that the client makes progress within each write timeout."""
    while True:
        if len(socket.waiting) > 1:
            socket.received += socket.waiting[:1]
            del socket.waiting[:1]
        await asyncio.sleep(0.02)  # the client's own pace


async def _too_slow_client(world: World) -> tuple[StreamSession, Socket, asyncio.Task[None]]:
    """A client that reads a byte now and then while posts continue, until the hub disconnects it."""
    stream, socket = world.open(track="far")
    await world.until_live(world.hub.live.count or 1)
    socket.block()
    trickle = asyncio.create_task(_trickle(socket))

    def disconnected() -> bool:
        world.post("far " + "x" * 500)
        return stream.disconnect_reason is not None

    await eventually(disconnected, what="a client that is too slow")
    return stream, socket, trickle


async def test_a_client_far_behind_that_gains_nothing_gets_goodbye_with_its_cursor(short_window: World) -> None:
    current_stream, near = short_window.open(track="near")
    stream, socket, trickle = await _too_slow_client(short_window)
    trickle.cancel()
    assert stream.disconnect_reason == reasons.TOO_SLOW
    await eventually(lambda: socket.finished)
    socket.unblock()
    goodbye = socket.messages()[-1]
    assert (goodbye["kind"], goodbye["code"], goodbye["retry_after"]) == ("goodbye", "too_slow", 5.0)
    stream.connection_lost()
    assert short_window.hub.counters.ended_streams == {"too_slow": 1}
    _, again = short_window.open(short_window.position_of(goodbye["cursor"]), track="far")
    said = [entry.event.text for entry in short_window.log.entries]
    await eventually(lambda: len(again.texts()) + len(socket.texts()) == len(said))
    assert socket.texts() + again.texts() == said
    assert current_stream.disconnect_reason is None
    assert "warning" not in near.kinds()


async def test_the_goodbye_of_a_slow_client_waits_while_the_client_takes_bytes(short_window: World) -> None:
    stream, socket, trickle = await _too_slow_client(short_window)
    await eventually(lambda: socket.finished)
    deadline, began = short_window.hub.limits.write_timeout_seconds, asyncio.get_running_loop().time()
    await eventually(lambda: asyncio.get_running_loop().time() > began + 4 * deadline)
    assert not socket.aborted
    trickle.cancel()
    await eventually(lambda: socket.aborted)
    stream.connection_lost()
    assert short_window.hub.counters.ended_streams == {"aborted": 1}


async def test_a_client_far_behind_that_gains_is_not_cut(short_window: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client is one entry nearer at each check, and never near. The clock goes on only where the test says so."""
    limits, now = short_window.hub.limits, asyncio.get_running_loop().time()
    monkeypatch.setattr(stream_session, "_loop_time", lambda: now)
    for number in range(2000):
        short_window.post(f"{number} " + "x" * 100)
    stream, socket = short_window.open(LOG_START, firehose="true")

    def behind() -> int:
        return short_window.hub.head.n - stream.position.n

    socket.block()
    await eventually(lambda: socket.is_waited_for)
    for distance in range(behind(), behind() - 3 * CHECKS_PER_WINDOW, -1):
        before = stream.position.n
        socket.unblock(writes=1)
        await eventually(partial(_progressed, stream, before))
        await eventually(lambda: socket.is_waited_for)
        for _ in range(distance - 1 - behind()):
            short_window.post("more")
        now += 1.01 * limits.slow_window_seconds / CHECKS_PER_WINDOW
    assert behind() > limits.far_behind_entries
    socket.unblock()
    await eventually(lambda: stream.is_live or stream.disconnect_reason, what="live")
    assert stream.disconnect_reason is None
    await eventually(lambda: socket.received.count(b"\n") > len(short_window.log.entries), what="everything")
    assert socket.texts() == [entry.event.text for entry in short_window.log.entries]
    assert stream.disconnect_reason is None


def _progressed(stream: StreamSession, n: int) -> bool:
    assert stream.disconnect_reason is None
    return stream.position.n > n


async def test_a_live_client_is_warned_at_sixty_percent(large_buffer: World) -> None:
    stream, slow = large_buffer.open(firehose="true")
    _, quick = large_buffer.open(firehose="true")
    await large_buffer.until_live(2)
    slow.block()

    async def said(text: str) -> None:
        large_buffer.post(text + " " + "x" * 400)
        await eventually(lambda: quick.texts() and quick.texts()[-1].startswith(text))

    number = 0
    while b"warning" not in slow.waiting:
        number += 1
        await said(f"{number}")
    assert stream.is_live
    while not large_buffer.hub.counters.slow_demotions:
        number += 1
        await said(f"{number}")
    await said("the last")
    slow.unblock()
    await eventually(lambda: slow.texts() == quick.texts())
    (warning,) = (message for message in slow.messages() if message["kind"] == "warning")
    assert warning["code"] == "falling_behind"
    assert isinstance(warning["percent"], int)
    assert 60 <= warning["percent"] < 100
    at = slow.messages().index(warning)
    _, again = large_buffer.open(large_buffer.position_of(warning["cursor"]), firehose="true")
    await eventually(lambda: len(again.texts()) == len(quick.texts()) - (at - 1))
    assert slow.texts()[: at - 1] + again.texts() == quick.texts()


async def test_a_stream_is_warned_every_five_minutes_at_most(world: World) -> None:
    member = world.open(firehose="true")[0]
    asked = {0: 0.609, 299: 0.9, 300: 1.2, 301: 1.0}
    warnings = {now: member.slow_warning(LOG_START, full, now) for now, full in asked.items()}
    percents = {now: notice and notice.members["percent"] for now, notice in warnings.items()}
    assert percents == {0: 60, 299: None, 300: 100, 301: None}
