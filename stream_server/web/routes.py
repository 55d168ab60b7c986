"""The URL table. What is not here is not there; what a row does not allow is refused."""

from aiohttp import web

from stream_server.web import admin, events, follows, health, sessions, statuses, stream, users
from stream_server.web.keys import ROUTES
from stream_server.web.route import ANY, OPEN, Route

IDS = frozenset({"ids"})
PIECE = frozenset({"count", "before", "after"})

TABLE: tuple[Route, ...] = (
    Route("GET", "/", health.hint, OPEN),
    Route("GET", "/healthz", health.alive, OPEN),
    Route("GET", "/readyz", health.ready, OPEN),
    Route("GET", "/metrics", health.metrics, OPEN),
    Route("POST", "/v1/users", users.sign_up, OPEN),
    Route("GET", "/v1/users", users.many, "read", IDS),
    Route("GET", "/v1/users/available", users.available, OPEN, frozenset({"login", "email"})),
    Route("GET", "/v1/users/me", users.me, "read"),
    Route("POST", "/v1/users/me/following", follows.batch, "write"),
    Route("PUT", "/v1/users/me/following/{id}", follows.follow, "write"),
    Route("DELETE", "/v1/users/me/following/{id}", follows.unfollow, "write"),
    Route("GET", "/v1/users/by-login/{login}", users.by_login, "read"),
    Route("GET", "/v1/users/{id}", users.one, "read"),
    Route("GET", "/v1/users/{id}/followers", follows.followers, "read", PIECE),
    Route("GET", "/v1/users/{id}/following", follows.following, "read", PIECE),
    Route("POST", "/v1/sessions", sessions.log_in, OPEN),
    Route("DELETE", "/v1/sessions", sessions.log_out, ANY),
    Route("POST", "/v1/statuses", statuses.post, "write"),
    Route("GET", "/v1/statuses", statuses.many, "read", IDS),
    Route("GET", "/v1/statuses/{id}", statuses.one, "read"),
    Route("DELETE", "/v1/statuses/{id}", statuses.delete, "write"),
    Route("POST", "/v1/admin/users", admin.accounts, "admin"),
    Route("GET", "/v1/stream", stream.stream, "stream", None, streams=True),
    Route("POST", "/v1/stream", stream.stream, "stream", None, streams=True),
    Route("GET", "/v1/events", events.poll, "stream", None, streams=True),
    Route("POST", "/v1/events", events.poll, "stream", None, streams=True),
)


def add(app: web.Application, table: tuple[Route, ...] = TABLE) -> None:
    """Serve the table; a GET is served as HEAD too, but for streams, whose answer would have no end to leave out."""
    rows: dict[web.AbstractRoute, Route] = {}
    for row in table:
        rows[app.router.add_route(row.method, row.path, row.handler)] = row
        if row.method == "GET" and not row.streams:
            rows[app.router.add_route("HEAD", row.path, row.handler)] = row
    app[ROUTES] = rows
