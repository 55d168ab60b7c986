"""The filters of an open stream change at a position of the log. Earlier entries met the old ones, later the new."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stream_server.errors import ApiError, Unavailable
from stream_server.events.position import Position
from stream_server.hub.client import BoundFilters
from stream_server.hub.messages import StreamNotice
from stream_server.hub.stream_session import StreamSession
from tests.stream_server.hub.world import Graph, Socket, World
from tests.tiers import sample
from tests.waiting import eventually

WORDS = ("tea", "milk", "coffee")


class Change:
    """Other filters: those of ``World.request`` with ``options``. ``before`` and ``after`` run around reading them."""

    def __init__(
        self, world: World, *, before: Callable[[], Awaitable[None]] | None = None,
        after: Callable[[], Awaitable[None]] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        self.world = world
        self.options = options
        self.before = before
        self.after = after
        self.parameters = "changed"
        self.refused: ApiError | None = None

    async def bind(self, position: Position) -> BoundFilters:
        if self.before is not None:
            await self.before()
        made = self.world.request(position, **self.options)
        if self.after is not None:
            await self.after()
        return BoundFilters(made.subscription, position, viewer=made.viewer, private_view=made.private_view)

    def notices(self, position: Position) -> list[StreamNotice]:
        return [StreamNotice("effective", position, {"word": self.options.get("track")})]

    def refuse(self, error: ApiError) -> None:
        self.refused = error


def expected_texts(world: World, socket: Socket, first: str) -> list[str]:
    """Return the posts that the filters in force let through, by the cursors of ``effective``."""
    changes = [(0, first)] + [
        (world.position_of(message["cursor"]).n, str(message["word"]))
        for message in socket.messages()
        if message["kind"] == "effective"
    ]
    texts = []
    for entry in world.log.entries:
        word = [word for n, word in changes if n < entry.position.n][-1]
        text = str(entry.event.text)
        if word in text.split():
            texts.append(text)
    return texts


async def yields(chance: random.Random) -> None:
    for _ in range(chance.randint(0, 4)):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", sample(range(30), lambda seed: seed < 8))
async def test_any_history_of_posts_changes_and_slow_sockets(world: World, seed: int) -> None:
    """Streams are live, catch up from the ring, or are slow, while posts come and filters change."""
    chance = random.Random(seed)
    personal: dict[str, Any] = {"follow": "@me", "following": set()} if seed % 3 == 0 else {}
    streams = [world.open(track="tea") for _ in range(2)] + [world.open(track="tea", user="2")]
    for _ in range(60):
        session, socket = chance.choice(streams)
        act = chance.choice(("post", "post", "post", "change", "block", "unblock", "wait"))
        if act == "post":
            world.post(f"{chance.choice(WORDS)} {'x' * chance.choice((0, 300))} {len(world.log.entries)}")
        elif act == "change":
            options = {"track": chance.choice(WORDS), "user": session.user_id, **personal}
            change = Change(world, before=lambda: yields(chance), after=lambda: yields(chance), **options)
            session.change_filters(change)
        elif act == "wait":
            await yields(chance)
        else:
            getattr(socket, act)()
    last = world.post("tea milk coffee end").position

    def all_read() -> bool:
        for _, socket in streams:
            socket.unblock()
        return all(socket.texts()[-1:] == ["tea milk coffee end"] for _, socket in streams)

    await eventually(all_read, what="the last post")
    assert last == world.hub.head
    for _, socket in streams:
        assert socket.texts() == expected_texts(world, socket, "tea")


async def test_rules_that_change_while_they_are_read_are_not_lost(world: World) -> None:
    """The stream stands at its position while its rules are read. Rule changes after that reach it by the log."""
    session, socket = world.open(track="water")

    async def change_after() -> None:
        world.post("tea one")
        world.change_rules("1", {"2": "milk"}, removed=("1",))
        world.post("milk two")
        world.post("tea three")
        await asyncio.sleep(0)

    session.change_filters(Change(world, rules="saved", saved={"1": "tea"}, after=change_after))
    await socket.expect_kinds("hello", "effective", "post", "effective", "post")
    assert socket.texts() == ["tea one", "milk two"]


async def test_a_change_that_cannot_be_read_is_refused(world: World) -> None:
    """The old filters go on, and miss nothing meanwhile."""
    session, socket = world.open(track="tea")

    async def fail() -> None:
        world.post("tea one")
        raise Unavailable("Redis is away")

    change = Change(world, track="milk", before=fail)
    assert session.change_filters(change)
    world.post("tea zero")
    assert not session.change_filters(Change(world, track="coffee")), "the first change waits"
    await socket.expect_texts("tea zero", "tea one")
    assert isinstance(change.refused, Unavailable)
    await world.until_live()
    assert session.change_filters(Change(world, track="milk"))
    world.post("milk")
    await socket.expect_kinds("hello", "post", "post", "effective", "post")
    await socket.expect_texts("tea zero", "tea one", "milk")


async def _closed(session: StreamSession, socket: Socket, code: str) -> None:
    await eventually(lambda: socket.finished, what=code)
    assert socket.messages()[-1]["code"] == code
    assert not session.change_filters(Change.__new__(Change))


async def test_a_stream_may_end_while_its_filters_change(world: World) -> None:
    async def revoke() -> None:
        world.revoke("1", "j")
        await asyncio.sleep(0)

    session, socket = world.open(track="tea")
    session.change_filters(Change(world, track="milk", after=revoke))
    await _closed(session, socket, "token_revoked")
    assert "effective" not in socket.kinds()


async def test_relations_that_were_lost_while_they_were_read_end_the_stream(world: World) -> None:
    """A firehose has no relations. The new filters have, and the log then loses the entries before them."""
    session, socket = world.open(firehose="true")

    async def lose() -> None:
        world.hub.viewer_cache.clear()

    session.change_filters(Change(world, track="milk", after=lose))
    await _closed(session, socket, "resync")


async def test_a_block_holds_for_the_new_filters(world: World) -> None:
    world.graphs["1"] = Graph(blocks={"7": 1})
    session, socket = world.open(firehose="true")
    world.post("tea one")
    session.change_filters(Change(world, track="tea"))
    await socket.expect_kinds("hello", "post", "effective")
    world.post("tea two", uid="7")
    world.post("tea three", uid="8")
    await socket.expect_texts("tea one", "tea three")
    session.change_filters(Change(world, firehose="true"))
    await socket.expect_kinds("hello", "post", "effective", "post", "effective")
    world.post("tea four", uid="7")
    await socket.expect_texts("tea one", "tea three", "tea four")
