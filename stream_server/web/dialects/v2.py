"""``/2/tweets/search/stream`` and ``/2/tweets/sample/stream``: Tweets as clients of v2 hear of them.

The first goes by the rules that its user has saved, as they change. Both bring public posts only, the same for all.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from aiohttp import web

from filters.rule import SavedRules
from stream_server.errors import BadRequest
from stream_server.web.dialects.admission import ALLOWANCE, admit
from stream_server.web.dialects.v2_fields import read
from stream_server.web.dialects.v2_framing import MEDIA_TYPE, framing
from stream_server.web.dialects.v2_problem import NO_RULES, InvalidValue, left, refusal, told
from stream_server.web.dialects.v2_query import query, whole
from stream_server.web.keys import HUB, STORE
from stream_server.web.middleware import bearer
from stream_server.web.route import Dialect
from stream_server.web.since import begin
from stream_server.web.stream import chunks, open_stream
from stream_server.web.subscription import Plan, plan, reach

BACKFILL_MINUTES = 5
"""So far back a client may begin by saying how many minutes."""

SAMPLE_PERCENT = "1"

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z", re.ASCII)


async def token(request: web.Request) -> str:
    """The Bearer token of a request; raises Unauthorized where there is none."""
    return bearer(request)


DIALECT = Dialect(refusal, token)
"""What all paths of v2 have in common."""


async def search(request: web.Request) -> web.StreamResponse:
    """``GET /2/tweets/search/stream``: what the user's rules match; 409 to who has none."""
    return await _answer(request, {"rules": "saved"})


async def sample(request: web.Request) -> web.StreamResponse:
    """``GET /2/tweets/sample/stream``: one in a hundred, the same for all."""
    return await _answer(request, {"sample": SAMPLE_PERCENT})


async def _answer(request: web.Request, filters: dict[str, str]) -> web.StreamResponse:
    given = query(request)
    wanted = framing(read(given), chunked=chunks(request))
    parameters = {**filters, **_since(given)}
    await admit(request)
    with _to_come(given, "start_time"):
        made = await plan(request, parameters, wanted, impersonal=True)
    saved = made.ask.subscription.base(SavedRules.name)
    if isinstance(saved, SavedRules) and not len(saved):
        return told(NO_RULES, 409)
    counted = {} if ALLOWANCE not in request else left(request[ALLOWANCE])
    return await open_stream(request, await _bounded(request, made, given), MEDIA_TYPE, counted)


def _since(given: Mapping[str, str]) -> dict[str, str]:
    """Where to begin; without either parameter that is now."""
    minutes = whole(given, "backfill_minutes", 0, 0, BACKFILL_MINUTES)
    if "start_time" in given:
        return {"since": _time(given, "start_time")}
    return {"since": f"-{minutes}m"} if minutes else {}


async def _bounded(request: web.Request, made: Plan, given: Mapping[str, str]) -> Plan:
    """Until ``end_time``, if that is given: behind the last post before it."""
    if "end_time" not in given:
        return made
    log = request.app[STORE].log
    with _to_come(given, "end_time"):
        end = await begin(_time(given, "end_time"), log, now_ms=log.now_ms, param="since")
    if end.position.n < made.ask.position.n:
        raise InvalidValue("end_time", given["end_time"], "is before where the stream begins")
    await reach(request.app[HUB], end.position)
    return made._replace(ask=made.ask._replace(until=end.position))


def _time(given: Mapping[str, str], name: str) -> str:
    """The time called ``name``; raises InvalidValue for what is none."""
    text = given[name]
    try:
        datetime.fromisoformat(text if _TIME.fullmatch(text) else "no time")
    except ValueError:
        raise InvalidValue(name, text, "is not a time such as 2026-11-21T22:00:00Z") from None
    return text


@contextmanager
def _to_come(given: Mapping[str, str], name: str) -> Iterator[None]:
    """A time that the log's own clock has not reached is refused by its name here, with InvalidValue."""
    try:
        yield
    except BadRequest as refused:
        if name not in given or refused.param != "since":
            raise
        raise InvalidValue(name, given[name], "is still to come") from None
