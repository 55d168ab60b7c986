# mypy: disable-error-code="empty-body"
"""The calls of both clients about named subscriptions and webhooks, in the form of ``calls``."""

from typing import Any, Unpack
from urllib.parse import quote

from stream_server.client.call import Call, WriteOptions, call
from stream_server.client.filters import Filters, Since, to_parameters, to_since
from stream_server.wire.subscriptions import SentWebhook, Subscription, WebhookSecret


class SubscriptionCalls:
    """The calls about named subscriptions."""

    @Call
    async def put_subscription(
        self: Any, name: str, *, since: Since | None = None, parts: int | None = None, deliver: str | None = None,
        batch: int | None = None, paused: bool = False, **filters: Unpack[Filters],
    ) -> Subscription:  # fmt: skip
        """Make a named subscription that begins after ``since``. Of an existing one, keep the cursor and parts.

        With ``parts``, a new one is shared by several workers. With ``deliver``, an https URL, the server
        sends the events there, at most ``batch`` in one request. The answer that makes such a webhook is the only one
        with its secret. With ``paused`` it is kept, but the server sends nothing until the next call. Without
        ``deliver``, an existing webhook ends.
        """
        start = None if since is None else to_since(since)
        body: dict[str, Any] = {"parameters": to_parameters(filters), "since": start, "parts": parts}
        if deliver is not None:
            body["deliver"] = {
                "url": deliver, **({} if batch is None else {"batch": batch}), **({"paused": True} if paused else {}),
            }  # fmt: skip
        return await self._transport.call(Subscription, "PUT", f"/v1/subscriptions/{quote(name, safe='')}", body=body)  # type: ignore[no-any-return]  # see post

    @call("GET", "subscriptions", "subscriptions")
    def subscriptions(self) -> tuple[Subscription, ...]:
        """Read the caller's named subscriptions, and how far behind each is."""

    @call("GET", "subscriptions/{name}")
    def subscription(self, name: str) -> Subscription:
        """Read one of the caller's named subscriptions."""

    @call("DELETE", "subscriptions/{name}")
    def delete_subscription(self, name: str, **options: Unpack[WriteOptions]) -> None:
        """Delete a named subscription of the caller, and end the stream that reads it."""

    @call("POST", "subscriptions/{name}/test")
    def test_webhook(self, name: str) -> SentWebhook:
        """Let the server send a request without events to the webhook of a subscription, and read how it went."""

    @call("POST", "subscriptions/{name}/secret")
    def replace_webhook_secret(self, name: str, **options: Unpack[WriteOptions]) -> WebhookSecret:
        """Make a new secret for the webhook of a subscription. The one before it signs too, for a day."""

    @call("POST", "subscriptions/{name}/ack")
    def ack(self, name: str, cursor: str, *, connection: str | None = None) -> None:
        """Say that everything up to a cursor is handled. A stream does this by itself, unless ``acks`` is False.

        Of a shared subscription, ``connection`` is ``stream.connection``, by which the cursor came.
        """
