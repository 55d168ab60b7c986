"""Trends: the tags and words that more people use than an hour ago."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.events.position import format_iso_time
from stream_server.trends.counter import MAX_TRENDS, primary_language
from stream_server.web.http import query
from stream_server.web.http.app_keys import HUB, TRENDS
from stream_server.web.http.fields import Language, NonNegativeInt, Timestamp
from stream_server.web.http.responses import encode_response

TrendKind = Literal["tag", "word"]
Authors = Annotated[int, Meta(ge=0, description="authors of counted posts; one counts once in an hour of the clock")]


class TrendsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/trends``."""

    kind: TrendKind = "tag"
    lang: Language | None = None
    count: Annotated[int, Meta(ge=1, le=MAX_TRENDS)] = 20


class TrendAnswer(msgspec.Struct):
    """A tag (without ``#``) or a word, in lower case, that grows."""

    text: str
    count: Authors
    before: Annotated[int, Meta(ge=0, description="the same in the hour before")]
    growth: Annotated[float, Meta(ge=0, description="`count` divided by what was to be expected from the hour before")]


class Trends(msgspec.Struct, rename={"from_": "from"}):
    """The trends of the present hour, the strongest first."""

    from_: Annotated[Timestamp, Meta(description="since when posts are counted: up to an hour ago")]
    to: Timestamp
    posts: Annotated[int, Meta(ge=0, description="public posts in this time, estimated above 50 events a second")]
    counted: Annotated[int, Meta(ge=0, description="posts of which the words were counted: up to 50 a second")]
    max_undercount: Annotated[NonNegativeInt, Meta(description="by how much a count may be too low")]
    trends: list[TrendAnswer]


async def get(request: web.Request) -> web.Response:
    """``GET /v1/trends``: list the tags or words that more people use than an hour ago."""
    asked = query.parsed_query(request, TrendsQuery)
    language = "" if asked.lang is None else primary_language(asked.lang)
    report, now_ms = request.app[TRENDS].report(asked.kind, language), request.app[HUB].now_ms()
    return encode_response(
        Trends(
            format_iso_time(min(report.from_ms or now_ms, now_ms)), format_iso_time(now_ms), report.posts,
            report.counted, report.max_undercount, [TrendAnswer(*trend) for trend in report.trends[: asked.count]],
        )
    )  # fmt: skip
