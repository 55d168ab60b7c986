"""Describes the requests that the server sends to endpoints of users, as the member ``webhooks`` of the document."""

from stream_server.web.openapi.messages import SCHEMA_REF, Json, reference
from stream_server.web.route import JSON_MEDIA_TYPE
from stream_server.web.webhooks.requests import REQUEST_STRUCTS

_TEXT: Json = {"type": "string"}

_HEADERS: dict[str, tuple[str, Json]] = {
    "webhook-id": ("the same if the request is repeated", _TEXT),
    "webhook-timestamp": ("when it was sent, in seconds since 1970", {"type": "string", "pattern": "^[0-9]+$"}),
    "webhook-signature": (
        "`v1,` and the HMAC-SHA256 of id, time and body in base64; one for each secret, with a blank between them",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/=]+( v1,[A-Za-z0-9+/=]+)*$"},
    ),
}
"""Description and schema of the headers of Standard Webhooks."""


def webhooks() -> Json:
    """Return the webhooks by name. There is one: all requests for a subscription go to the same URL."""
    named = {str(struct.__struct_config__.tag): SCHEMA_REF.format(name=struct.__name__) for struct in REQUEST_STRUCTS}
    body = {
        "oneOf": [reference(struct.__name__) for struct in REQUEST_STRUCTS],
        "discriminator": {"propertyName": "type", "mapping": named},
    }
    return {
        "subscription": {
            "post": {
                "operationId": "webhook_receive",
                "summary": "The server sends the events of a subscription to its `deliver.url`",
                "description": "The signature is that of Standard Webhooks, by the secret of the webhook.",
                "tags": ["subscriptions"],
                "security": [],
                "parameters": [
                    {"name": name, "in": "header", "required": True, "description": about, "schema": schema}
                    for name, (about, schema) in _HEADERS.items()
                ],
                "requestBody": {"required": True, "content": {JSON_MEDIA_TYPE: {"schema": body}}},
                "responses": {
                    "2XX": {
                        "description": "Handled. To a challenge, the body is its text; else the server reads no body.",
                        "content": {"text/plain": {"schema": _TEXT}},
                    },
                    "410": {"description": "The endpoint wants no further request."},
                    "default": {"description": "Not handled: the server repeats the request later."},
                },
            }
        }
    }
