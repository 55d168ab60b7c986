"""Asks Redis the questions of many opening streams in few calls.

After a restart all clients ask the same: is my token valid, and whom do I follow? A call for each question costs ten
times as much as the question. So the questions of one iteration of the event loop go together. While Redis answers as
many calls as may run at once, later questions wait and then share the next call.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Generic, TypeVar

from stream_server.runtime.fair_queue import FairQueue

MAX_CALLS = 3
"""Most calls of one kind at the same time."""

MAX_QUESTIONS = 32
"""Most questions of one call. With `MAX_CALLS`, Redis has about a hundred at a time, which it answers well in time."""

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class BatchedReads(Generic[Question, Answer]):
    """Puts the questions of many callers, such as about tokens, into few calls of ``read``.

    ``read`` takes several questions and returns their answers in the same order. In the place of an answer it may
    return a future: then only the caller who asked this question waits for it. Questions wait
    in the order in which they came, in a `FairQueue`.
    """

    def __init__(self, read: Callable[[list[Question]], Awaitable[Sequence[Answer | asyncio.Future[Answer]]]]) -> None:
        self._read = read
        self._queue = FairQueue(MAX_CALLS, "too many streams are being opened; try again")
        self._waiting: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._waiting_calls = 0
        self._calls: set[asyncio.Task[None]] = set()

    def ask(self, question: Question) -> "asyncio.Future[Answer]":
        """Return the future of the answer. It raises the error of the call, such as `Unavailable`."""
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, answer))
        if len(self._waiting) > self._waiting_calls * MAX_QUESTIONS:
            self._waiting_calls += 1
            # It begins in the next iteration of the event loop, with the questions that wait then. Its context is
            # empty, so that the timeout of the request that asked first holds for no other request.
            call = asyncio.get_running_loop().create_task(self._call(), context=Context())
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
        return answer

    async def _call(self) -> None:
        batch = None
        try:
            async with self._queue.slot():
                batch = self._take_batch()
                answers = await self._read([question for question, _ in batch]) if batch else ()
        except Exception as error:  # noqa: BLE001 - it belongs to those who asked
            for _, answer in self._take_batch() if batch is None else batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), found in zip(batch, answers, strict=True):
            if isinstance(found, asyncio.Future):
                found.add_done_callback(partial(_copy_answer, answer))
            elif not answer.done():
                answer.set_result(found)

    def _take_batch(self) -> list[tuple[Question, "asyncio.Future[Answer]"]]:
        """Return the questions for one call from the waiting ones, without those that nobody waits for any more."""
        self._waiting_calls -= 1
        batch: list[tuple[Question, asyncio.Future[Answer]]] = []
        while self._waiting and len(batch) < MAX_QUESTIONS:
            asked = self._waiting.popleft()
            if not asked[1].done():
                batch.append(asked)
        return batch


def _copy_answer(answer: "asyncio.Future[Answer]", found: "asyncio.Future[Answer]") -> None:
    """Answer a question with the result of a future that is done."""
    error = None if found.cancelled() else found.exception()
    if answer.done():
        return
    if found.cancelled():
        answer.cancel()
    elif error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(found.result())
