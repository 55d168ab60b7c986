"""A subscription to channels of Redis: it hands the messages to a function, in order, as soon as their bytes are read.

A read from the socket hands over all its messages at once, and no task runs for them. If a message needs more than a
plain function, the function returns an awaitable, which must end before the next message. The subscription then reads
no further from the socket. So if a listener falls behind, its messages wait where they come from.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from hiredis import pack_command
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from stream_server.store.redis.connecting import NOT_YET, RedisTransport
from stream_server.store.redis.refusals import unavailable_error

Work = Callable[[], Awaitable[None]]
"""Work to await before the next message. A function, because a coroutine that nobody awaits is an error."""

Handle = Callable[[bytes], Work | None]
"""Takes a message, and returns the rest of the work for it, if any."""


class Subscription(asyncio.Protocol):
    """The messages of one connection that listens to channels. Close it after use (`contextlib.closing`)."""

    def __init__(self, opened: RedisTransport) -> None:
        """Take over the transport ``opened``."""
        self._opened = opened  # it would close the transport when it is collected as garbage
        self._unconfirmed_count = 0
        self._waiting: deque[bytes] = deque()
        self._handle: Handle | None = None
        self._after_read: Callable[[], None] = _do_nothing
        self._rest: Work | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._parser = opened.attach(self)

    async def start(self, channels: Sequence[str]) -> None:
        """Subscribe, and wait until Redis has confirmed all channels.

        Raises an error of redis-py if Redis refuses, and closes the connection after any error.
        """
        self._unconfirmed_count = len(channels)
        self._opened.transport.write(pack_command(("SUBSCRIBE", *channels)))  # type: ignore[arg-type]  # any length
        try:
            while self._unconfirmed_count:
                await self._wait_for_change()
        except BaseException:
            self.close()
            raise

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

    def has_more(self) -> bool:
        """Return whether more was read after the message that was handed over last: a message or a part of one."""
        return bool(self._waiting) or self._parser.has_data()

    def close(self) -> None:
        """Close the connection."""
        self._opened.transport.abort()

    async def _deliver_directly(self, handle: Handle) -> None:
        """Let `data_received` hand over the messages until one of them leaves work."""
        self._handle = handle
        try:
            if not self._opened.transport.is_closing():
                self._opened.transport.resume_reading()
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
            try:
                raise self._error
            finally:  # the error refers to this frame, so the subscription must not keep it: a cycle would stay long
                self._error = RedisConnectionError("the subscription has ended")

    def data_received(self, data: bytes) -> None:
        """Hand over the messages in ``data``, or keep them while the listener is not ready."""
        try:
            self._parser.feed(data)
            while (reply := self._parser.gets()) is not NOT_YET:
                if isinstance(reply, Exception):
                    raise reply  # noqa: TRY301 - all errors of a read end the subscription in one place
                if reply[0] != b"message":
                    self._unconfirmed_count -= 1
                    if not self._unconfirmed_count:
                        self._hold()
                elif self._handle is None:
                    self._waiting.append(reply[2])
                else:
                    self._rest = self._handle(reply[2])
                    if self._rest is not None:
                        self._hold()
            if self._handle is not None:
                self._after_read()
        except Exception as error:  # noqa: BLE001 - the listener raises it
            self._end(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the subscription: :meth:`deliver` raises an error."""
        lost = RedisConnectionError("the subscription ended")
        lost.__cause__ = exc
        self._end(lost)

    def _hold(self) -> None:
        """Read no more, keep what was read, and wake the task that waits."""
        self._handle = None
        self._opened.transport.pause_reading()
        self._changed.set()

    def _end(self, error: Exception) -> None:
        """Let :meth:`deliver` raise ``error``."""
        self._handle = None
        self._error = self._error or error
        self._changed.set()


def _do_nothing() -> None:
    """Do nothing after a read."""
