"""Named subscriptions: the parameters of a stream and a cursor, which the server keeps for a user under a name.

Everything up to the cursor is handled: the client has acknowledged (*acked*) it. The log has one order, so one cursor
says it all, and nothing else is remembered about what a client got. The cursor only rises. A client that returns begins
behind it, so it gets each event at least once.

A subscription has one reader, the connection that took it last. A *shared* one has parts and many readers
(:mod:`stream_server.store.social.parts`). It does not hold the log back: where the log was trimmed meanwhile, its
reader gets a `gap`.
"""

import re
from collections.abc import Sequence
from enum import Enum
from itertools import chain
from typing import NamedTuple

import msgspec

from stream_server.errors import BadRequest
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.protocol import parse_cursor
from stream_server.store.redis.scripts import ScriptArgument, ScriptCall
from stream_server.store.social.noun import Noun
from stream_server.store.social.parts import MAX_PER_CALL, Part, parse_parts, unknown_subscription
from stream_server.store.social.webhook_state import Webhook, encode_webhook, parse_webhook

MAX_SUBSCRIPTIONS_PER_USER = 100
"""Most subscriptions of one user. ``lua/subscription.lua`` enforces the same number."""

MAX_ACKS_PER_CALL = 500
"""Most acks in one call of a script, which takes about 3 ms for them."""

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
"""The form of a name. It stands in Redis' hash without an escape, so it has no blank.

It does not begin with a dot, because clients take ``.`` and ``..`` out of a path before they send it; nor with a dash,
because a command would take it for an option.
"""

_NAME = re.compile(NAME_PATTERN)


class NamedSubscription(NamedTuple):
    """A subscription as Redis keeps it.

    Attributes:
        parameters: The parameters of its streams by their names, without ``since``.
        cursor: The position up to which everything is handled.
        created_ms: When it was made, in ms since 1970.
        used_ms: When it was last made, changed, read or acked, in ms since 1970.
        parts: The parts of a shared subscription, whose lowest cursor is ``cursor``; empty for one that is not shared.
        webhook: Where the server sends its events. None if its reader is a connection.
    """

    name: str
    parameters: dict[str, str]
    cursor: Position
    created_ms: int
    used_ms: int
    parts: tuple[Part, ...] = ()
    webhook: Webhook | None = None


class Put(NamedTuple):
    """The outcome of a `Subscriptions.put`: whether the subscription, and whether the secret of its webhook is new."""

    is_new: bool
    is_secret_new: bool


class NewWebhook(NamedTuple):
    """The webhook that a subscription gets.

    Attributes:
        secret: What signs its requests if the subscription had no webhook before; else the secret of before stays.
        max_webhooks: Most webhooks of its user.
    """

    webhook: Webhook
    secret: str
    max_webhooks: int


class Ack(NamedTuple):
    """The request of the user ``uid`` to raise the cursor of the subscription ``name`` to ``cursor``.

    ``created_ms`` is when the subscription was made that is meant, in ms since 1970; 0 is any. An ack that waited while
    its subscription was removed must not move a later one of the same name. ``connection`` is the one that reads the
    acked parts of a shared subscription, '' for one that is not shared.
    """

    uid: str
    name: str
    cursor: Position
    created_ms: int = 0
    connection: str = ""


class Taking(NamedTuple):
    """The outcome of the request of a connection to read a subscription.

    ``is_taken`` is False if the cursor has changed since it was read. ``appended_bytes`` is the size of the entry on
    the log that closes the reader before it, 0 if there was none.
    """

    is_taken: bool
    appended_bytes: int


class AckOutcome(Enum):
    """The outcome of an ack. It is AHEAD if the log does not reach to its cursor.

    Of a shared subscription, it is UNNAMED without a connection, and LOST if the connection reads no part any more.
    """

    ACKED = b"acked"
    UNKNOWN = b"unknown"
    AHEAD = b"ahead"
    UNNAMED = b"unnamed"
    LOST = b"lost"


class Subscriptions(Noun):
    """Keeps the named subscriptions of users.

    A user has at most :data:`MAX_SUBSCRIPTIONS_PER_USER` with 256 KiB of parameters. Redis forgets one that was not
    used for ``subscription_idle_ms`` of the script settings.
    """

    async def put(
        self, uid: str, name: str, parameters: dict[str, str], cursor: Position | None,
        idempotency_key: IdempotencyKey, *, parts: int | None = None, new: NewWebhook | None = None,
    ) -> Put:  # fmt: skip
        """Make a subscription that begins after ``cursor``, None for the newest entry.

        With ``parts`` it is shared, and has this number of parts. An existing one gets the parameters and keeps its
        cursor, so a program may do this at each start. A connection that reads it goes on with the earlier parameters.
        With a webhook, its deliveries begin anew, or pause if it is paused, and such a connection ends. Without one,
        deliveries end. Raises TooLarge if the user has too many, and BadRequest if an existing one has another number
        of parts.
        """
        check_name(name)
        reply = await self._scripts.write(
            "subscription_put", idempotency_key, uid=uid, name=name, cursor="" if cursor is None else cursor.cursor,
            parameters=msgspec.json.encode(parameters), parts="" if parts is None else parts,
            webhook="" if new is None else encode_webhook(new.webhook), secret="" if new is None else new.secret,
            max_webhooks=0 if new is None else new.max_webhooks,
            standing="" if new is None else new.webhook.standing.line,
        )  # fmt: skip
        done, *secret = reply.value.split()
        return Put(done == b"made", bool(secret))

    async def remove(self, uid: str, name: str, idempotency_key: IdempotencyKey) -> None:
        """Remove a subscription, and end the stream that reads it. Raises NotFound if there is none."""
        check_name(name)
        await self._scripts.write("subscription_remove", idempotency_key, uid=uid, name=name)

    async def list_all(self, uid: str) -> list[NamedSubscription]:
        """Return the subscriptions of a user, by their names."""
        rows, time = await self._redis.execute_at_once(("HGETALL", keys.key_for("subscriptions", uid)), ("TIME",))
        fields = dict(zip(rows[::2], rows[1::2], strict=True))
        found = [
            self._parse(name.decode(), [fields.get(name + end) for end in _FIELDS], time)
            for name in sorted(fields) if b" " not in name
        ]  # fmt: skip
        return [one for one in found if one is not None]

    async def get(self, uid: str, name: str) -> NamedSubscription:
        """Return a subscription. Raises NotFound if the user has none with this name, or has not used it for long."""
        check_name(name)
        key = keys.key_for("subscriptions", uid)
        fields, time = await self._redis.execute_at_once(
            ("HMGET", key, *(f"{name}{end.decode()}" for end in _FIELDS)), ("TIME",)
        )
        found = self._parse(name, fields, time)
        if found is None:
            raise unknown_subscription()
        return found

    async def take(
        self, uid: str, subscription: NamedSubscription, connection: str, *, is_poll: bool = False,
        goes_on: bool = False,
    ) -> Taking:  # fmt: skip
        """Let a connection, or a long poll, be the reader of a subscription, from the cursor that was read.

        The connection that was its reader ends with `taken_over`, in whichever process. ``goes_on`` is for a poll that
        acknowledges an earlier one: if the reader was a poll, it is that one, which has ended. If the cursor has
        changed since it was read, nothing is taken: then read it again. Raises NotFound if the subscription is gone.
        """
        reply = await self._scripts.call(
            "subscription_take", keys.META, uid=uid, name=subscription.name, cursor=subscription.cursor.cursor,
            reader=f"~{connection}" if is_poll else connection, goes_on=int(goes_on),
        )  # fmt: skip
        if reply["outcome"] == b"unknown":
            raise unknown_subscription()
        return Taking(reply["outcome"] == b"taken", int(reply["appended"]))

    async def ack(self, acks: Sequence[Ack]) -> list[AckOutcome]:
        """Raise the cursors of subscriptions, at least one, in one round trip. A higher cursor stays."""
        words: list[tuple[ScriptArgument, ...]]
        words = [(one.uid, one.name, one.cursor.cursor, one.created_ms, one.connection) for one in acks]
        most = MAX_PER_CALL if any(one.connection for one in acks) else MAX_ACKS_PER_CALL
        calls = [
            ScriptCall("subscriptions_ack", {}, [*chain.from_iterable(words[at : at + most])])
            for at in range(0, len(words), most)
        ]
        return [AckOutcome(word) for reply in await self._scripts.call_each(keys.META, calls) for word in reply]

    async def count_endangered(self, before_ms: float) -> int:
        """Return how many subscriptions have a cursor on the log from before this time, in ms since 1970.

        Those that have lost entries do not count: the trimming of the log has taken them out until their next ack.
        """
        (count,) = await self._redis.execute(("ZCOUNT", keys.UNACKED, "-inf", f"({before_ms:.0f}"))
        return int(count)

    def _parse(self, name: str, fields: Sequence[bytes | None], time: Sequence[bytes]) -> NamedSubscription | None:
        """Return the subscription in :data:`_FIELDS` of Redis, None without them. ``time`` is the reply of TIME."""
        row, parameters, parts, webhook, standing = fields
        if row is None or parameters is None:
            return None
        found = parse_subscription_row(name, row, parameters, webhook, standing)
        idle_ms, now_ms = self._scripts.size_limits.subscription_idle_ms, int(time[0]) * 1000 + int(time[1]) // 1000
        if idle_ms and found.used_ms + idle_ms < now_ms:
            return None
        return found if parts is None else found._replace(parts=parse_parts(parts, now_ms))


_FIELDS = (b"", b" parameters", b" parts", b" webhook", b" standing")
"""What stands behind the name in the fields of a subscription that are read."""


def parse_subscription_row(
    name: str, row: bytes, parameters: bytes, webhook: bytes | None, standing: bytes | None
) -> NamedSubscription:
    """Return the subscription in its fields of Redis (``lua/subscription.lua``, ``lua/webhook.lua``), without parts."""
    cursor, created, used, _ = row.split(b" ")
    given = msgspec.json.decode(parameters, type=dict[str, str])
    return NamedSubscription(
        name, given, parse_cursor(cursor), int(created), int(used), webhook=parse_webhook(webhook, standing)
    )


def check_name(name: str) -> None:
    """Raise BadRequest for a text that no subscription can have as its name."""
    if not _NAME.fullmatch(name):
        message = "a name of 1 to 64 letters, digits or _.-, which begins with none of .-"
        raise BadRequest(message, param="subscription")
