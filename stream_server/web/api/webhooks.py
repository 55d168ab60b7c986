"""Webhooks: where the server sends the events of a subscription, their secrets and tests.

``PUT /v1/subscriptions/{subscription}`` with ``deliver`` makes one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest, NotFound
from stream_server.events.position import format_iso_time
from stream_server.store.social.subscriptions import NamedSubscription, NewWebhook
from stream_server.store.social.webhook_state import MAX_BATCH, DeliveryOutcome, Standing, Webhook, WebhookState
from stream_server.store.social.webhooks import make_secret
from stream_server.web.http.app_keys import CLAIMS, CONFIG, SENDER, STORE, TURN
from stream_server.web.http.fields import Body
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import encode_response
from stream_server.web.http.validation import read_idempotency_key
from stream_server.web.limits.rate_limits import WEBHOOK_TESTS
from stream_server.web.route import Request, Route
from stream_server.web.webhooks.proof import prove, send_test
from stream_server.wire.subscriptions import SentWebhook, WebhookSecret

_URL_PARAM = "deliver.url"


class Deliver(Body):
    """Where to send the events of a subscription."""

    url: Annotated[str, Meta(description="an https URL that answers the challenge")]
    batch: Annotated[int, Meta(ge=1, le=MAX_BATCH, description="most events in one request")] = MAX_BATCH
    paused: Annotated[bool, Meta(description="keeps the webhook, but sends nothing until the next PUT")] = False


async def read_webhook(request: Request, name: str, sent: Deliver, scopes: frozenset[str]) -> NewWebhook:
    """Return the webhook that a ``PUT`` gives to the subscription ``name``, when its URL has answered the challenge.

    A webhook that is active at this URL is not asked again, so a program may send the request at each start; nor is one
    that pauses there. Raises BadRequest if the URL is refused, or if the server has no webhooks.
    """
    app, uid = request.app, request[CLAIMS].sub
    most = app[CONFIG].webhooks_per_user
    if not most:
        raise BadRequest("this server sends no webhooks: `--webhooks-per-user` is 0", param="deliver")
    app[SENDER].check_url(sent.url, _URL_PARAM)
    try:
        before = (await app[STORE].subscriptions.get(uid, name)).webhook
    except NotFound:
        before = None
    secret = make_secret()
    standing = before.standing if before is not None and before.url == sent.url else None
    is_proven = standing is not None and (sent.paused or standing.state is WebhookState.ACTIVE)
    if standing is None or not is_proven or (standing.failures and not sent.paused):  # one that waits is tried at once
        await app[LIMITS].use(request, WEBHOOK_TESTS)
    if not is_proven:
        signing = await app[STORE].webhooks.get_secrets(uid, name) or (secret,)
        async with _sending(request):
            await prove(app[SENDER], uid, sent.url, name, signing, _URL_PARAM)
    state = WebhookState.PAUSED if sent.paused else WebhookState.ACTIVE
    return NewWebhook(Webhook(sent.url, sent.batch, scopes, (Standing(state),)), secret, most)


@asynccontextmanager
async def _sending(request: Request) -> AsyncIterator[None]:
    """A context in which the request waits for an endpoint. Raises RateLimited if its user has too many of those."""
    limits = request.app[LIMITS]
    with limits.running(request, limits.webhook_tests):
        if TURN not in request:
            yield
        else:
            async with request[TURN].given_back():  # else slow endpoints would hold up all requests of their address
                yield


def webhook_members(webhook: Webhook, *, is_waiting: bool) -> dict[str, object]:
    """Return a webhook as JSON, without its secrets. ``is_waiting`` tells that no process has room for it."""
    standing = webhook.standing
    state = standing.state.value
    if standing.state is WebhookState.ACTIVE and (is_waiting or standing.failures):
        state = "waiting" if is_waiting else "failing"
    members: dict[str, object] = {
        "url": webhook.url,
        "batch": webhook.batch,
        "state": state,
        "failures": standing.failures,
        "outcomes": [_outcome_members(one) for one in webhook.outcomes],
    }
    if standing.failing_since_ms:
        members["failing_since"] = format_iso_time(standing.failing_since_ms)
    if standing.next_ms:
        members["next_attempt"] = format_iso_time(standing.next_ms)
    return members


def _outcome_members(outcome: DeliveryOutcome) -> dict[str, object]:
    members: dict[str, object] = {
        "sent": format_iso_time(outcome.time_ms),
        "milliseconds": outcome.took_ms,
        "events": outcome.events,
    }
    if outcome.part is not None:
        members["part"] = outcome.part
    if outcome.status is not None:
        members["status"] = outcome.status
    if outcome.error:
        members["error"] = outcome.error
    return members


async def _get(request: Request) -> tuple[NamedSubscription, Webhook]:
    """Return the subscription in the path, and its webhook. Raises NotFound without one."""
    found = await request.app[STORE].subscriptions.get(request[CLAIMS].sub, request.match_info["subscription"])
    if found.webhook is None:
        raise NotFound("this subscription has no webhook", param="subscription")
    return found, found.webhook


async def test(request: Request) -> web.Response:
    """``POST /v1/subscriptions/{subscription}/test``: send its webhook a request without events.

    The answer is the outcome, which is not among those of the subscription.
    """
    app, uid = request.app, request[CLAIMS].sub
    found, webhook = await _get(request)
    signing = await app[STORE].webhooks.get_secrets(uid, found.name)
    async with _sending(request):
        outcome = await send_test(app[SENDER], uid, webhook.url, found.name, signing)
    return encode_response(_outcome_members(outcome))


async def replace_secret(request: Request) -> web.Response:
    """``POST /v1/subscriptions/{subscription}/secret``: make a new secret for its webhook.

    For a day, requests are signed by it and by the one before. The answer is the only one that shows it.
    """
    store, uid = request.app[STORE], request[CLAIMS].sub
    found, _ = await _get(request)
    await store.webhooks.replace_secret(uid, found.name, make_secret(), read_idempotency_key(request))
    newest, *_ = await store.webhooks.get_secrets(uid, found.name)
    return encode_response({"secret": newest})


_PATH = "/v1/subscriptions/{subscription}"

# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", f"{_PATH}/test", test, "stream", response=SentWebhook, is_write=False,
          limits=(WEBHOOK_TESTS,)),
    Route("POST", f"{_PATH}/secret", replace_secret, "stream", response=WebhookSecret),
)
# fmt: on
