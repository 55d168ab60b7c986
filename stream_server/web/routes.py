"""The URL table. What is not here is not there; what a row does not allow is refused."""

from aiohttp import web

from stream_server.web import (
    admin,
    comments,
    events,
    favorites,
    follows,
    health,
    likes,
    openapi,
    sessions,
    statuses,
    stream,
    users,
)
from stream_server.web.keys import ROUTES
from stream_server.web.route import ANY, OPEN, Route
from stream_server.web.shapes.admin import AccountBatch, Accounts
from stream_server.web.shapes.comments import Comment, CommentPage, NewComment
from stream_server.web.shapes.events import Polled
from stream_server.web.shapes.favorites import Favorite
from stream_server.web.shapes.follows import FollowBatch, Following, Outcomes
from stream_server.web.shapes.health import Alive, Hint, OpenApi, Ready
from stream_server.web.shapes.likes import Liked, Likes
from stream_server.web.shapes.queries import Ids, Piece
from stream_server.web.shapes.sessions import NewSession, Session
from stream_server.web.shapes.statuses import NewStatus, Status, Statuses
from stream_server.web.shapes.users import Free, NewUser, OwnUser, User, UserPage, Users, Wanted

TABLE: tuple[Route, ...] = (
    Route("GET", "/", health.hint, OPEN, answer=Hint),
    Route("GET", "/healthz", health.alive, OPEN, answer=Alive),
    Route("GET", "/readyz", health.ready, OPEN, answer=Ready, refuses=(503,)),
    Route("GET", "/metrics", health.metrics, OPEN, media="text/plain"),
    Route("GET", "/openapi.json", openapi.document, OPEN, answer=OpenApi),
    Route("POST", "/v1/users", users.sign_up, OPEN, body=NewUser, answer=OwnUser, status=201, refuses=(409,)),
    Route("GET", "/v1/users", users.many, "read", Ids, answer=Users),
    Route("GET", "/v1/users/available", users.available, OPEN, Wanted, answer=Free),
    Route("GET", "/v1/users/me", users.me, "read", answer=OwnUser),
    Route("POST", "/v1/users/me/following", follows.batch, "write", body=FollowBatch, answer=Outcomes),
    Route("PUT", "/v1/users/me/following/{id}", follows.follow, "write", answer=Following),
    Route("DELETE", "/v1/users/me/following/{id}", follows.unfollow, "write", answer=Following),
    Route("GET", "/v1/users/by-login/{login}", users.by_login, "read", answer=User),
    Route("GET", "/v1/users/{id}", users.one, "read", answer=User),
    Route("GET", "/v1/users/{id}/followers", follows.followers, "read", Piece, answer=UserPage),
    Route("GET", "/v1/users/{id}/following", follows.following, "read", Piece, answer=UserPage),
    Route("POST", "/v1/sessions", sessions.log_in, OPEN, body=NewSession, answer=Session, status=201, refuses=(401,)),
    Route("DELETE", "/v1/sessions", sessions.log_out, ANY, status=204),
    Route("POST", "/v1/statuses", statuses.post, "write", body=NewStatus, answer=Status, status=201),
    Route("GET", "/v1/statuses", statuses.many, "read", Ids, answer=Statuses),
    Route("GET", "/v1/statuses/{id}", statuses.one, "read", answer=Status),
    Route("DELETE", "/v1/statuses/{id}", statuses.delete, "write", status=204),
    Route("GET", "/v1/statuses/{id}/likes", likes.likers, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/users/me/likes/{id}", likes.like, "write", answer=Liked),
    Route("DELETE", "/v1/users/me/likes/{id}", likes.unlike, "write", answer=Liked),
    Route("GET", "/v1/users/me/likes/{id}", likes.has, "read", answer=Likes),
    Route("PUT", "/v1/users/me/favorites/{id}", favorites.keep, "write", answer=Favorite),
    Route("DELETE", "/v1/users/me/favorites/{id}", favorites.drop, "write", answer=Favorite),
    Route("GET", "/v1/users/me/favorites/{id}", favorites.has, "read", answer=Favorite),
    Route("POST", "/v1/statuses/{id}/comments", comments.post, "write", body=NewComment, answer=Comment, status=201),
    Route("GET", "/v1/statuses/{id}/comments", comments.under, "read", Piece, answer=CommentPage),
    Route("GET", "/v1/comments/{id}", comments.one, "read", answer=Comment),
    Route("DELETE", "/v1/comments/{id}", comments.delete, "write", status=204),
    Route("POST", "/v1/admin/users", admin.accounts, "admin", body=AccountBatch, answer=Accounts),
    Route("GET", "/v1/stream", stream.stream, "stream", None, streams=True),
    Route("POST", "/v1/stream", stream.stream, "stream", None, streams=True),
    Route("GET", "/v1/events", events.poll, "stream", None, answer=Polled, streams=True),
    Route("POST", "/v1/events", events.poll, "stream", None, answer=Polled, streams=True),
)


def add(app: web.Application, table: tuple[Route, ...] = TABLE) -> None:
    """Serve the table; a GET is served as HEAD too, but for streams, whose answer would have no end to leave out."""
    rows: dict[web.AbstractRoute, Route] = {}
    for row in table:
        rows[app.router.add_route(row.method, row.path, row.handler)] = row
        if row.method == "GET" and not row.streams:
            rows[app.router.add_route("HEAD", row.path, row.handler)] = row
    app[ROUTES] = rows
