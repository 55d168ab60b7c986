"""Timelines: how a home is asked for."""

from typing import Annotated, Literal

from msgspec import Meta

from stream_server.web.http.paging_shapes import NumberedPageQuery

TimelineOrder = Annotated[
    Literal["time", "importance"],
    Meta(description="newest first, or by what people made of it: a cursor of one order is none of the other"),
]


class HomeTimelineQuery(NumberedPageQuery, frozen=True, forbid_unknown_fields=True):
    """A piece of the home timeline."""

    order: TimelineOrder = "time"
