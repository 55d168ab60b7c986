"""A subscription to channels of Redis: it hands the messages to a function, in order, as soon as their bytes are read.

A read from the socket hands over all its messages at once, and no task runs for them. If a message needs more than a
plain function, the function returns an awaitable, which must end before the next message. Meanwhile messages wait here,
up to a bound. Beyond it they are dropped, and the listener reads what it missed elsewhere. Some channels stand aside:
nothing repeats their messages, so they never wait and are never dropped. The socket is always read: Redis keeps what a
subscriber does not take, counts it as used memory, and disconnects who leaves too much.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence

from hiredis import pack_command
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from stream_server.store.redis.connecting import NOT_YET, RedisTransport
from stream_server.store.redis.refusals import unavailable_error

MAX_WAITING_BYTES = 8 << 20
"""Most bytes of messages that wait for the listener: about a second of the messages of a Redis that is fully used."""

MESSAGE_BYTES = 64
"""Bytes that a waiting message counts beside its own: its object and its place, so that empty ones are bounded too."""

SLICE_BYTES = 256 << 10
"""Bytes of waiting messages that are handed over before other tasks run, as many as one read has."""

Work = Callable[[], Awaitable[None]]
"""Work to await before the next message. A function, because a coroutine that nobody awaits is an error."""

Handle = Callable[[bytes], Work | None]
"""Takes a message, and returns the rest of the work for it, if any."""

Asides = Mapping[str, Callable[[bytes], None]]
"""For each channel that stands aside, a plain function. It takes each message of the channel as soon as it is read."""


class Subscription(asyncio.Protocol):
    """The messages of one connection that listens to channels. Close it after use (`contextlib.closing`)."""

    def __init__(self, opened: RedisTransport, asides: Asides) -> None:
        """Take over the transport ``opened``."""
        self._opened = opened  # it would close the transport when it is collected as garbage
        self._asides = {channel.encode(): take for channel, take in asides.items()}
        self._unconfirmed_count = 0
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._has_dropped = False
        self._handle: Handle | None = None
        self._after_read: Callable[[], None] = _do_nothing
        self._rest: Work | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._parser = opened.attach(self)

    async def start(self, channels: Sequence[str]) -> None:
        """Subscribe to ``channels`` and those aside, and wait until Redis has confirmed all.

        Raises an error of redis-py if Redis refuses, and closes the connection after any error.
        """
        command = ("SUBSCRIBE", *channels, *self._asides)
        self._unconfirmed_count = len(command) - 1
        self._opened.transport.write(pack_command(command))  # type: ignore[arg-type]  # any length
        try:
            while self._unconfirmed_count:
                await self._wait_for_change()
        except BaseException:
            self.close()
            raise

    async def deliver(
        self, handle: Handle, after_read: Callable[[], None] | None = None, on_dropped: Work | None = None
    ) -> None:
        """Hand each message to ``handle``, and call ``after_read`` after the messages of one read.

        ``on_dropped`` is awaited before the next message if messages were dropped, because too many waited. It must
        read elsewhere all that was published until it begins.
        Ends only with an exception: one that ``handle`` or its work raised, or `Unavailable` when the connection ends.
        The messages that came before its end are handed over first.
        """
        self._after_read = after_read or _do_nothing
        slice_bytes = 0
        while True:
            rest, self._rest = self._rest, None
            if rest is None and self._has_dropped:
                self._has_dropped, rest = False, on_dropped
            if rest is not None:
                await rest()
            elif slice_bytes >= SLICE_BYTES:
                slice_bytes = 0
                self._after_read()
                await asyncio.sleep(0)
            elif self._waiting:
                message = self._waiting.popleft()
                self._waiting_bytes -= len(message) + MESSAGE_BYTES
                slice_bytes += len(message) + MESSAGE_BYTES
                self._rest = handle(message)
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
        """Let `data_received` hand over messages at once, until the listener returns an awaitable for one of them."""
        self._handle = handle
        try:
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
                elif (take := self._asides.get(reply[1])) is not None:
                    take(reply[2])
                elif self._handle is None:
                    self._keep(reply[2])
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
        """Hand over no more messages for now: `data_received` keeps them. Wake the task that waits for this."""
        self._handle = None
        self._changed.set()

    def _keep(self, message: bytes) -> None:
        """Let a message wait for the listener. If too many wait, drop all, and all that come before it looks again.

        The listener will read the later ones elsewhere too. Each that waited would be one that it knows already.
        """
        if self._has_dropped:
            return
        self._waiting.append(message)
        self._waiting_bytes += len(message) + MESSAGE_BYTES
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._waiting.clear()
            self._waiting_bytes, self._has_dropped = 0, True

    def _end(self, error: Exception) -> None:
        """Let :meth:`deliver` raise ``error``."""
        self._handle = None
        self._error = self._error or error
        self._changed.set()


def _do_nothing() -> None:
    """Do nothing after a read."""
