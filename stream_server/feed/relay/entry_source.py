"""From where a process hears the log: the relay of its host while it works, otherwise Redis itself.

A process that loses the relay subscribes in Redis at once, and returns to the relay when that works again. Each change
is a reconnect of the feed, which reads the log first. So nothing is lost and nothing comes twice.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from stream_server.events.bus_signature import BusSignature
from stream_server.feed.link_health import STABLE_SECONDS
from stream_server.feed.relay.relay_link import RelayLink
from stream_server.store.log.event_log import EventLog
from stream_server.store.redis.message_delivery import Handle, MessageDelivery, Work
from stream_server.store.social.open_streams import ASK_PREFIX

FIRST_WAIT_SECONDS = 2.0
"""Seconds that a process that starts waits for the relay, which starts at the same time."""

PAUSE_SECONDS = (1.0, 8.0)
"""Shortest and longest pause in seconds before a relay that was lost is tried again.

It doubles while links to the relay end soon. One that was used for `STABLE_SECONDS`, or a relay that is not there,
lets the shortest pause follow: to ask for it costs one refused connect.
"""


class HeardEntries:
    """One link, to the relay or to Redis. `deliver` brings the entries whose signature was checked."""

    def __init__(self, delivery: MessageDelivery, check: Callable[[Handle], Handle] | None) -> None:
        self._delivery = delivery
        self._check = check

    async def deliver(self, handle: Handle, after_read: Callable[[], None]) -> None:
        """Hand each entry to ``handle``, see `MessageDelivery.deliver`."""
        await self._delivery.deliver(handle if self._check is None else self._check(handle), after_read)

    def close(self) -> None:
        self._delivery.close()


class EntrySource:
    """Opens the links of one feed.

    Attributes:
        on_question: Called with each question about streams.
        on_unsigned: Called with a number of messages without a valid signature, 0 if entries were lost on the way.
        link: The present link to the relay; None while this process is subscribed in Redis.
    """

    def __init__(
        self, log: EventLog, signature: BusSignature | None, relay: Path | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.on_question: Callable[[bytes], None] = _ignore
        self.on_unsigned: Callable[[int], None] = _ignore
        self.link: RelayLink | None = None
        self._log = log
        self._signature = signature
        self._relay = relay
        self._monotonic = monotonic
        self._next: RelayLink | None = None
        self._retry_at = self._opened_at = monotonic()
        self._pause_seconds = PAUSE_SECONDS[0]
        self._has_waited = False

    async def open(self) -> HeardEntries:
        """Return a link that brings each entry written from now on. Raises `Unavailable`."""
        self.link, self._next = self._next, None
        if self._relay is not None and not self._has_waited:
            self._has_waited = True
            self.link = await self._wait_for_relay(self._relay)
        self._opened_at = self._monotonic()
        if self.link is not None:
            return HeardEntries(self.link, None)
        return HeardEntries(await self._log.subscribe(), None if self._signature is None else self._checked)

    def leave_relay(self) -> bool:
        """Avoid the relay for a while, because the link ended or was silent. Return whether it was the relay's."""
        was_relay, self.link = self.link is not None, None
        if was_relay:
            shortest, longest = PAUSE_SECONDS
            was_stable = self._monotonic() - self._opened_at >= STABLE_SECONDS
            self._pause_seconds = shortest if was_stable else min(longest, self._pause_seconds * 2)
            self._postpone(self._pause_seconds)
        return was_relay

    async def is_relay_back(self) -> bool:
        """Return whether the next link can be one to the relay. Call it now and then; it waits for nothing."""
        if self._relay is None or self.link is not None or self._monotonic() < self._retry_at:
            return False
        if self._next is None:
            try:
                self._next = await RelayLink.connect(self._relay, self._question, self._unsigned)
            except OSError:
                self._postpone()
        elif self._next.has_ended:
            self._next = None
            self._postpone()
        return self._next is not None and self._next.is_ready

    def close(self) -> None:
        """Close a link that was opened and is not used."""
        if self._next is not None:
            self._next.close()

    async def _wait_for_relay(self, path: Path) -> RelayLink | None:
        link = None
        try:
            async with asyncio.timeout(FIRST_WAIT_SECONDS):
                link = await RelayLink.connect(path, self._question, self._unsigned)
                await link.wait_ready()
        except (OSError, TimeoutError):
            if link is not None:
                link.close()
            self._postpone()
            return None
        return link

    def _postpone(self, seconds: float = PAUSE_SECONDS[0]) -> None:
        self._retry_at = self._monotonic() + seconds

    def _checked(self, handle: Handle) -> Handle:
        """Return a function that hands only entries with a valid signature to ``handle``."""
        signature = self._signature
        assert signature is not None
        open_signed = signature.open

        def checked(message: bytes) -> Work | None:
            plain = open_signed(message)
            if plain is not None:
                return handle(plain)
            if message.startswith(ASK_PREFIX):
                self.on_question(message)
            else:
                self.on_unsigned(1)
            return None

        return checked

    def _question(self, message: bytes) -> None:
        self.on_question(message)

    def _unsigned(self, count: int) -> None:
        self.on_unsigned(count)


def _ignore(_: object) -> None:
    """Do nothing: the functions of a source without a feed."""
