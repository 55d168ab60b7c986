"""Hands the messages of one connection to a function, in order, as soon as their bytes are read.

A read from the socket hands over all its messages at once, and no task runs for them. If a message needs more than a
plain function, the function returns an awaitable, which must end before the next message. The delivery then reads no
further from the socket. So if a listener falls behind, its messages wait where they come from.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from redis.exceptions import RedisError

from stream_server.store.redis.refusals import unavailable_error

Work = Callable[[], Awaitable[None]]
"""Work to await before the next message. A function, because a coroutine that nobody awaits is an error."""

Handle = Callable[[bytes], Work | None]
"""Takes a message, and returns the rest of the work for it, if any."""


class MessageDelivery(asyncio.Protocol):
    """The protocol of a connection that brings messages. A subclass finds them in the bytes (`_read_messages`).

    Close it after use (`contextlib.closing`).
    """

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[bytes] = deque()
        self._handle: Handle | None = None
        self._after_read: Callable[[], None] = _do_nothing
        self._rest: Work | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()

    def _read_messages(self, data: bytes) -> None:
        """Call `_take_message` for each message that ends in ``data``. May raise, which ends the delivery."""
        raise NotImplementedError

    async def deliver(self, handle: Handle, after_read: Callable[[], None] | None = None) -> None:
        """Hand each message to ``handle``, and call ``after_read`` after the messages of one read.

        Ends only with an exception: one that ``handle`` or its work raised, or `Unavailable` when the connection ends.
        The messages that came before its end are handed over first.
        """
        self._after_read = after_read or _do_nothing
        while True:
            rest, self._rest = self._rest, None
            if rest is not None:
                await rest()
            elif self._waiting:
                self._rest = handle(self._waiting.popleft())
            else:
                self._after_read()
                await self._deliver_directly(handle)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    async def _deliver_directly(self, handle: Handle) -> None:
        """Let `data_received` hand over the messages until one of them leaves work."""
        self._handle = handle
        try:
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
            await self._wait_for_change()
        except (RedisError, OSError) as error:
            raise unavailable_error(error) from error
        finally:
            self._handle = None

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        if self._error is None:
            await self._changed.wait()
        if self._error is not None:
            raise self._error

    def data_received(self, data: bytes) -> None:
        """Hand over the messages in ``data``, or keep them while the listener is not ready."""
        try:
            self._read_messages(data)
            if self._handle is not None:
                self._after_read()
        except Exception as error:  # noqa: BLE001 - the listener raises it
            self._end(error)

    def _take_message(self, message: bytes) -> None:
        """Hand one message to the listener, or keep it while the listener still works on an earlier one."""
        if self._handle is None:
            self._waiting.append(message)
        else:
            self._rest = self._handle(message)
            if self._rest is not None:
                self._hold()

    def _hold(self) -> None:
        """Read no more, keep what was read, and wake the task that waits."""
        self._handle = None
        if self._transport is not None:
            self._transport.pause_reading()
        self._changed.set()

    def _end(self, error: Exception) -> None:
        """End the delivery: :meth:`deliver` raises ``error``."""
        self._handle = None
        self._error = self._error or error
        self._changed.set()


def _do_nothing() -> None:
    """Do nothing after a read."""
