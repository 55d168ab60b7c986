"""The relay's side of the links: it hands each batch of lines to all processes, and waits for none of them.

A process that does not take its bytes holds back nobody. Its link keeps a bounded number of bytes. What comes after is
lost for this process, and the link tells it so when there is room again. The process then reads the log.
"""

import asyncio
from typing import cast

from stream_server.events.bus_signature import BusSignature
from stream_server.feed.relay.lines import BEGUN, END, LOST, UNSIGNED, count_line
from stream_server.store.social.open_streams import ASK_PREFIX

MAX_WAITING_BYTES = 4 * 2**20
"""Most bytes that wait for one process, besides one batch and the kernel's buffer: about five thousand posts.

Beyond that, pages of the log are the cheaper way. The burst waits in Redis then, once for all.
"""

ROOM_AGAIN_BYTES = MAX_WAITING_BYTES // 4
"""A link that has lost lines takes lines again when no more bytes than these wait."""


class Distribution:
    """Checks the messages of Redis once, and hands them to the links of all processes.

    Attributes:
        entries: Number of entries with a valid signature.
        newest: The newest of them, without its signature; empty at first.
        lost: Number of lines that were not handed over, all processes together.
        bytes: Number of bytes that were handed over, all processes together.
    """

    def __init__(self, signature: BusSignature) -> None:
        self.entries = self.lost = self.bytes = 0
        self.newest = b""
        self._signature = signature
        self._links: set[ProcessLink] = set()
        self._lines: list[bytes] = []
        self._unsigned = 0
        self._is_hearing = False

    @property
    def links(self) -> int:
        """Number of processes that are connected."""
        return len(self._links)

    def waiting_bytes(self) -> int:
        """Return the bytes that wait for the slowest process, without the kernel's buffer."""
        return max((link.waiting_bytes() for link in self._links), default=0)

    def make_link(self) -> "ProcessLink":
        """Return the protocol for a connection that a process has opened."""
        return ProcessLink(self)

    def take(self, message: bytes) -> None:
        """Put a message of Redis into the batch that `flush` hands over."""
        plain = self._signature.open(message)
        if plain is not None and END not in plain:
            self.entries += 1
            self.newest = plain
            self._lines.append(plain)
        elif message.startswith(ASK_PREFIX) and END not in message:
            self._lines.append(message)
        else:
            self._unsigned += 1  # many of them are one line, so a flood of them costs the other processes nothing

    def flush(self) -> None:
        """Hand the batch to all links. Call it after the messages of one read."""
        if self._unsigned:
            self._lines.append(count_line(UNSIGNED, self._unsigned).removesuffix(END))
            self._unsigned = 0
        if self._lines:
            count = len(self._lines)
            self._lines.append(b"")
            batch = END.join(self._lines)
            self._lines.clear()
            for link in self._links:
                link.hand(batch, count)

    def begin(self) -> None:
        """Tell all processes that the subscription has begun: each entry that is written now will be handed over."""
        self._is_hearing = True
        for link in self._links:
            link.hand(BEGUN + END, 0)

    def end(self) -> None:
        """Close all links, because the subscription has ended. A process that connects now waits for `begin`."""
        self._is_hearing = False
        self._lines.clear()
        for link in list(self._links):
            link.abort()

    def add(self, link: "ProcessLink") -> None:
        """Hand all further batches to ``link`` too."""
        self._links.add(link)
        if self._is_hearing:
            link.hand(BEGUN + END, 0)

    def discard(self, link: "ProcessLink") -> None:
        self._links.discard(link)


class ProcessLink(asyncio.Protocol):
    """The link to one process. The process sends nothing, so all that can come is its end."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._transport: asyncio.Transport | None = None
        self._is_full = False
        self._lost = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not one by name
        self._transport.set_write_buffer_limits(MAX_WAITING_BYTES, ROOM_AGAIN_BYTES)
        self._distribution.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the signature of asyncio
        self._distribution.discard(self)

    def hand(self, batch: bytes, lines: int) -> None:
        """Send ``batch``, which has ``lines`` lines that must not be lost unnoticed. Never waits."""
        if self._is_full:
            self._lost += lines
            self._distribution.lost += lines
        elif self._transport is not None:
            self._distribution.bytes += len(batch)
            self._transport.write(batch)

    def waiting_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        """Go on, and tell the process how many lines it has lost."""
        self._is_full = False
        if self._lost and self._transport is not None:
            lost, self._lost = self._lost, 0
            self._transport.write(count_line(LOST, lost))

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
