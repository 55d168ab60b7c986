"""The stream of one reader of a shared subscription: one stream of several parts, each from its own cursor."""

import random
from hashlib import blake2b

import pytest

from filters.parts import Parts
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, Position
from tests.stream_server.hub.world import Socket, World
from tests.waiting import eventually

AUTHORS = [str(at) for at in range(100, 130)]


def part_of(author: str) -> int:
    digest = blake2b(author.encode(), key=b"stream-server subscription part").digest()
    return int.from_bytes(digest[:8], "big") % 8


def expected(posts: list[tuple[str, Entry]], cursors: dict[int, Position]) -> list[str]:
    """The cursors of the posts that a reader of these parts must get, in order."""
    return [
        entry.position.cursor for author, entry in posts
        if part_of(author) in cursors and entry.position > cursors[part_of(author)]
    ]  # fmt: skip


def received(socket: Socket) -> list[object]:
    return [message["cursor"] for message in socket.messages() if message["kind"] == "post"]


@pytest.mark.parametrize("seed", range(6))
async def test_each_part_begins_behind_its_own_cursor_and_all_are_in_order(world: World, seed: int) -> None:
    """While it catches up, when it is live, and after it was slow."""
    chance = random.Random(seed)

    def post() -> tuple[str, Entry]:
        author = chance.choice(AUTHORS)
        return author, world.post("tea", author)

    posts = [post() for _ in range(80)]
    places = [LOG_START, *(entry.position for _, entry in posts)]
    cursors = {part: chance.choice(places) for part in chance.sample(range(8), chance.randint(1, 8))}
    asked = world.request(min(cursors.values()), firehose="true")
    narrowed = asked.subscription.narrowed(Parts(8, cursors))
    stream, socket = world._begin(asked._replace(subscription=narrowed))
    await world.until_live()
    posts += [post() for _ in range(20)]
    world.hub.live.demote(stream)
    posts += [post() for _ in range(20)]
    await eventually(lambda: len(received(socket)) >= len(expected(posts, cursors)))
    assert received(socket) == expected(posts, cursors)


async def test_a_reader_without_a_part_gets_no_event_and_its_position_moves_on(world: World) -> None:
    asked = world.request(firehose="true")
    stream, socket = world._begin(asked._replace(subscription=asked.subscription.narrowed(Parts(8, {}))))
    await world.until_live()
    for author in AUTHORS:
        world.post("tea", author)
    world.hub.live.demote(stream)
    assert stream.position == world.hub.head
    await world.until_live()
    assert received(socket) == []
