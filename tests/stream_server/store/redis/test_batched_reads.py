"""Questions of opening streams: many share a call, few calls run at once, and each asker gets its own answer."""

import asyncio
from collections.abc import Sequence

import pytest

from stream_server.errors import Unavailable
from stream_server.runtime import fair_queue
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.batched_reads import MAX_CALLS, MAX_QUESTIONS, BatchedReads
from tests.stream_server.store.redis.budgets import budget


class Oracle:
    """Answers a number by its square, when it is let go. Numbers in ``unknown`` fail their whole call.

    Attributes:
        calls: The questions of each call, in order.
        most: Most questions that were under way at once.
    """

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.calls: list[list[int]] = []
        self.unknown: set[int] = set()
        self.most = self._asked = 0

    async def read(self, questions: list[int]) -> Sequence[int]:
        self.calls.append(questions)
        self._asked += len(questions)
        self.most = max(self.most, self._asked)
        assert timeout_budget.CURRENT.get() is None
        await self.open.wait()
        self._asked -= len(questions)
        if not self.unknown.isdisjoint(questions):
            raise Unavailable("silent")
        return [number * number for number in questions]


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


async def turns(count: int = 5) -> None:
    """Let the event loop go on for a few turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_questions_of_one_turn_share_a_call(oracle: Oracle) -> None:
    oracle.open.set()
    reads = BatchedReads(oracle.read)
    assert await asyncio.gather(*map(reads.ask, range(MAX_QUESTIONS))) == [n * n for n in range(MAX_QUESTIONS)]
    assert await reads.ask(50) == 2500
    assert oracle.calls == [list(range(MAX_QUESTIONS)), [50]]


async def test_a_crowd_is_answered_in_order_by_few_calls_at_once(oracle: Oracle) -> None:
    reads = BatchedReads(oracle.read)
    first = [reads.ask(0)]
    await turns()  # the first call is under way with one question
    asked = first + [reads.ask(number) for number in range(1, 200)]
    await turns()
    assert len(oracle.calls) == MAX_CALLS
    oracle.open.set()
    assert await asyncio.gather(*asked) == [number * number for number in range(200)]
    assert [number for call in oracle.calls for number in call] == list(range(200))
    assert oracle.most <= MAX_CALLS * MAX_QUESTIONS
    assert not reads._waiting
    assert reads._waiting_calls == 0


async def test_questions_that_wait_share_the_next_call(oracle: Oracle) -> None:
    reads = BatchedReads(oracle.read)
    asked = []
    for number in range(MAX_CALLS + MAX_QUESTIONS):  # each in a turn of its own
        asked.append(reads.ask(number))
        await turns()
    oracle.open.set()
    await asyncio.gather(*asked)
    assert oracle.calls == [*([number] for number in range(MAX_CALLS)), list(range(MAX_CALLS, len(asked)))]


async def test_a_call_that_fails_fails_only_those_who_share_it(oracle: Oracle) -> None:
    reads = BatchedReads(oracle.read)
    oracle.unknown = {0}
    oracle.open.set()
    answers = await asyncio.gather(*map(reads.ask, range(MAX_QUESTIONS + 1)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Unavailable] * MAX_QUESTIONS + [int]
    assert await reads.ask(3) == 9


async def test_an_asker_that_leaves_ends_the_question_of_no_other(oracle: Oracle) -> None:
    reads = BatchedReads(oracle.read)
    asked = [reads.ask(number) for number in range(4)]
    asked[0].cancel()  # before the call
    await turns()
    asked[1].cancel()  # while it is under way
    oracle.open.set()
    assert await asyncio.gather(*asked[2:]) == [4, 9]
    assert oracle.calls == [[1, 2, 3]]


@pytest.mark.parametrize("failures", [0, 1])
async def test_a_crowd_that_leaves_leaves_nothing(oracle: Oracle, failures: int) -> None:
    reads = BatchedReads(oracle.read)
    asked = [reads.ask(number) for number in range(200)]
    await turns()
    oracle.unknown = set(range(failures))
    for answer in asked:
        answer.cancel()
    oracle.open.set()
    assert await reads.ask(3) == 9
    await turns()
    assert (len(reads._waiting), reads._waiting_calls, len(reads._calls)) == (0, 0, 0)


async def test_all_that_wait_are_refused_when_redis_is_down(oracle: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_queue, "DOWN_AFTER_SECONDS", 0.0)
    reads = BatchedReads(oracle.read)
    asked = [reads.ask(number) for number in range(200)]
    await turns()
    oracle.unknown = set(range(200))
    oracle.open.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(answer) for answer in answers} == {Unavailable}
    assert len(oracle.calls) == MAX_CALLS


async def test_a_call_has_not_the_budget_of_the_request_that_asks(oracle: Oracle) -> None:
    reads = BatchedReads(oracle.read)
    oracle.open.set()
    with budget(0.0):
        assert await reads.ask(3) == 9  # `Oracle.read` looks
