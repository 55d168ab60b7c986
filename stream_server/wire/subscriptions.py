"""Named subscriptions, and webhooks: where the server sends the events of one, and how that goes."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from stream_server.wire.objects import Answer, Count, Timestamp


class SentWebhook(Answer, frozen=True, kw_only=True):
    """The outcome of one request to the endpoint of a webhook: the status of the answer, or why there was none."""

    left_out: ClassVar[frozenset[str]] = frozenset({"status", "error", "part"})

    sent: Timestamp
    milliseconds: Annotated[Count, Meta(description="until the answer, or until it was given up")]
    events: Annotated[Count, Meta(description="events in the request; 0 in a test")]
    status: int | None = None
    error: str | None = None
    part: Annotated[int | None, Meta(description="of a shared subscription: the part whose events were sent")] = None


class Webhook(Answer, frozen=True, kw_only=True):
    """Where the server sends the events of a subscription, and how that goes.

    ``failing`` deliveries are tried again, ``paused`` and ``disabled`` ones not until the next ``PUT``. The user has
    paused them, or they have failed for three days. No process of the server has room for ``waiting`` ones. Of several
    parts, the one with most failures is shown.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"failing_since", "next_attempt", "secret"})

    url: str
    batch: Annotated[int, Meta(description="most events in one request")]
    state: Literal["active", "failing", "waiting", "paused", "disabled"]
    failures: Annotated[Count, Meta(description="failures in a row")] = 0
    failing_since: Timestamp | None = None
    next_attempt: Timestamp | None = None
    outcomes: Annotated[tuple[SentWebhook, ...], Meta(description="of the last 20 requests, newest first")] = ()
    secret: (
        Annotated[str, Meta(description="signs its requests; only in the answer to the PUT that makes the webhook")]
        | None
    ) = None


class WebhookSecret(Answer, frozen=True):
    """The new secret of a webhook. No other answer shows it."""

    secret: str


class SubscriptionPart(Answer, frozen=True, kw_only=True):
    """A part of a shared subscription: how far it is handled, and who reads it now: null for nobody."""

    cursor: Annotated[str, Meta(description="its next reader begins behind this position")]
    behind: Annotated[Count, Meta(description="entries of the log behind its cursor")]
    behind_seconds: float = 0
    worker: (
        Annotated[str, Meta(description="its worker, else the connection; of a webhook the process of the server")]
        | None
    ) = None


class Subscription(Answer, frozen=True, kw_only=True):
    """A named subscription: the parameters of its streams, and the cursor up to which everything is handled.

    ``used`` is when it was last put, read or acknowledged. A shared one has ``parts``, and the lowest cursor of them.
    """

    left_out: ClassVar[frozenset[str]] = frozenset({"deliver", "kept_seconds", "parts"})

    name: str
    parameters: dict[str, str]
    cursor: Annotated[str, Meta(description="its next stream begins behind this position")]
    created: Timestamp
    used: Timestamp
    behind: Annotated[Count, Meta(description="entries of the log behind its cursor")]
    behind_seconds: Annotated[float, Meta(description="from its cursor to the newest entry")] = 0
    kept_seconds: (
        Annotated[
            float,
            Meta(
                description="about how long the log still has its next entry; left out if it is not behind, or if the "
                "log has no limit that is near"
            ),
        ]
        | None
    ) = None
    parts: Annotated[tuple[SubscriptionPart, ...], Meta(description="those of a shared subscription")] = ()
    deliver: Annotated[Webhook, Meta(description="left out if programs read it")] | None = None
