"""Renews the leases of this process' streams that read a share of a shared subscription.

All renewals of a process are one command every two seconds, with the ends of the streams that have closed. The answer
may say that a stream should end, because its client may have more parts, or has lost all of them. A process that dies
renews nothing, so its parts move when the leases have ended.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from stream_server.errors import ApiError
from stream_server.hub.client import Client
from stream_server.hub.disconnect import REBALANCED
from stream_server.store.social.parts import Membership, RenewalOutcome, SharedSubscriptions

LEASE_SECONDS = 10.0
"""Length of the lease of a stream, in seconds. After it, the parts of a server that has died move."""

POLL_LEASE_SECONDS = 30.0
"""Seconds after the end of a long poll in which its client must ask again, or its parts move."""

RENEW_SECONDS = 2.0
"""Longest time in seconds between two renewals."""

JOIN_SECONDS = 0.5
"""Shortest time in seconds between two commands."""

LAST_SECONDS = 0.5
"""Longest time in seconds for the last command of a process that stops. Without it, the leases end by themselves."""


class Leases:
    """Keeps the memberships of the open streams, and those whose streams have ended since the last command."""

    def __init__(self, shared: SharedSubscriptions) -> None:
        self._shared = shared
        self._held: dict[Membership, Client] = {}
        self._ended: dict[Membership, None] = {}
        self._has_changed = asyncio.Event()

    def hold(self, membership: Membership, client: Client) -> None:
        """Renew a lease that has been taken, until :meth:`end`. The client is disconnected if it should come back."""
        self._held[membership] = client
        self._has_changed.set()

    def end(self, membership: Membership) -> None:
        """Give the parts of a stream back, because it has ended. A process that stops has done so before."""
        if self._held.pop(membership, None) is not None:
            self._ended[membership] = None
            self._has_changed.set()

    async def run(self) -> None:
        """Renew the leases until cancelled. Then give back those that are left."""
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(RENEW_SECONDS if self._held or self._ended else None):
                        await self._has_changed.wait()
                await self._send()
                await asyncio.sleep(JOIN_SECONDS)
        finally:
            self._ended.update(dict.fromkeys(self._held))
            self._held.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await self._send()

    async def _send(self) -> None:
        """Send all renewals and ends. While Redis is away, both wait for the next time."""
        self._has_changed.clear()
        ended = [*self._ended]
        leases = [*((one, round(LEASE_SECONDS * 1000)) for one in self._held), *((one, 0) for one in ended)]
        if not leases:
            return
        with suppress(ApiError):
            outcomes = await self._shared.renew(leases)
            for one in ended:
                del self._ended[one]
            for (membership, _), outcome in zip(leases, outcomes, strict=True):
                client = self._held.get(membership)
                if client is not None and outcome is not RenewalOutcome.HELD:
                    client.disconnect(REBALANCED)


class Lease(NamedTuple):
    """The lease of a stream that has taken its share and is about to open."""

    leases: Leases
    membership: Membership

    def begin(self, client: Client) -> None:
        """Renew the lease from now on."""
        self.leases.hold(self.membership, client)

    def end_with(self, release: Callable[[], None]) -> Callable[[], None]:
        """Return a function that ends the lease, and then calls ``release``."""

        def end() -> None:
            self.leases.end(self.membership)
            release()

        return end
