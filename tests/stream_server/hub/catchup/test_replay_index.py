"""The replay index finds by keys what a scan of all entries finds."""

import math
import random
from typing import Any

import pytest

from filters.index_keys import LANGUAGE
from filters.sample import Firehose
from filters.subscription import Subscription
from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.events.position import EPOCH_MS, Position
from stream_server.hub.catchup import replay_index
from stream_server.hub.catchup.replay_index import BLOCK_ENTRIES, ReplayIndex, ReplayQuery
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from tests.stream_server.hub.world import World
from tests.waiting import eventually

NOBODY = frozenset({f"{LANGUAGE}xx"})  # no screen: the tests of blocks need a block at once
ENOUGH = 1 << 30
ALL = Subscription([Firehose()])

WORDS = ("storm", "gull", "night", "ferry", "harbour", "calm")


def entry(n: int, text: str, uid: str = "7") -> Entry:
    """Return a post, or an entry that cannot be read."""
    body = f'{{"wire":{{"status":{{"id":"{n}","uid":"{uid}","message":"{text}"}}}}}}'
    return Entry(Position(EPOCH_MS + n, 0, n), "post", PUBLIC_AUDIENCE, body.encode() if text != "{" else b"no JSON")


def make_ring(begin: Position, last: int, *, max_bytes: int = ENOUGH) -> Ring:
    """Return a ring of posts up to a number. Each has its number and one of six words."""
    made = Ring(begin, max_bytes=max_bytes, max_age_ms=1e12, now_ms=lambda: EPOCH_MS)
    extend(made, last)
    return made


def extend(made: Ring, last: int, text: str = "") -> None:
    for n in range(made.head.n + 1, last + 1):
        made.append(entry(n, text or f"n{n} {WORDS[n % len(WORDS)]}"))


def position(n: int) -> Position:
    return Position(EPOCH_MS + n, 0, n)


def search_all(made: ReplayIndex, held: Ring, begin: Position, sought: frozenset[str], most: int = ENOUGH) -> list[int]:
    """Return the numbers of all entries found after a position, piece by piece up to the head."""
    found: list[int] = []
    while begin != held.head:
        entries, reached = made.find_after(begin, ReplayQuery(ALL, sought), most, math.inf)
        assert reached > begin, "it goes on"
        assert all(begin < one.position <= reached for one in entries)
        found += [one.position.n for one in entries]
        begin = reached
    return found


@pytest.mark.parametrize("floor", [0, 1, BLOCK_ENTRIES - 1, BLOCK_ENTRIES, BLOCK_ENTRIES + 1, 700])
def test_a_search_finds_what_a_scan_of_all_entries_finds(floor: int) -> None:
    held = make_ring(position(floor), floor + 3 * BLOCK_ENTRIES + 5)
    made = ReplayIndex(held)
    for begin in range(floor, held.head.n + 1, 37):
        for sought in (frozenset({"gull"}), frozenset({"storm", f"n{begin + 1}"}), frozenset({*WORDS}), NOBODY):
            there = [n for n in range(begin + 1, held.head.n + 1) if {f"n{n}", WORDS[n % len(WORDS)]} & sought]
            assert search_all(made, held, position(begin), sought) == there
            assert search_all(made, held, position(begin), sought, 1) == there


def test_the_index_follows_the_ring() -> None:
    held = make_ring(position(0), 100, max_bytes=300 * entry(1000, "n1000 harbour").size)
    made = ReplayIndex(held)
    assert search_all(made, held, position(99), NOBODY) == []  # the blocks are there
    assert search_all(made, held, position(99), frozenset({"n100"})) == [100]
    extend(held, 110)
    assert search_all(made, held, position(99), frozenset({"n100", "n105"})) == [100, 105]
    extend(held, 450)
    assert held.floor.n > 110
    assert search_all(made, held, held.floor, frozenset({f"n{held.floor.n + 1}", "n450"})) == [
        held.floor.n + 1, 450,
    ]  # fmt: skip


def test_older_entries_that_the_ring_gets_later_are_found() -> None:
    """A webhook is served while the ring of a starting server is filled. Then a client returns to an older entry."""
    every = make_ring(position(0), 60)
    older = [*every.peek_numbers(10, 40)]
    held = make_ring(position(40), 60)
    made = ReplayIndex(held)
    assert search_all(made, held, position(40), NOBODY) == []  # the block is there
    assert held.add_older(older)
    for begin in (position(10), position(39), position(40), position(50)):
        assert search_all(made, held, begin, frozenset({"n11", "n40", "n41", "n55"})) == [
            n for n in (11, 40, 41, 55) if n > begin.n
        ]  # fmt: skip


def test_entries_cut_from_the_ring_are_not_found() -> None:
    held = make_ring(position(0), 50)
    made = ReplayIndex(held)
    assert search_all(made, held, position(0), NOBODY) == []  # the block is there
    assert search_all(made, held, position(0), frozenset({"n45"})) == [45]
    held.cut_after(position(40))
    extend(held, 50, "other")
    assert search_all(made, held, position(0), frozenset({"n45", "n39", "other"})) == [39, *range(41, 51)]


def test_an_entry_that_cannot_be_read_matches_nothing() -> None:
    held = make_ring(position(0), 3)
    extend(held, 4, "{")
    extend(held, 6)
    assert search_all(ReplayIndex(held), held, position(0), frozenset({"n3", "n4", "n5"})) == [3, 5]


def test_the_number_of_blocks_is_bounded_and_unused_blocks_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_index, "MAX_BLOCKS", 2)
    held = make_ring(position(0), 5 * BLOCK_ENTRIES)
    made = ReplayIndex(held)
    assert search_all(made, held, position(0), NOBODY) == []
    assert len(made._blocks) == 2
    made.drop_unused_blocks()
    assert len(made._blocks) == 2
    made.drop_unused_blocks()
    assert made._blocks == {}


def test_decoded_entries_are_dropped_as_without_the_index() -> None:
    held = make_ring(position(0), 100)
    made = ReplayIndex(held)
    for sought in (frozenset({"gull"}), None):
        for _ in range(4):  # the block stays, what it is made of cools
            entries, _ = made.find_after(position(0), ReplayQuery(ALL, sought), ENOUGH, math.inf)
            assert [one.event for one in entries] != []
            held.drop_unread_caches()
            made.drop_unused_blocks()
        held.drop_unread_caches()
        held.drop_unread_caches()
        assert [one for one in entries if one._is_decoded] == []


class FilterWithoutKeys(Firehose):
    def __init__(self, name: int) -> None:
        self._name = name

    @property
    def canonical_form(self) -> int:  # type: ignore[override]  # a firehose has one for all
        return self._name


def test_every_search_advances_without_any_time() -> None:
    """More filters without keys than are remembered: no search starts again forever."""
    held = make_ring(position(0), BLOCK_ENTRIES + 20)
    made = ReplayIndex(held)
    search_all(made, held, position(0), NOBODY)  # the blocks are there
    positions = {FilterWithoutKeys(number): position(number) for number in range(3 * replay_index.MAX_SCAN_RESULTS)}
    rounds = 0
    while any(place != held.head for place in positions.values()):
        rounds += 1
        for heavy, place in positions.items():
            if place != held.head:
                entries, reached = made.find_after(place, ReplayQuery(Subscription([heavy]), None), ENOUGH, 0.0)
                assert reached > place
                assert [one.position.n for one in entries] == list(range(place.n + 1, reached.n + 1))
                positions[heavy] = reached
    assert rounds <= held.head.n


def test_a_rollback_entry_is_found_by_every_search() -> None:
    held = make_ring(position(0), 5)
    word = Entry(position(6), "rollback", "-", b'{"wire":{"from":"1-0.1","to":"2-0.2"}}')
    held.append(word)
    extend(held, 9)
    found = ReplayIndex(held).find_after(position(0), ReplayQuery(ALL, NOBODY), ENOUGH, math.inf)
    assert found == ([word], position(9))


@pytest.mark.parametrize("seed", range(12))
async def test_a_replay_with_the_index_equals_a_replay_without(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    world = World()
    positions = _random_entries(world, chance)
    for params in FILTERS:
        since = chance.choice(positions)
        indexed = await _replay(world, since, params)
        with monkeypatch.context() as patched:
            patched.setattr(Client, "search_keys", None)
            patched.setattr(Client, "uses_saved_rules", True)
            assert indexed == await _replay(world, since, params)
        assert indexed or since.n > world.hub.head.n - BLOCK_ENTRIES


FILTERS: tuple[dict[str, Any], ...] = (
    {"track": "storm,night gull"}, {"follow": "3,5"}, {"rule": "storm -calm OR gull"}, {"track": "ferry"},
    {"follow": "7", "kinds": "post,delete,comment,uncomment"}, {"sample": "40"}, {"firehose": "true"},
)  # fmt: skip


def _random_entries(world: World, chance: random.Random) -> list[Position]:
    """Publish two blocks of random entries. Returns the positions at which a client may have been."""
    posts, positions = [world.post("calm", "1")], [world.hub.head]
    for _ in range(2 * BLOCK_ENTRIES):
        deed, uid, said = chance.random(), str(chance.randrange(9)), " ".join(chance.sample(WORDS, 2))
        if deed < 0.7:
            posts.append(world.post(said, uid))
        elif deed < 0.85:
            posts.append(world.post(said, uid, original=chance.choice(posts)))
        elif deed < 0.95:
            world.comment(said, uid, chance.choice(posts))
        elif len(posts) > 1:
            world.delete(posts.pop(chance.randrange(len(posts))))
        positions.append(world.hub.head)
    return positions


async def _replay(world: World, since: Position, params: dict[str, Any]) -> list[dict[str, object]]:
    stream, socket = world.open(since, **params)
    await eventually(lambda: stream.is_live, what="it is live")
    stream.connection_lost()
    return socket.messages()[1:]
