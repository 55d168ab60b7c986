"""A process's link to the relay of its host. It brings entries as a subscription in Redis does."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

from stream_server.feed.relay.lines import BEGUN, LOST, QUESTION, UNSIGNED, LineSplitter
from stream_server.store.redis.message_delivery import MessageDelivery


class RelayLink(MessageDelivery):
    """One link to the relay. The lines that are no entries go to three functions, the entries to `deliver`.

    Attributes:
        lost: Number of lines that the relay did not hand over, because this process was too slow.
        entries: Number of entries that it brought.
    """

    def __init__(self, on_question: Callable[[bytes], None], on_unsigned: Callable[[int], None]) -> None:
        """``on_unsigned`` gets a number of messages whose entries, if any, must be read from the log."""
        super().__init__()
        self.lost = self.entries = 0
        self._has_begun = False
        self._on_question = on_question
        self._on_unsigned = on_unsigned
        self._splitter = LineSplitter()

    @classmethod
    async def connect(
        cls, path: Path, on_question: Callable[[bytes], None], on_unsigned: Callable[[int], None]
    ) -> "RelayLink":
        """Connect to the relay at ``path``. Raises OSError if nobody listens there."""
        loop = asyncio.get_running_loop()
        _, link = await loop.create_unix_connection(lambda: cls(on_question, on_unsigned), str(path))
        return link

    @property
    def is_ready(self) -> bool:
        """Whether the relay is subscribed, so that each entry that is written now comes."""
        return self._has_begun and self._error is None

    @property
    def has_ended(self) -> bool:
        return self._error is not None

    async def wait_ready(self) -> None:
        """Wait until the relay is subscribed. Raises OSError if the link ends before."""
        while not self._has_begun:
            await self._wait_for_change()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not one by name

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the listener raise an error."""
        lost = ConnectionError("the link to the relay ended")
        lost.__cause__ = exc
        self._end(lost)

    def _read_messages(self, data: bytes) -> None:
        for line in self._splitter.split(data):
            kind = line[:1]
            if kind == QUESTION:
                self._on_question(line)
            elif kind == BEGUN:
                self._has_begun = True
                self._hold()
            elif kind == UNSIGNED:
                self._on_unsigned(int(line[1:]))
            elif kind == LOST:
                self.lost += int(line[1:])
                self._on_unsigned(0)
            else:
                self.entries += 1
                self._take_message(line)

