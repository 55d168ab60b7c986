"""What a returning client is asked about is found by its keys, and is what looking at everything would have found."""

import math
import random
from typing import Any

import pytest

from filters.firehose import Firehose
from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.kinds import PUBLIC_AUDIENCE
from stream_server.events.position import EPOCH_MS, Position
from stream_server.hub.catchup import replay_index as sieves
from stream_server.hub.catchup.replay_index import BLOCK_ENTRIES, ReplayIndex, ReplayQuery
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from tests.stream_server.hub.world import World
from tests.waiting import eventually

NOBODY = frozenset({"nobodysays"})
ENOUGH = 1 << 30
ALL = Subscription([Firehose()])

WORDS = ("storm", "gull", "night", "ferry", "harbour", "calm")


def entry(n: int, text: str, uid: str = "7") -> Entry:
    """A post, or what is none of ours."""
    body = f'{{"wire":{{"status":{{"id":"{n}","uid":"{uid}","message":"{text}"}}}}}}'
    return Entry(Position(EPOCH_MS + n, 0, n), "post", PUBLIC_AUDIENCE, body.encode() if text != "{" else b"no JSON")


def ring(begin: Position, last: int, *, max_bytes: int = ENOUGH) -> Ring:
    """A ring of posts up to a number, each with its own number and a word that one in six has."""
    made = Ring(begin, max_bytes=max_bytes, max_age_ms=1e12, now_ms=lambda: EPOCH_MS)
    more(made, last)
    return made


def more(made: Ring, last: int, text: str = "") -> None:
    """Go on up to a number."""
    for n in range(made.head.n + 1, last + 1):
        made.append(entry(n, text or f"n{n} {WORDS[n % len(WORDS)]}"))


def start(n: int) -> Position:
    """The place of the entry with this number."""
    return Position(EPOCH_MS + n, 0, n)


def looked_through(
    made: ReplayIndex, held: Ring, begin: Position, sought: frozenset[str], most: int = ENOUGH
) -> list[int]:
    """The numbers of all that may match behind a place, piece by piece up to the head."""
    found: list[int] = []
    while begin != held.head:
        entries, reached = made.find_after(begin, ReplayQuery(ALL, sought), most, math.inf)
        assert reached > begin, "it goes on"
        assert all(begin < one.position <= reached for one in entries)
        found += [one.position.n for one in entries]
        begin = reached
    return found


@pytest.mark.parametrize("floor", [0, 1, BLOCK_ENTRIES - 1, BLOCK_ENTRIES, BLOCK_ENTRIES + 1, 700])
def test_from_any_place_it_finds_what_looking_at_all_would(floor: int) -> None:
    """Also where blocks begin and end, for one key, several and none, and bounded in bytes."""
    held = ring(start(floor), floor + 3 * BLOCK_ENTRIES + 5)
    made = ReplayIndex(held)
    for begin in range(floor, held.head.n + 1, 37):
        for sought in (frozenset({"gull"}), frozenset({"storm", f"n{begin + 1}"}), frozenset({*WORDS}), NOBODY):
            there = [n for n in range(begin + 1, held.head.n + 1) if {f"n{n}", WORDS[n % len(WORDS)]} & sought]
            assert looked_through(made, held, start(begin), sought) == there
            assert looked_through(made, held, start(begin), sought, 1) == there


def test_it_goes_on_with_the_ring() -> None:
    """What came since somebody came past is found, and what came while the ring let go of more than a block."""
    held = ring(start(0), 100, max_bytes=300 * entry(1000, "n1000 harbour").size)
    made = ReplayIndex(held)
    assert looked_through(made, held, start(99), frozenset({"n100"})) == [100]
    more(held, 110)
    assert looked_through(made, held, start(99), frozenset({"n100", "n105"})) == [100, 105]
    more(held, 450)
    assert held.floor.n > 110
    assert looked_through(made, held, held.floor, frozenset({f"n{held.floor.n + 1}", "n450"})) == [
        held.floor.n + 1, 450,
    ]  # fmt: skip


def test_what_the_log_lost_is_found_no_more() -> None:
    """Behind the cut other entries have the same numbers."""
    held = ring(start(0), 50)
    made = ReplayIndex(held)
    assert looked_through(made, held, start(0), frozenset({"n45"})) == [45]
    held.cut_after(start(40))
    more(held, 50, "other")
    assert looked_through(made, held, start(0), frozenset({"n45", "n39", "other"})) == [39, *range(41, 51)]


def test_what_is_no_entry_of_ours_matches_nothing_and_hides_nothing() -> None:
    """One whose body cannot be read, between two others."""
    held = ring(start(0), 3)
    more(held, 4, "{")
    more(held, 6)
    assert looked_through(ReplayIndex(held), held, start(0), frozenset({"n3", "n4", "n5"})) == [3, 5]


def test_few_blocks_are_kept_and_none_that_nobody_comes_past(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, also where one comes past more than are kept."""
    monkeypatch.setattr(sieves, "MAX_BLOCKS", 2)
    held = ring(start(0), 5 * BLOCK_ENTRIES)
    made = ReplayIndex(held)
    assert looked_through(made, held, start(0), NOBODY) == []
    assert len(made._blocks) == 2
    made.drop_unused_blocks()
    assert len(made._blocks) == 2
    made.drop_unused_blocks()
    assert made._blocks == {}


def test_what_is_read_through_it_cools_as_what_is_read_without() -> None:
    """Who reads on in a block that is kept decodes entries that had cooled; two beats later none of it is left."""
    held = ring(start(0), 100)
    made = ReplayIndex(held)
    for sought in (frozenset({"gull"}), None):
        for _ in range(4):  # the block stays, what it is made of cools
            entries, _ = made.find_after(start(0), ReplayQuery(ALL, sought), ENOUGH, math.inf)
            assert [one.event for one in entries] != []
            held.drop_unread_caches()
            made.drop_unused_blocks()
        held.drop_unread_caches()
        held.drop_unread_caches()
        assert [one for one in entries if one._view is not None] == []


class Heavy(Firehose):
    """A filter without keys, of which each is another."""

    def __init__(self, name: int) -> None:
        self._name = name

    @property
    def canonical_form(self) -> int:
        return self._name


def test_however_little_time_there_is_everybody_gets_on() -> None:
    """More filters without keys than are remembered, in turn, each with no time at all: none begins anew for ever."""
    held = ring(start(0), BLOCK_ENTRIES + 20)
    made = ReplayIndex(held)
    looked_through(made, held, start(0), NOBODY)  # the blocks are there
    places = {Heavy(number): start(number) for number in range(3 * sieves.MAX_SCAN_RESULTS)}
    rounds = 0
    while any(place != held.head for place in places.values()):
        rounds += 1
        for heavy, place in places.items():
            if place != held.head:
                entries, reached = made.find_after(place, ReplayQuery(Subscription([heavy]), None), ENOUGH, 0.0)
                assert reached > place
                assert [one.position.n for one in entries] == list(range(place.n + 1, reached.n + 1))
                places[heavy] = reached
    assert rounds <= held.head.n


def test_the_time_that_is_given_holds_for_the_making_of_blocks_too() -> None:
    """Nobody waits for a whole block: who stands behind what is made by then is told so, and looks at each entry."""
    held = ring(start(0), BLOCK_ENTRIES)
    made = ReplayIndex(held)
    assert made.find_after(start(100), ReplayQuery(ALL, NOBODY), ENOUGH, 0.0) == ([], start(100))
    assert made.find_after(start(0), ReplayQuery(ALL, NOBODY), ENOUGH, 0.0) == ([], start(2))


def test_whoever_asks_for_nothing_that_is_there_is_told_of_a_loss() -> None:
    """What says that the log has lost something has nobody's keys."""
    held = ring(start(0), 5)
    word = Entry(start(6), "rollback", "-", b'{"wire":{"from":"1-0.1","to":"2-0.2"}}')
    held.append(word)
    more(held, 9)
    assert ReplayIndex(held).find_after(start(0), ReplayQuery(ALL, NOBODY), ENOUGH, math.inf) == ([word], start(9))


@pytest.mark.parametrize("seed", range(12))
async def test_who_returns_hears_the_same_as_by_looking_at_everything(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Posts, quotes, deletes and comments at random; filters with keys; each client begins anywhere."""
    chance = random.Random(seed)
    world = World()
    places = _live_through(world, chance)
    for params in FILTERS:
        since = chance.choice(places)
        sieved = await _heard(world, since, params)
        with monkeypatch.context() as patched:
            patched.setattr(Client, "search_keys", None)
            patched.setattr(Client, "uses_saved_rules", True)
            assert sieved == await _heard(world, since, params)
        assert sieved or since.n > world.hub.head.n - BLOCK_ENTRIES


FILTERS: tuple[dict[str, Any], ...] = (
    {"track": "storm,night gull"}, {"follow": "3,5"}, {"rule": "storm -calm OR gull"}, {"track": "ferry"},
    {"follow": "7", "kinds": "post,delete,comment,uncomment"}, {"sample": "40"}, {"firehose": "true"},
)  # fmt: skip


def _live_through(world: World, chance: random.Random) -> list[Position]:
    """Two blocks of what may happen; the places where a client may have been meanwhile."""
    posts, places = [world.post("calm", "1")], [world.hub.head]
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
        places.append(world.hub.head)
    return places


async def _heard(world: World, since: Position, params: dict[str, Any]) -> list[dict[str, object]]:
    stream, socket = world.open(since, **params)
    await eventually(lambda: stream.client in world.hub.live, what="it is live")
    stream.connection_lost()
    return socket.messages()[1:]
