"""The bodies of the requests that the server sends to endpoints. ``type`` says which one it is."""

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

from stream_server.store.social.parts import MAX_PARTS
from stream_server.web.http.fields import LogCursor
from stream_server.web.openapi.messages import MESSAGE, reference


class WebhookEvents(msgspec.Struct, tag_field="type", tag="events", frozen=True, omit_defaults=True):
    """Matching events of a subscription. An answer with a status of 200 to 299 acknowledges them.

    ``cursor`` is how far they reach. If ``more`` is true, the log has later entries. ``part`` is that of a shared
    subscription whose events these are; another has no ``part``.
    """

    subscription: str
    events: Annotated[
        list[Any],
        Meta(description="each is a message as in a stream", extra_json_schema={"items": reference(MESSAGE)}),
    ]
    cursor: LogCursor
    more: bool
    part: Annotated[int, Meta(ge=0, lt=MAX_PARTS)] | None = None


class WebhookTest(msgspec.Struct, tag_field="type", tag="test", frozen=True):
    """A test, without events."""

    subscription: str
    events: Annotated[list[Any], Meta(max_length=0)]


class WebhookChallenge(msgspec.Struct, tag_field="type", tag="challenge", frozen=True):
    """A question whether the endpoint wants the events. It answers with the text ``challenge``, and nothing else."""

    subscription: str
    challenge: str


WebhookRequest: TypeAlias = WebhookEvents | WebhookTest | WebhookChallenge
"""Any request to an endpoint."""

REQUEST_STRUCTS: tuple[type[WebhookRequest], ...] = (WebhookEvents, WebhookTest, WebhookChallenge)
