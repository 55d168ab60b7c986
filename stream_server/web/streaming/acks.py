"""Joins the acknowledgements of this process: those of a second go to Redis in one command.

An ack says that everything up to a cursor is handled, so of the acks of one subscription the highest is enough. A
hundred acks a second of a hundred clients take one round trip. The first ack after a pause is sent at once.
"""

import asyncio
from contextlib import suppress
from typing import NamedTuple

from stream_server.errors import ApiError, BadRequest, Conflict, InvalidCursor, Unavailable
from stream_server.events.position import LOG_START
from stream_server.store.social.parts import unknown_subscription
from stream_server.store.social.subscriptions import Ack, AckOutcome, Subscriptions

JOIN_SECONDS = 1.0
"""Shortest time in seconds between two commands with acks."""

LAST_SECONDS = 0.5
"""Longest time in seconds for the last acks of a process that stops. Without an answer, their events come again."""


_STOPPED = Unavailable("this server is shutting down; send the ack again", retry_after=1)


class _Waiting(NamedTuple):
    """The ack of a subscription that waits, with the highest cursor, and who waits for its outcome, if anybody."""

    ack: Ack
    outcome: "asyncio.Future[AckOutcome | ApiError] | None"


class Acks:
    """Keeps the acks that wait for the next command, one for each subscription."""

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._waiting: dict[Ack, _Waiting] = {}  # by the ack without its cursor
        self._has_some = asyncio.Event()

    def add(self, ack: Ack) -> None:
        """Make an ack within a second, or when Redis answers again.

        The caller has taken the subscription, so it exists, and a user has a limited number of them.
        """
        key = ack._replace(cursor=LOG_START)
        known = self._waiting.get(key, _Waiting(ack, None))
        self._waiting[key] = known._replace(ack=max(known.ack, ack))
        self._has_some.set()

    async def ack(self, ack: Ack) -> None:
        """Make an ack. Return when Redis has it, after a second at most.

        Its cursor should be at most the head of this process. A higher one may be wrong, and would let those fail that
        wait with it. Raises NotFound without such a subscription, InvalidCursor if the log does not reach to the
        cursor, and Unavailable if Redis does not answer; then the ack is forgotten. Of a shared subscription, raises
        BadRequest without the connection, and Conflict if that one reads no part any more.
        """
        self.add(ack)
        key = ack._replace(cursor=LOG_START)
        waiting = self._waiting[key]
        outcome = waiting.outcome or asyncio.get_running_loop().create_future()
        self._waiting[key] = waiting._replace(outcome=outcome)
        _check(await asyncio.shield(outcome))  # others may wait for the same one

    async def ack_now(self, ack: Ack) -> None:
        """Make an ack by a command of its own. Raises what :meth:`ack` raises."""
        (outcome,) = await self._subscriptions.ack([ack])
        _check(outcome)

    async def run(self) -> None:
        """Send the acks until cancelled, and then those that still wait."""
        try:
            while True:
                await self._has_some.wait()
                await self._send()
                await asyncio.sleep(JOIN_SECONDS)
        finally:
            with suppress(ApiError, TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._send()

    async def _send(self) -> None:
        sent, self._waiting = self._waiting, {}
        self._has_some.clear()
        if not sent:
            return
        outcomes: dict[Ack, AckOutcome | ApiError] = {}
        try:
            found = await self._subscriptions.ack([one.ack for one in sent.values()])
            outcomes = dict(zip(sent, found, strict=True))
        except ApiError as error:
            outcomes = dict.fromkeys(sent, error)
        finally:
            for key, one in sent.items():
                outcome = outcomes.get(key, _STOPPED)
                if one.outcome is not None:
                    one.outcome.set_result(outcome)
                if outcome is _STOPPED or (one.outcome is None and isinstance(outcome, ApiError)):
                    self.add(one.ack)  # nobody was told of it


def _check(outcome: AckOutcome | ApiError) -> None:
    """Raise the error of an ack that did not succeed."""
    if isinstance(outcome, ApiError):
        raise outcome
    if outcome is AckOutcome.UNKNOWN:
        raise unknown_subscription()
    if outcome is AckOutcome.AHEAD:
        raise InvalidCursor("this cursor is not a position of this log", param="cursor")
    if outcome is AckOutcome.UNNAMED:
        message = "name the connection that received this cursor: its `hello`, or the answer of the poll, has the id"
        raise BadRequest(message, code="missing_parameter", param="connection")
    if outcome is AckOutcome.LOST:
        message = "this connection reads no part of the subscription any more; what it acknowledges may come again"
        raise Conflict(message, code="not_reading", param="connection")
