"""Admission of reads: a limited number of Redis calls of opening streams runs at once, and the others wait.

If ten thousand streams reconnect together, Redis would otherwise need longer for their calls than the timeout of each.
Most of them would fail. With admission, the timeout of a call starts when the call is admitted. What all streams ask
alike goes in shared calls, see :mod:`stream_server.store.redis.batched_reads`.
Streams with more finished calls go first. Otherwise all streams would make their first call before any stream is open.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from heapq import heappop, heappush
from itertools import count
from types import TracebackType
from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.store.redis.own_task import enter_task
from stream_server.store.redis.refusals import unavailable_error

MAX_CONCURRENT = 42
"""Most admitted calls at the same time. Redis answers so many within a few milliseconds, well within their timeout."""

STREAM_OPEN_ROUND_TRIPS = 4
"""Number of Redis calls of its own that a stream needs to open: ticket, cursor, head of the log, and saved rules."""

MAX_QUEUE_SECONDS = 20.0
"""Longest wait in seconds for admission. Clients give up soon after that, and they retry anyway."""

REDIS_DOWN_AFTER_SECONDS = 3.0
"""Time in seconds without any reply after which Redis counts as down. All waiting calls then fail at once."""


class _Waiter(NamedTuple):
    rank: int
    arrival: int
    admitted: asyncio.Future[None]


class ReadAdmission:
    """Limits how many Redis calls for opening streams run at once in this process. Calls beyond the limit wait."""

    def __init__(self, max_concurrent: int = MAX_CONCURRENT) -> None:
        self._free_slots = max_concurrent
        self._last_reply_at = 0.0
        self._waiters: list[_Waiter] = []
        self._sequence = count()

    def slot(self, prior_round_trips: int) -> "Slot":
        """Wait until a Redis call may run, and count it as running inside the ``async with`` block.

        Of the waiting calls, those go first whose requests have finished more calls (``prior_round_trips``). The block
        raises `Unavailable` after a wait of `MAX_QUEUE_SECONDS`, or if Redis has answered no call for
        `REDIS_DOWN_AFTER_SECONDS`.
        """
        return Slot(self, prior_round_trips)

    async def take_slot(self, prior_round_trips: int) -> None:
        """Wait as :meth:`slot` does. The caller must call :meth:`return_slot`."""
        if self._free_slots:
            self._free_slots -= 1
        else:
            await self._wait_for_slot(prior_round_trips)

    def return_slot(self, error: BaseException | None) -> None:
        """Give the slot to the next call. ``error`` is the error of the call, or None if Redis has answered."""
        if error is None:
            self._last_reply_at = asyncio.get_running_loop().time()
        elif isinstance(error, Exception):
            self._fail_waiters_if_down()
        self._grant_next_slot()

    def _fail_waiters_if_down(self) -> None:
        if asyncio.get_running_loop().time() - self._last_reply_at >= REDIS_DOWN_AFTER_SECONDS:
            for waiter in self._waiters:
                if not waiter.admitted.done():
                    waiter.admitted.set_exception(unavailable_error())
            self._waiters.clear()

    async def _wait_for_slot(self, prior_round_trips: int) -> None:
        loop = asyncio.get_running_loop()
        admitted = loop.create_future()
        if not self._waiters:
            self._last_reply_at = loop.time()  # measure the silence of Redis from the first waiting call
        heappush(self._waiters, _Waiter(-prior_round_trips, next(self._sequence), admitted))
        try:
            async with asyncio.timeout(MAX_QUEUE_SECONDS):
                await admitted
        except TimeoutError:
            self._return_slot(admitted)
            raise Unavailable("too many streams are being opened; try again", retry_after=1) from None
        except asyncio.CancelledError:
            self._return_slot(admitted)
            raise

    def _return_slot(self, admitted: asyncio.Future[None]) -> None:
        """Give the slot to the next waiting call: the call that had it timed out or was cancelled before it ran."""
        if admitted.done() and not admitted.cancelled() and admitted.exception() is None:
            self._grant_next_slot()

    def _grant_next_slot(self) -> None:
        while self._waiters:
            admitted = heappop(self._waiters).admitted
            if not admitted.done():
                admitted.set_result(None)
                return
        self._free_slots += 1


class Slot:
    """A slot of :class:`ReadAdmission`, taken for the time of an ``async with`` block."""

    __slots__ = ("_admission", "_prior_round_trips")

    def __init__(self, admission: ReadAdmission | None, prior_round_trips: int) -> None:
        """If ``admission`` is None, the block runs at once."""
        self._admission = admission
        self._prior_round_trips = prior_round_trips

    async def __aenter__(self) -> None:
        await enter_task()
        if self._admission is not None:
            await self._admission.take_slot(self._prior_round_trips)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._admission is not None:
            self._admission.return_slot(error)


class RequestAdmission:
    """Lets each Redis call of one request wait until few enough reads run (:class:`ReadAdmission`).

    Counts the calls.
    """

    __slots__ = ("_admission", "_round_trips")

    def __init__(self, admission: ReadAdmission) -> None:
        self._admission: ReadAdmission | None = admission
        self._round_trips = 0

    def slot(self) -> Slot:
        """Wait until a Redis call of this request may run, and count it as running inside the ``async with`` block."""
        # A request with more calls than an opening stream needs goes behind the opening streams.
        rank = self._round_trips if self._round_trips < STREAM_OPEN_ROUND_TRIPS else 0
        self._round_trips += 1
        return Slot(self._admission, rank)

    def detach(self) -> None:
        """Stop limiting the calls of a finished request. Tasks that it started then call Redis without a slot."""
        self._admission = None


_CURRENT: ContextVar[RequestAdmission | None] = ContextVar("request admission", default=None)


def current_admission() -> RequestAdmission | None:
    """Return the `RequestAdmission` of the current request, or None if its Redis calls need not wait for admission."""
    return _CURRENT.get()


@contextmanager
def admit_through(admission: ReadAdmission) -> Iterator[None]:
    """Make each Redis call inside the ``with`` block wait for a slot of ``admission``."""
    request_admission = RequestAdmission(admission)
    token = _CURRENT.set(request_admission)
    try:
        yield
    finally:
        request_admission.detach()
        _CURRENT.reset(token)
