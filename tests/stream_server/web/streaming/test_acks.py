"""Acks of one process: how many commands they take, and what becomes of them while Redis is away."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from stream_server.errors import ApiError, InvalidCursor, NotFound, Unavailable
from stream_server.events.position import Position
from stream_server.store.social.subscriptions import Ack, AckOutcome
from stream_server.web.streaming import acks
from stream_server.web.streaming.acks import Acks
from tests.waiting import eventually


class Kept:
    """The part of the store that takes acks: it notes each call, and answers at once or with ``error``."""

    def __init__(self) -> None:
        self.calls: list[dict[tuple[str, str], int]] = []
        self.sent: list[tuple[str, str, int, int]] = []
        self.error: ApiError | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def ack(self, sent: Sequence[Ack]) -> list[AckOutcome]:
        assert len({(*one[:2], one.created_ms) for one in sent}) == len(sent)
        self.sent += [(one.uid, one.name, one.cursor.n, one.created_ms) for one in sent]
        self.calls.append({(one.uid, one.name): one.cursor.n for one in sent})
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        words = {"none": AckOutcome.UNKNOWN, "above": AckOutcome.AHEAD}
        return [words.get(one.name, AckOutcome.ACKED) for one in sent]


def at(n: int) -> Position:
    return Position(1_800_000_000_000 + n, 0, n)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
async def joined(kept: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Acks]:
    monkeypatch.setattr(acks, "JOIN_SECONDS", 0.05)
    made = Acks(kept)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()
    await asyncio.wait({running})


async def test_many_acks_are_one_command_with_the_highest_cursor_of_each(kept: Kept, joined: Acks) -> None:
    """The first is sent at once; all that come until the next command are joined."""
    await joined.ack(Ack("1", "work", at(1)))
    assert kept.calls == [{("1", "work"): 1}]
    waiting = [asyncio.create_task(joined.ack(Ack("1", "work", at(n)))) for n in (7, 30, 9)]
    for n in range(100):
        joined.add(Ack("1", "other", at(n)))
        joined.add(Ack("2", "work", at(200 - n)))
    await asyncio.gather(*waiting)
    assert kept.calls[1:] == [{("1", "work"): 30, ("1", "other"): 99, ("2", "work"): 200}]


async def test_who_waits_is_told_what_became_of_the_ack(kept: Kept, joined: Acks) -> None:
    for name, error in (("none", NotFound), ("above", InvalidCursor)):
        with pytest.raises(error):
            await joined.ack(Ack("1", name, at(1)))
        with pytest.raises(error):
            await joined.ack_now(Ack("1", name, at(1)))
    gone = asyncio.create_task(joined.ack(Ack("1", "work", at(1))))
    stays = asyncio.create_task(joined.ack(Ack("1", "work", at(2))))
    await asyncio.sleep(0)
    gone.cancel()
    await stays
    assert gone.cancelled() or gone.done()


async def test_acks_of_streams_outlive_an_outage(kept: Kept, joined: Acks) -> None:
    kept.error = Unavailable("away")
    joined.add(Ack("1", "work", at(5)))
    with pytest.raises(Unavailable):
        await joined.ack(Ack("1", "asked", at(6)))
    joined.add(Ack("1", "work", at(4)))
    seen = len(kept.calls)
    await eventually(lambda: len(kept.calls) > seen + 1)
    assert kept.calls[-1] == {("1", "work"): 5}
    kept.error = None
    await eventually(lambda: not joined._waiting)
    seen = len(kept.calls)
    await joined.ack(Ack("1", "last", at(1)))
    assert kept.calls[seen:] == [{("1", "last"): 1}]


async def test_a_process_that_stops_sends_what_waits(kept: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acks, "JOIN_SECONDS", 3600.0)
    made = Acks(kept)
    running = asyncio.create_task(made.run())
    made.add(Ack("1", "work", at(1)))
    await eventually(lambda: kept.calls)
    made.add(Ack("1", "work", at(2)))
    running.cancel()
    await asyncio.wait({running})
    assert kept.calls == [{("1", "work"): 1}, {("1", "work"): 2}]


async def test_a_process_that_stops_in_a_command_sends_its_acks_again(kept: Any) -> None:
    made = Acks(kept)
    kept.may_answer.clear()
    made.add(Ack("1", "work", at(1)))
    asked = asyncio.create_task(made.ack(Ack("1", "asked", at(2))))
    await asyncio.sleep(0)  # so that it waits
    running = asyncio.create_task(made.run())
    await eventually(lambda: kept.calls)
    asyncio.get_running_loop().call_soon(kept.may_answer.set)
    running.cancel()
    await asyncio.wait({running})
    assert kept.calls == [{("1", "work"): 1, ("1", "asked"): 2}] * 2
    with pytest.raises(Unavailable):
        await asked


async def test_acks_of_a_subscription_and_of_its_successor_are_apart(kept: Kept, joined: Acks) -> None:
    """They have one name, and other times of making."""
    await joined.ack(Ack("1", "first", at(1)))
    joined.add(Ack("1", "work", at(9), 5))
    joined.add(Ack("1", "work", at(3), 6))
    joined.add(Ack("1", "work", at(2), 6))
    await joined.ack(Ack("1", "last", at(1)))
    assert kept.sent[-3:] == [("1", "work", 9, 5), ("1", "work", 3, 6), ("1", "last", 1, 0)]
