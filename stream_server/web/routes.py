"""The URL table: all routes of the server. Other paths get 404, and requests that a row does not allow are refused.

The rows of the API stand behind the handlers of their nouns, those of streams here.
"""

from aiohttp import web

from stream_server.web.api import (
    accounts,
    counts,
    discovery,
    groups,
    ingest,
    moderation,
    people,
    rules,
    server,
    sessions,
    statuses,
    streams,
    subscriptions,
    webhooks,
)
from stream_server.web.dialects import v1, v2, v2_recent, v2_rules
from stream_server.web.http.app_keys import FIXED_PATHS, ROUTES
from stream_server.web.limits.rate_limits import POLLS, TRIALS
from stream_server.web.route import Route
from stream_server.web.streaming import long_poll, stream
from stream_server.web.websocket import opening

V1_STREAMS = {
    "/1.1/statuses/filter.json": v1.filter_stream,
    "/1.1/statuses/sample.json": v1.sample_stream,
    "/1.1/statuses/firehose.json": v1.firehose_stream,
}

# fmt: off
ROUTE_TABLE: tuple[Route, ...] = (
    *server.ROWS,
    *discovery.ROWS,
    *people.ROWS,
    *accounts.ROWS,
    *sessions.ROWS,
    *statuses.ROWS,
    *groups.ROWS,
    *moderation.ROWS,
    *ingest.ROWS,
    *streams.ROWS,
    *rules.ROWS,
    *counts.ROWS,
    *subscriptions.ROWS,
    *webhooks.ROWS,
    Route("GET", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True, accepts_ticket=True,
          is_for_readers=True, websocket=opening.filter_socket),
    Route("POST", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True, is_for_readers=True),
    Route("GET", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True, accepts_ticket=True,
          websocket=opening.user_socket),
    Route("POST", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True),
    Route("GET", "/v1/events", long_poll.poll_events, "stream", None, response=long_poll.PolledEvents,
          is_streaming=True, accepts_ticket=True, is_for_readers=True, limits=(POLLS,)),
    Route("POST", "/v1/events", long_poll.poll_events, "stream", None, response=long_poll.PolledEvents,
          is_streaming=True, is_for_readers=True, limits=(POLLS,)),
    *(Route(method, path, handler, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT, limits=())
      for path, handler in V1_STREAMS.items() for method in ("GET", "POST")),
    Route("GET", "/2/tweets/search/stream", v2.search_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT,
          limits=()),
    Route("GET", "/2/tweets/search/stream/rules", v2_rules.list_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("POST", "/2/tweets/search/stream/rules", v2_rules.change_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/search/stream/rules/counts", v2_rules.count_rules, "stream", None, dialect=v2.V2_DIALECT),
    *(Route("GET", f"/2/tweets/{what}/recent", handler, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT,
            limits=(TRIALS,))
      for what, handler in (("counts", v2_recent.count_recent), ("search", v2_recent.search_recent))),
    Route("GET", "/2/tweets/sample/stream", v2.sample_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT,
          limits=()),
)
# fmt: on


async def _stand_in(_: web.Request) -> web.StreamResponse:
    """Stand for a row's handler in the router of aiohttp, which only finds the row. `Dispatcher` calls the handler."""
    raise NotImplementedError


def add_routes(app: web.Application, table: tuple[Route, ...] = ROUTE_TABLE) -> None:
    """Register the routes in ``app``, with HEAD for each GET. Fill ``app[ROUTES]`` and ``app[FIXED_PATHS]``."""
    rows: dict[web.AbstractRoute, Route] = {}
    fixed_paths: dict[str, set[str]] = {row.path: set() for row in table if "{" not in row.path}
    for row in table:
        path = row.path.replace("{path}", "{path:.+}")  # with slashes
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            rows[app.router.add_route(method, path, _stand_in)] = row
            if row.path in fixed_paths:
                fixed_paths[row.path].add(method)
    app[ROUTES], app[FIXED_PATHS] = rows, fixed_paths
