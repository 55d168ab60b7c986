"""Asks a URL whether it wants the events of a subscription, and sends tests.

A *challenge* is a random text. Whoever answers with it has read the request and wants what follows: so nobody makes the
server send events to a stranger. It is asked before anything is stored, so a wrong URL is refused like any other fault.
"""

import secrets
from collections.abc import Sequence

import msgspec

from stream_server.errors import BadRequest
from stream_server.store.social.webhook_state import DeliveryOutcome
from stream_server.web.webhooks.requests import WebhookChallenge, WebhookTest
from stream_server.web.webhooks.sender import Message, Sender


async def prove(sender: Sender, uid: str, url: str, name: str, signing: Sequence[str], param: str) -> None:
    """Ask an endpoint for a challenge. Raises BadRequest, which names ``param``, unless it answers as it should."""
    challenge = secrets.token_urlsafe(24)
    sent = await sender.send(uid, url, _message(WebhookChallenge(name, challenge)), signing)
    if not sent.outcome.is_success:
        why = sent.outcome.error or f"the answer has the status {sent.outcome.status}"
        raise BadRequest(f"this URL did not answer the challenge: {why}", param=param)
    if sent.answer.strip() != challenge.encode():
        raise BadRequest("this URL must answer the challenge with its text, and nothing else", param=param)


async def send_test(sender: Sender, uid: str, url: str, name: str, signing: Sequence[str]) -> DeliveryOutcome:
    """Send a request without events. Return its outcome."""
    return (await sender.send(uid, url, _message(WebhookTest(name, [])), signing)).outcome


def _message(request: WebhookChallenge | WebhookTest) -> Message:
    number = f"{request.__struct_config__.tag}-{secrets.token_hex(8)}"
    return Message(f"{request.subscription}/{number}".replace(".", ":"), msgspec.json.encode(request))
