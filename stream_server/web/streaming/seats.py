"""The two ways to read a named subscription: alone, or as one of the members of a shared one.

A *seat* is found first, and taken at last. In between, the stream is planned from the seat's start. So a refused stream
takes nothing from anybody.
"""

import re
from typing import NamedTuple

from filters.parts import Parts
from filters.subscription import Subscription
from stream_server.errors import BadRequest
from stream_server.events.position import Position
from stream_server.store.social.parts import Membership, Share
from stream_server.store.social.subscriptions import NAME_PATTERN, NamedSubscription
from stream_server.store.store import Store
from stream_server.web.streaming.leases import LEASE_SECONDS, POLL_LEASE_SECONDS
from stream_server.web.streaming.subscription_parser import NamedFilters

WORKER_PARAMETER = "worker"
"""The parameter by which a member of a shared subscription is the same over its connections."""

_WORKER = re.compile(NAME_PATTERN)


class Seat(NamedTuple):
    """The place of one connection at a subscription.

    Attributes:
        membership: The user, the subscription, the member and the connection.
        kept: The subscription as it was read.
        named: What the request asks for.
        share: The parts of a shared subscription that are offered to the connection. None for one that is not shared.
    """

    membership: Membership
    kept: NamedSubscription
    named: NamedFilters
    share: Share | None

    @property
    def start(self) -> Position | None:
        """The position after which the stream begins. None for the newest entry, if no part is offered."""
        return self.kept.cursor if self.share is None else self.share.start

    def narrow(self, subscription: Subscription) -> Subscription:
        """Return the filters of a stream, narrowed to the parts of the seat."""
        if self.share is None:
            return subscription
        return subscription.narrowed(Parts(len(self.kept.parts), self.share.cursors))

    async def take(self, store: Store) -> tuple[bool, int]:
        """Take the seat if it is still as it was found. Return whether it was, and the bytes appended to the log.

        Raises NotFound if the subscription is gone, and TooLarge if it has too many members.
        """
        is_poll, goes_on = self.named.poll_seconds is not None, self.named.acked is not None
        if self.share is None:
            taking = await store.subscriptions.take(
                self.membership.uid, self.kept, self.membership.connection, is_poll=is_poll, goes_on=goes_on
            )
            return taking.is_taken, taking.appended_bytes
        joining = await store.shared_subscriptions.join(
            self.membership, _lease_ms(self.named), self.share, is_poll=is_poll, goes_on=goes_on
        )
        return joining.is_taken, joining.appended_bytes


async def find_seat(store: Store, uid: str, named: NamedFilters, connection: str) -> Seat:
    """Read a subscription, and find the seat of a connection. Changes nothing.

    Raises NotFound without the subscription, and BadRequest if ``worker`` is wrong, or is missing for a poll.
    """
    kept, worker = await store.subscriptions.get(uid, named.name), named.worker
    membership = Membership(uid, named.name, worker or connection, connection)
    if worker is not None and not _WORKER.fullmatch(worker):
        message = "a name of 1 to 64 letters, digits or _.-, which begins with none of .-"
        raise BadRequest(message, param=WORKER_PARAMETER)
    if not kept.parts:
        if worker is not None:
            raise BadRequest("this subscription has one reader; make one with `parts`", param=WORKER_PARAMETER)
        return Seat(membership, kept, named, None)
    if worker is None and named.poll_seconds is not None:
        message = "name the worker that polls this shared subscription, the same in each poll"
        raise BadRequest(message, code="missing_parameter", param=WORKER_PARAMETER)
    offer = await store.shared_subscriptions.join(membership, _lease_ms(named), None)
    return Seat(membership, kept, named, offer.share)


def _lease_ms(named: NamedFilters) -> int:
    seconds = LEASE_SECONDS if named.poll_seconds is None else named.poll_seconds + POLL_LEASE_SECONDS
    return round(seconds * 1000)
