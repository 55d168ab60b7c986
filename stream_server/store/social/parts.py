"""Shared subscriptions: several connections read one subscription, each a share of its parts.

A part has the events of some authors, by a hash of the author, and a cursor of its own. The connections are *members*:
each holds some parts by a lease, which its process renews. Who comes takes free parts, and parts of those who hold too
many, whose connections are closed; they come back for their new share. The events of one part reach one member at a
time, in the order of the log, and begin behind the part's cursor again when the part moves.

An ack names the connection that sends it. It raises only the parts that this connection has been given and still holds,
so a member that lost a part, or that got another one since, cannot acknowledge events that it never received.
"""

from collections.abc import Sequence
from enum import Enum
from itertools import chain
from typing import NamedTuple, Self

from stream_server.errors import NotFound, TooLarge
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.redis.protocol import parse_cursor
from stream_server.store.redis.scripts import ScriptArgument, ScriptCall
from stream_server.store.social.noun import Noun

MAX_PARTS = 64
"""Most parts of a subscription. ``lua/part.lua`` allows as many members."""

MAX_PER_CALL = 50
"""Most renewals, or acks of shared subscriptions, in one call of a script.

It takes about 5 ms for those of subscriptions with 8 parts, and 15 ms with 64 parts and as many members.
"""


class Part(NamedTuple):
    """A part of a shared subscription: its cursor, and the member that holds it now, None while it is free."""

    cursor: Position
    member: str | None


class Share(NamedTuple):
    """The parts that a member holds or may have: the cursor of each by its index, and the text that Redis has of it."""

    cursors: dict[int, Position]
    text: str

    @property
    def start(self) -> Position | None:
        """The lowest cursor, after which the member's stream begins. None without a part."""
        return min(self.cursors.values(), default=None)

    @property
    def end(self) -> Position:
        """The highest cursor. All later events belong to the member; of those before it, some are handled."""
        return max(self.cursors.values(), default=LOG_START)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the share in a reply of Redis."""
        pairs = (word.split(":") for word in text.split())
        return cls({int(index): parse_cursor(cursor.encode()) for index, cursor in pairs}, text)


class Joining(NamedTuple):
    """The outcome of the request of a connection to read as a member.

    ``is_taken`` is False if ``share`` is only an offer. ``appended_bytes`` is the size of the entries on the log that
    close other connections.
    """

    is_taken: bool
    share: Share
    appended_bytes: int


class Membership(NamedTuple):
    """The connection of a user that reads a shared subscription as a member, for as long as its lease lasts."""

    uid: str
    name: str
    member: str
    connection: str


class RenewalOutcome(Enum):
    """The outcome of a renewal. GROWS: the member may have more parts, so its client should connect again."""

    HELD = b"held"
    GROWS = b"grows"
    LOST = b"lost"


class SharedSubscriptions(Noun):
    """Gives the parts of shared subscriptions to connections. `Subscriptions` makes, reads, acks and removes them."""

    async def join(
        self, membership: Membership, lease_ms: int, offered: Share | None, *, is_poll: bool = False,
        goes_on: bool = False,
    ) -> Joining:  # fmt: skip
        """Let a connection, or a poll, read as a member, if its share is still ``offered``. None asks for an offer.

        The connections of members that lose parts end with `rebalanced`, in whichever process. So does that of this
        member before, with `taken_over`; ``goes_on`` says of a poll that it acknowledges an earlier one, which has
        ended. Raises NotFound if the subscription is gone, and TooLarge if it has too many members.
        """
        uid, name, member, connection = membership
        reply = await self._scripts.call(
            "subscription_join", keys.META, uid=uid, name=name, id=member,
            connection=f"~{connection}" if is_poll else connection, lease_ms=lease_ms,
            offered="-" if offered is None else offered.text, goes_on=int(goes_on),
        )  # fmt: skip
        outcome = reply["outcome"]
        if outcome == b"unknown":
            raise unknown_subscription()
        if outcome == b"full":
            raise TooLarge("at most 64 workers of a subscription", code="too_many", param="worker")
        return Joining(outcome == b"taken", Share.parse(reply["share"].decode()), int(reply["appended"]))

    async def renew(self, leases: Sequence[tuple[Membership, int]]) -> list[RenewalOutcome]:
        """Renew leases, at least one, in one round trip. Each lasts so many ms from now on; 0 ends it."""
        words: list[tuple[ScriptArgument, ...]] = [(*membership, lease_ms) for membership, lease_ms in leases]
        calls = [
            ScriptCall("subscriptions_renew", {}, [*chain.from_iterable(words[at : at + MAX_PER_CALL])])
            for at in range(0, len(words), MAX_PER_CALL)
        ]
        return [RenewalOutcome(word) for reply in await self._scripts.call_each(keys.META, calls) for word in reply]


def parse_parts(data: bytes, now_ms: int) -> tuple[Part, ...]:
    """Return the parts in the text that ``lua/part.lua`` stores, with the members that hold them now."""
    parts, members = (line.split() for line in data.decode().split("\n"))
    present = set[str]()
    for word in members:
        member, _, ends, has_left = word.split(":")
        if has_left == "0" and int(ends) > now_ms:
            present.add(member)
    pairs = (word.split(":") for word in parts)
    return tuple(Part(parse_cursor(cursor.encode()), holder if holder in present else None) for cursor, holder in pairs)


def unknown_subscription() -> NotFound:
    """Return the error for a name without a subscription."""
    return NotFound("you have no subscription with this name", param="subscription")
