"""Summary streams: the windows of a client neither overlap nor leak, whatever happens to its connection."""

import asyncio
import random
from dataclasses import replace
from typing import Any

import pytest

from stream_server.events.entry import Entry
from stream_server.events.position import Position, parse_iso_ms
from stream_server.hub.disconnect import shutdown_reason
from stream_server.hub.messages import ROLLED_BACK, StreamNotice
from stream_server.hub.window import GRACE_MS
from tests.stream_server.hub.test_filter_change import Change
from tests.stream_server.hub.world import LIMITS, World
from tests.tiers import sample
from tests.waiting import eventually

PERIOD_MS = 1000
RULES = "tea\nhot:milk"
TAGS = {"tea": ("r1", ""), "milk": ("r2", "hot")}
OTHER_RULES = "water"
TAGS_OF = {RULES: TAGS, OTHER_RULES: {"water": ("r1", "")}}
WORDS = ("tea", "milk", "tea milk", "water")

CLOCKS = ("server clock", "log clock")

ACTS = (
    *("post",) * 6, *("time",) * 2, *("block",) * 2, "unblock", "reopen", "new", "heartbeat", "demote", "wait",
    "change", *CLOCKS,
)  # fmt: skip
"""What happens in a random history, as often as it stands here."""

Message = dict[str, Any]


class RulesChange(Change):
    """Another parameter ``rule``. The message `effective` repeats it."""

    def notices(self, position: Position) -> list[StreamNotice]:
        return [StreamNotice("effective", position, {"rule": self.options["rule"]})]


class Reader:
    """A client of a summary, which goes on at the cursor of its last message when its connection has ended."""

    def __init__(self, world: World, since: Position | None = None, **options: Any) -> None:
        self.world = world
        self.options = options or {"rule": RULES}
        self.start = self.position = world.hub.head if since is None else since
        self.earlier: list[Message] = []
        self.open()

    def open(self) -> None:
        asked = self.world.request(self.position, **self.options)
        framing = asked.framing._replace(summary_ms=PERIOD_MS)
        self.session, self.socket = self.world._begin(asked._replace(framing=framing))

    def reopen(self) -> None:
        """Lose the connection, and what the socket has not taken. Go on with a new one."""
        self.session.connection_lost()
        self.earlier += self.received()
        self.position = self.world.position_of(self.earlier[-1]["cursor"])
        if "rule" in self.options:
            self.options["rule"] = self.rules
        self.open()

    def change(self, rules: str) -> None:
        """Ask for other rules. They are in force from the message `effective` on."""
        self.session.change_filters(RulesChange(self.world, rule=rules))

    def received(self) -> list[Message]:
        return self.socket.messages()

    @property
    def messages(self) -> list[Message]:
        return [*self.earlier, *self.received()]

    @property
    def counts(self) -> list[Message]:
        return [message for message in self.messages if message["kind"] == "count"]

    @property
    def rules(self) -> str:
        """The rules in force, as the messages tell."""
        changes = [str(message["rule"]) for message in self.messages if message["kind"] == "effective"]
        return [RULES, *changes][-1]

    def cursor(self) -> Position:
        return self.world.position_of(self.messages[-1]["cursor"])


def between(world: World, start: Position, end: Position, rules: str = RULES) -> list[tuple[Entry, list[str]]]:
    """Return the posts after one position and up to another that some rules match, and the words of each."""
    entries = [entry for entry in world.log.entries if entry.kind == "post" and start.n < entry.position.n <= end.n]
    said = [(entry, str(entry.event.text).split()) for entry in entries]
    return [(entry, words) for entry, words in said if TAGS_OF[rules].keys() & words]


def check(world: World, reader: Reader) -> None:
    """Check all messages of a reader: each has the counts of its span. Between two of them is nothing to count."""
    position, rules = reader.start, RULES
    for message in reader.messages:
        begin, end = (world.position_of(message.get(name, message["cursor"])) for name in ("from", "to"))
        assert position <= begin <= end
        assert between(world, position, begin, rules) == []
        position = world.position_of(message["cursor"])
        assert position == end
        if message["kind"] == "effective":
            rules = str(message["rule"])
        if message["kind"] == "count":
            found = between(world, begin, end, rules)
            of_rules = {mark: sum(word in words for _, words in found) for word, mark in TAGS_OF[rules].items()}
            counts = [{"id": rule, "tag": tag, "count": count} for (rule, tag), count in of_rules.items() if count]
            told = sorted(message["counts"], key=lambda one: str(one["id"]))
            assert (message["count"], told) == (len(found), counts)
            period = range(parse_iso_ms(message["began"]), parse_iso_ms(message["ended"]))
            assert len(period) == PERIOD_MS
            assert all(entry.position.ms in period for entry, _ in found)


def pass_time(world: World, ms: int) -> None:
    """Let time pass, and do what the heartbeats do twice a second."""
    world.now_ms += ms
    world.hub.live.summaries.close_due(world.now_ms)


def set_clock(world: World, clock: str, ms: int) -> None:
    """Set the clock of the server, or of the log, forward or back."""
    if clock == "server clock":
        world.now_ms += ms
    world.log_ahead_ms += ms if clock == "log clock" else -ms


def send_heartbeats(world: World) -> None:
    for group in world.hub.live.groups():
        group.next_heartbeat_at = 0.0
    world.hub._heartbeats._queue_heartbeats()


@pytest.fixture(params=["ring", "log"])
async def tight(request: pytest.FixtureRequest) -> Any:
    """A hub that demotes a client whose socket holds few messages. It then reads the ring, or the log."""
    world = World(replace(LIMITS, buffer_bytes=700, ring_bytes=LIMITS.ring_bytes if request.param == "ring" else 0))
    yield world
    for stream in world.streams:
        stream.connection_lost()
    await world.hub.background_tasks.cancel_all()


@pytest.mark.parametrize("seed", sample(range(60), lambda seed: seed < 8))
async def test_the_windows_of_any_history_hold_each_event_once(tight: World, seed: int) -> None:
    """Clients come, block, are demoted, change their rules, lose their connections and return. Clocks are set.

    Those with equal rules share a group when a period ends.
    """
    world, chance = tight, random.Random(seed)
    world.now_ms += 10**10  # no clock is set back to the time before which there are no ids
    readers = [Reader(world) for _ in range(3)]
    for _ in range(150):
        reader = chance.choice(readers)
        act = chance.choice(ACTS)
        if act == "post":
            world.post(chance.choice(WORDS))
        elif act == "time":
            pass_time(world, chance.choice((1, 100, 700, 2500)))
        elif act == "reopen":
            reader.reopen()
        elif act == "new" and len(readers) < 8:
            known = chance.choice(readers).cursor()
            readers.append(Reader(world, chance.choice((None, known, Position(0, 0, 0)))))
        elif act == "heartbeat":
            send_heartbeats(world)
        elif act == "demote":  # as a client that takes no bytes is
            world.hub.live.demote(reader.session)
        elif act == "change":
            reader.change(chance.choice(list(TAGS_OF)))
        elif act in CLOCKS:
            set_clock(world, act, chance.choice((-3_600_000, -1500, 300, 3_600_000)))
        elif act == "wait":
            await asyncio.sleep(0)  # one step of the tasks
        elif act in {"block", "unblock"}:
            getattr(reader.socket, act)()

    def all_told() -> bool:
        for reader in readers:
            reader.socket.unblock()
        pass_time(world, 2 * GRACE_MS)
        return all(reader.session.is_live and reader.cursor() == world.hub.head for reader in readers)

    await eventually(all_told, what="the last counts")
    for reader in readers:
        check(world, reader)
    assert len(world.hub.live.groups()) == len({reader.rules for reader in readers})


async def test_live_clients_get_a_message_a_period_and_no_events(world: World) -> None:
    """A period without events has a message too. Clients with equal filters get the same bytes."""
    first, second = Reader(world), Reader(world)
    world.now_ms += PERIOD_MS - world.now_ms % PERIOD_MS
    for text in ("tea", "milk tea", "water"):
        world.post(text)
    pass_time(world, PERIOD_MS + GRACE_MS)
    pass_time(world, PERIOD_MS + GRACE_MS)
    world.post("milk")
    pass_time(world, PERIOD_MS + GRACE_MS)
    await eventually(lambda: len(first.counts) == len(second.counts) == 4)
    assert first.counts == second.counts
    assert [message["count"] for message in first.counts] == [0, 2, 0, 1]
    assert first.counts[1]["counts"] == [
        {"id": "r1", "tag": "", "count": 2}, {"id": "r2", "tag": "hot", "count": 1},
    ]  # fmt: skip
    assert [message["kind"] for message in first.messages] == ["hello"] + ["count"] * 4
    check(world, first)


async def test_catching_up_has_a_message_for_each_period_with_events(world: World) -> None:
    """A long time without events costs nothing."""
    for text in ("tea", "tea", "milk"):
        world.post(text)
        world.now_ms += 400
    world.now_ms += 86_400_000
    world.post("tea")
    reader = Reader(world, Position(0, 0, 0))
    await eventually(lambda: reader.session.is_live)
    pass_time(world, 2 * GRACE_MS)
    await eventually(lambda: sum(message["count"] for message in reader.counts) == 4)
    assert len(reader.counts) <= 4
    check(world, reader)


async def test_a_gap_ends_the_window(world: World) -> None:
    """What was counted before Redis lost it stands before the `gap`, as the events of a stream do."""
    posts = [world.post("tea") for _ in range(4)]
    reader = Reader(world, posts[0].position, rule=RULES, viewer_independent=True)
    await eventually(lambda: reader.session.is_live)
    world.post("tea")
    world.hub.move_head(posts[1].position, ROLLED_BACK)
    del world.log.entries[2:]
    world.post("milk")
    pass_time(world, 2 * GRACE_MS + PERIOD_MS)
    await eventually(lambda: len(reader.counts) == 2)
    assert [message["kind"] for message in reader.messages] == ["hello", "count", "gap", "count"]
    before, gap, after = reader.messages[1:]
    assert (before["count"], before["counts"][0]["id"]) == (4, "r1")
    assert gap["cursor"] == after["from"] == posts[1].position.cursor
    assert (after["count"], after["counts"][0]["tag"]) == (1, "hot")


async def test_other_filters_begin_a_window(world: World) -> None:
    """Each message has the counts of one set of filters. What the filters before had counted is told."""
    reader, other = Reader(world), Reader(world)
    world.post("tea")
    reader.change(OTHER_RULES)
    await eventually(lambda: reader.session.is_live)
    for text in ("water", "tea"):
        world.post(text)
    pass_time(world, 2 * GRACE_MS + PERIOD_MS)
    await eventually(lambda: len(reader.counts) == 2)
    assert [message["kind"] for message in reader.messages] == ["hello", "count", "effective", "count"]
    assert [message["count"] for message in reader.counts] == [1, 1]
    assert [message["count"] for message in other.counts] == [2], "a change of another client divides no window"
    check(world, reader)


@pytest.mark.parametrize("jump", [-3_600_000, -1500, 3_600_000])
@pytest.mark.parametrize("clock", CLOCKS)
async def test_a_clock_that_is_set_delays_no_message(world: World, clock: str, jump: int) -> None:
    """For whichever time: each period of the server has a message, whose time is that of the log."""
    reader = Reader(world)
    for _ in range(2):
        world.post("tea")
        pass_time(world, PERIOD_MS)
        set_clock(world, clock, jump)
        jump = -jump
        for _ in range(3):
            world.post("milk")
            before = len(reader.counts)
            pass_time(world, 0)
            assert len(reader.counts) <= before + 1
            pass_time(world, PERIOD_MS + GRACE_MS)
            await eventually(lambda: sum(one["count"] for one in reader.counts) == len(world.log.entries))
    check(world, reader)


async def test_a_clock_that_is_wrong_has_a_message_a_period(world: World) -> None:
    """Events that come late, or from the future, wait as long as others for the end of a period."""
    for ahead in (-3_600_000, -1500, 1500, 3_600_000):
        world.log_ahead_ms += ahead
        reader = Reader(world)
        pass_time(world, PERIOD_MS + GRACE_MS)
        for _ in range(40):
            world.post("tea")
            pass_time(world, PERIOD_MS // 10 - 1)
        assert len([message for message in reader.counts if message["count"]]) <= 9
        world.log_ahead_ms -= ahead


async def test_saved_rules_that_change_end_the_window(world: World) -> None:
    """The rules of before count up to `effective`, and those of after from there."""
    reader = Reader(world, rules="saved", saved={"1": "tea"})
    world.post("tea")
    world.post("milk")
    world.change_rules("1", {"2": "milk"}, removed=("1",))
    world.post("milk")
    world.post("tea")
    await eventually(lambda: reader.session.is_live)
    pass_time(world, 2 * GRACE_MS + PERIOD_MS)
    await eventually(lambda: len(reader.counts) == 2)
    assert [message["kind"] for message in reader.messages] == ["hello", "count", "effective", "count"]
    assert [message["counts"] for message in reader.counts] == [
        [{"id": "1", "tag": "tag 1", "count": 1}], [{"id": "2", "tag": "tag 2", "count": 1}],
    ]  # fmt: skip


async def test_a_new_block_leaves_what_is_counted(world: World) -> None:
    """The client moves to a group of its own, with its window. Others of its group go on as before."""
    reader, other = Reader(world), Reader(world, user="2", rule=RULES)
    world.post("tea", uid="7")
    world.relate("block", "1", "7")
    assert len(world.hub.live.groups()) == 2
    world.post("tea", uid="7")
    world.post("tea", uid="8")
    pass_time(world, 2 * GRACE_MS + PERIOD_MS)
    await eventually(lambda: reader.counts and other.counts)
    assert sum(message["count"] for message in reader.counts) == 2
    assert sum(message["count"] for message in other.counts) == 3


async def test_a_goodbye_has_the_cursor_of_the_last_count(world: World) -> None:
    """So what was counted since is counted by the next connection."""
    reader = Reader(world)
    world.post("tea")
    world.hub.stop(lambda: shutdown_reason(1.0))
    await eventually(lambda: reader.messages[-1]["kind"] == "goodbye")
    assert reader.cursor() == reader.start
