"""Webhooks in Redis: which process delivers which, what it says of its deliveries, and the secrets that sign them.

A process *claims* a webhook and holds it under a lease, which it prolongs while it delivers. While it holds one, it is
the reader of the subscription under a name of its own. This name is the fence: who has lost it can acknowledge nothing.

Each part of a shared subscription is claimed and held by itself, so several processes may deliver it. A process claims
up to an equal share of its parts, and is told when it holds more, because another process has come.
"""

import secrets
from base64 import b64encode
from collections.abc import Sequence
from enum import Enum
from itertools import chain
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.protocol import parse_cursor
from stream_server.store.redis.scripts import ScriptArgument, ScriptCall
from stream_server.store.social.noun import Noun
from stream_server.store.social.parts import parse_parts
from stream_server.store.social.subscriptions import NamedSubscription, check_name, parse_subscription_row
from stream_server.store.social.webhook_state import DeliveryOutcome, Standing, encode_outcomes

WAITING_MS = 10_000
"""A webhook that is due for so long waits: every process has as many as it can, or none runs."""

MAX_REPORTS_PER_CALL = 100
"""Most reports in one call of a script, which takes about 5 ms for them. Redis serves others between the calls."""

PARTS_AS_A_REPORT = 8
"""So many parts of a shared subscription cost as much as a report, because the script reads and stores all of them."""

SECRET_BYTES = 24
"""Random bytes of a secret. Standard Webhooks asks for 24 to 64."""


def make_secret() -> str:
    """Return a new secret, in the form of Standard Webhooks."""
    return "whsec_" + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


class ClaimedWebhook(NamedTuple):
    """A webhook, or a part of one, that a process has claimed.

    Attributes:
        reader: The name under which the process reads the subscription.
        subscription: The subscription, with its webhook.
        part: The index of the part that is claimed. None for a subscription that is not shared.
    """

    uid: str
    reader: str
    subscription: NamedSubscription
    part: int | None = None

    @property
    def cursor(self) -> Position:
        """Everything up to it is delivered."""
        kept = self.subscription
        return kept.cursor if self.part is None else kept.parts[self.part].cursor


class Claims(NamedTuple):
    """The webhooks that a process has claimed, and how many of all users fail, and wait for a process."""

    claimed: list[ClaimedWebhook]
    failing: int
    waiting: int


class Step(Enum):
    """The step after a report: the process holds the webhook on, nobody does for a time, or nobody until a ``PUT``."""

    HOLD = "hold"
    WAIT = "wait"
    STOP = "stop"


class Report(NamedTuple):
    """The report of a process about a webhook that it holds.

    Attributes:
        cursor: Everything up to it is delivered.
        step: What follows, for ``step_ms`` ms.
        standing: The standing of the webhook, or of its part.
        outcomes: Those since the last report, newest first.
    """

    claimed: ClaimedWebhook
    cursor: Position
    step: Step
    step_ms: int
    standing: Standing
    outcomes: tuple[DeliveryOutcome, ...] = ()


class Reported(NamedTuple):
    """The answer to a report: the cursor, which its user may raise too, and whether the part is beyond the share."""

    cursor: Position
    is_surplus: bool


class Webhooks(Noun):
    """Gives webhooks to processes, and keeps what these say of them."""

    async def claim(self, process: str, lease_ms: int, most: int) -> Claims:
        """Claim some of the webhooks and parts that nobody holds and that are due, for ``lease_ms``.

        ``process`` is the name of the process, which counts for the shares from then on for three seconds. Raises
        `Unavailable` if Redis does not answer.
        """
        reply = await self._scripts.call(
            "webhooks_claim", keys.META, process=process, claim=secrets.token_hex(4), lease_ms=lease_ms, most=most,
            waiting_ms=WAITING_MS,
        )  # fmt: skip
        claimed = list[ClaimedWebhook]()
        for uid, name, reader, index, row, parameters, webhook, standing, parts in reply["claimed"]:
            found = parse_subscription_row(name.decode(), row, parameters, webhook, standing)
            part = None if parts is None else int(index)
            if parts is not None:
                found = found._replace(parts=parse_parts(parts, 0))
            claimed.append(ClaimedWebhook(uid.decode(), reader.decode(), found, part))
        return Claims(claimed, int(reply["failing"]), int(reply["waiting"]))

    async def find_waiting(self, uid: str, kept: Sequence[NamedSubscription]) -> frozenset[str]:
        """Return the names of a user's webhooks, or of those with parts, that no process has room for."""
        names = [one.name for one in kept if one.webhook is not None]
        if not names:
            return frozenset()
        asked = ("ZMSCORE", keys.key_for("webhooks"), *(f"{uid} {name}" for name in names))
        times, (seconds, _) = await self._redis.execute_at_once(asked, ("TIME",))
        latest = int(seconds) * 1000 - WAITING_MS
        return frozenset(name for name, ms in zip(names, times, strict=True) if ms is not None and float(ms) < latest)

    async def report(self, reports: Sequence[Report]) -> list[Reported | None]:
        """Say how deliveries go, of at least one webhook, in one round trip.

        Return None for each that the process does not hold any more. Raises `Unavailable` if Redis does not answer.
        """
        calls, room = list[list[ScriptArgument]](), 0.0
        for (uid, reader, kept, part), cursor, step, step_ms, standing, outcomes in reports:
            of_part = (uid, kept.name, part or 0, reader, cursor.cursor, step.value, step_ms, standing.line)
            cost = 1 + len(kept.parts) / PARTS_AS_A_REPORT
            if cost > room:
                calls.append([])
                room = MAX_REPORTS_PER_CALL
            room -= cost
            calls[-1] += (*of_part, encode_outcomes(outcomes))
        asked = [ScriptCall("webhooks_report", {}, words) for words in calls]
        replies = chain.from_iterable(await self._scripts.call_each(keys.META, asked))
        found = (reply.partition(b" ") for reply in replies)
        return [None if word == b"lost" else Reported(parse_cursor(word), bool(more)) for word, _, more in found]

    async def get_secrets(self, uid: str, name: str) -> tuple[str, ...]:
        """Return the secrets that sign the requests of a webhook, the newest first; none without a webhook."""
        return (await self._read_secrets(uid, name))[-1]

    async def get_holders_secrets(self, claimed: ClaimedWebhook) -> tuple[str, ...]:
        """Return the secrets that sign the next request of a claimed webhook; none if its process has lost it.

        Raises `Unavailable` if Redis does not answer.
        """
        row, parts, signing = await self._read_secrets(claimed.uid, claimed.subscription.name)
        if claimed.part is None:
            return signing if row.endswith(f" {claimed.reader}".encode()) else ()
        holders = parts.partition(b"\n")[0].split()
        return signing if holders and holders[claimed.part].endswith(f":{claimed.reader}".encode()) else ()

    async def _read_secrets(self, uid: str, name: str) -> tuple[bytes, bytes, tuple[str, ...]]:
        """Return the row of a subscription and its parts, empty without, and the secrets of its webhook, or none."""
        fields = ("HMGET", keys.key_for("subscriptions", uid), name, f"{name} parts", f"{name} secrets")
        (row, parts, stored), (seconds, micros) = await self._redis.execute_at_once(fields, ("TIME",))
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        return row or b"", parts or b"", () if stored is None else _parse_secrets(stored, now_ms)

    async def replace_secret(self, uid: str, name: str, secret: str, idempotency_key: IdempotencyKey) -> None:
        """Let ``secret`` sign, beside the one before it for a day. Raises NotFound without such a webhook."""
        check_name(name)
        await self._scripts.write("webhook_secret", idempotency_key, uid=uid, name=name, secret=secret)


def _parse_secrets(stored: bytes, now_ms: int) -> tuple[str, ...]:
    """Return the secrets in the field of a webhook: the present one, and the one before it until it ends."""
    present, *before = stored.decode().split(" ")
    return (present, before[0]) if before and int(before[1]) > now_ms else (present,)
