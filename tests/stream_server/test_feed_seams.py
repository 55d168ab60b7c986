"""Where PUBLISH and the log meet: each rule that a hurried hand would break, with little to wait for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from stream_server.events.position import Position
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import LinkLost
from tests.stream_server.feeding import Node, Pen
from tests.waiting import eventually


def _beats(node: Node, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """Waits for so many more beats of the canary: a feed that goes on as if nothing was comes to them soon."""
    beats: list[Position] = []
    inspect = node.store.log.look_up_with_run_id

    async def counted(place: Position) -> Any:
        found = await inspect(place)
        beats.append(place)
        return found

    monkeypatch.setattr(node.store.log, "look_up_with_run_id", counted)

    async def more(count: int) -> None:
        seen = len(beats)
        await eventually(lambda: len(beats) >= seen + count, seconds=30, what="beats")

    return more


async def test_who_says_ready_has_read_the_log_behind_the_subscription(
    redis_url: str, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written before the subscription is in force is heard by nobody: it is read before all is called well."""
    node = Node(redis_url, 3600.0)
    listen = node.store.log.subscribe
    places: list[Position] = []

    async def late() -> AsyncGenerator[bytes | None, None]:
        async with aclosing(listen()) as messages:
            async for message in messages:
                if message is None:
                    places.append(pen.write(published=False))
                yield message

    monkeypatch.setattr(node.store.log, "subscribe", late)
    await node.open()
    try:
        assert node.heard() == places
    finally:
        await node.close()


async def test_a_known_number_under_another_id_is_no_duplicate(without_canary: Node, pen: Pen) -> None:
    """The log has lost its end and used the numbers again, while the link was there all the time."""
    node = without_canary
    await node.hears([pen.write() for _ in range(10)])
    lost = pen.lose(4, links=False)
    for _ in range(8):
        pen.write()
    await eventually(lambda: node.hub.head == pen.places()[-1], seconds=30, what="the log's end")
    assert not set(lost) & set(node.heard())
    assert node.heard() == pen.places()
    assert [reason for _, reason, _ in node.jumps] == ["rolled_back"]


async def test_a_few_beats_are_enough_to_find_what_was_not_heard(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canary looks where the log is, and does not only ask."""
    more = _beats(node, monkeypatch)
    place = pen.write(published=False)
    await more(4)
    assert node.heard() == [place]


async def test_a_few_beats_are_enough_to_find_what_was_lost(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was known to be there at the last beat."""
    more = _beats(node, monkeypatch)
    places = [pen.write() for _ in range(5)]
    await node.hears(places)
    await more(2)
    pen.lose(2, links=False)  # no new link that would look at more than the head
    await more(4)
    assert [(to.n, reason) for to, reason, _ in node.jumps] == [(3, "rolled_back")]


async def test_a_feed_that_is_ended_just_as_its_link_ends_has_ended(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both at once must not cancel each other out: the server would go on that was told to stop."""
    lives: list[Feed] = []

    async def failing(feed: Feed) -> None:
        lives.append(feed)
        try:
            await asyncio.Event().wait()
        finally:
            if len(lives) == 1:
                raise LinkLost("at the same moment")

    monkeypatch.setattr(Feed, "_run_canary", failing)
    node = Node(redis_url)
    await node.open()
    node.task.cancel()
    await eventually(lambda: node.task.done() or len(lives) > 1, what="an end, or another life")
    assert len(lives) == 1
    await node.close()
