"""``/1.1/statuses/{filter,sample,firehose}.json``: the streams of v1.1, the same for all who ask the same.

A refusal is a short text with the status that v1.1 gives it. The token is a Bearer or comes as OAuth 1.0a.
"""

import math

from aiohttp import hdrs, web

from filters.combine import Subscription
from filters.kind import Kinds
from stream_server.errors import ApiError, Unauthorized
from stream_server.hub.group import Framing
from stream_server.web.answers import REALM
from stream_server.web.dialects import oauth
from stream_server.web.dialects.admission import admit
from stream_server.web.dialects.v1_framing import MEDIA_TYPE, framing
from stream_server.web.dialects.v1_parameters import count, given, manner, narrowed, predicates, wants_better
from stream_server.web.keys import CLAIMS, HUB, STORE
from stream_server.web.route import Dialect
from stream_server.web.stream import open_stream
from stream_server.web.subscription import Plan, plan

SAMPLE_PERCENT = "1"
"""What ``statuses/sample`` gives of everything public."""

STATUSES = {400: 406, 405: 405, 415: 406, 429: 420}
"""What v1.1 answers where we have another status."""

CALM = "Enhance Your Calm"
"""The reason phrase of 420, which HTTP does not know."""


async def filtered(request: web.Request) -> web.StreamResponse:
    """``statuses/filter``: (track or follow or locations) and language."""
    await admit(request)
    parameters = await given(request)
    return await _answer(request, "statuses/filter", predicates(parameters))


async def sample(request: web.Request) -> web.StreamResponse:
    """``statuses/sample``: one in a hundred, the same ones for everybody."""
    await admit(request)
    return await _answer(request, "statuses/sample", {"sample": SAMPLE_PERCENT})


async def firehose(request: web.Request) -> web.StreamResponse:
    """``statuses/firehose``: everything public."""
    await admit(request)
    return await _answer(request, "statuses/firehose", {"firehose": "true"})


async def token(request: web.Request) -> str:
    """The token of a request, in whichever place v1.1 takes one; raises Unauthorized where there is none."""
    headers = request.headers.getall(hdrs.AUTHORIZATION, [])
    found = oauth.token(headers[0] if headers else "", {} if headers else await given(request))
    if len(headers) > 1 or found is None:
        raise Unauthorized("send a token: as a Bearer, or as oauth_token of OAuth 1.0a")
    return found


def refusal(error: ApiError) -> web.Response:
    """The answer for ``error``: a sentence."""
    status = 416 if error.param == "count" else STATUSES.get(error.status, error.status)
    response = web.Response(text=f"{error.message}\n", status=status, reason=CALM if status == 420 else None)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    if status == 401:
        response.headers[hdrs.WWW_AUTHENTICATE] = f'OAuth realm="{REALM}", Bearer realm="{REALM}"'
    if status in {420, 503}:
        response.headers[hdrs.RETRY_AFTER] = str(math.ceil(error.retry_after or 1))
    return response


DIALECT = Dialect(refusal, token)


async def _answer(request: web.Request, stream: str, asked: dict[str, str]) -> web.StreamResponse:
    """Every refusal comes before the first byte."""
    parameters = await given(request)
    wanted = count(parameters, request[CLAIMS].scopes)
    better = wants_better(parameters)
    asked |= narrowed(parameters)
    made = await _planned(request, asked, framing(manner(request, stream, parameters)), wanted)
    return await open_stream(request, _better(made) if better else made, MEDIA_TYPE)


async def _planned(request: web.Request, asked: dict[str, str], framing: Framing, wanted: int) -> Plan:
    """From the head; or from before the statuses that are wanted first, and with no others if ``wanted`` says so."""
    if not wanted:
        return await plan(request, asked, framing, impersonal=True)
    head = request.app[HUB].head
    begin = await request.app[STORE].log.back(abs(wanted), head)
    made = await plan(request, {**asked, "since": begin.cursor}, framing, impersonal=True)
    return made if wanted > 0 else made._replace(ask=made.ask._replace(until=head))


def _better(made: Plan) -> Plan:
    """The same plan for who wants better statuses than there are: of no kind."""
    none = Subscription(made.ask.subscription.bases, [Kinds(())], impersonal=True)
    return made._replace(ask=made.ask._replace(subscription=none))
