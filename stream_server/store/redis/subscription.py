"""A subscription to channels of Redis."""

from collections.abc import Sequence
from typing import Any

from hiredis import pack_command
from redis.exceptions import ConnectionError as RedisConnectionError

from stream_server.store.redis.message_delivery import MessageDelivery
from stream_server.store.redis.redis_transport import RedisTransport


class Subscription(MessageDelivery):
    """The messages of one connection that listens to channels. Close it after use (`contextlib.closing`)."""

    def __init__(self, opened: RedisTransport) -> None:
        """Take over the transport ``opened``."""
        super().__init__()
        self._opened = opened  # it would close the transport when it is collected as garbage
        self._transport = opened.transport
        self._unconfirmed_count = 0
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

    def _read_messages(self, data: bytes) -> None:
        self._parser.feed(data)
        while (reply := self._parser.gets()) is not False:
            self._take_reply(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the delivery: the connection is lost."""
        lost = RedisConnectionError("the subscription ended")
        lost.__cause__ = exc
        self._end(lost)

    def _take_reply(self, reply: Any) -> None:
        """Hand over a published message, or count the confirmation of a channel. Raises an error reply of Redis."""
        if isinstance(reply, Exception):
            raise reply
        if reply[0] == b"message":
            self._take_message(reply[2])
            return
        self._unconfirmed_count -= 1
        if not self._unconfirmed_count:
            self._hold()
