"""The URL table. What is not here is not there; what a row does not allow is refused."""

from aiohttp import web

from stream_server.web import (
    admin,
    blocks,
    comments,
    events,
    favorites,
    follow_requests,
    follows,
    groups,
    health,
    likes,
    lists,
    mutes,
    notifications,
    openapi,
    relations,
    reports,
    rules,
    sessions,
    statuses,
    stream,
    suspensions,
    talks,
    tickets,
    timelines,
    users,
)
from stream_server.web.dialects import v1, v2, v2_rules
from stream_server.web.keys import ROUTES
from stream_server.web.route import ANY, OPEN, Route, Trips
from stream_server.web.shapes.admin import AccountBatch, Accounts
from stream_server.web.shapes.comments import Comment, CommentPage, NewComment
from stream_server.web.shapes.events import Polled
from stream_server.web.shapes.favorites import Favorite
from stream_server.web.shapes.follows import FollowBatch, Following, OnList, Outcomes
from stream_server.web.shapes.groups import Group, GroupChanges, GroupPage, NewGroup
from stream_server.web.shapes.health import Alive, Hint, OpenApi, Ready
from stream_server.web.shapes.likes import Liked, Likes
from stream_server.web.shapes.lists import List, ListChanges, ListPage, NewList
from stream_server.web.shapes.notifications import NotificationPage, ReadMark, Unread
from stream_server.web.shapes.queries import Ids, Paged, Piece
from stream_server.web.shapes.relations import Answered, Blocking, Muting, Relationship
from stream_server.web.shapes.reports import Case, CasePage, Cases, Decision, NewReport, Report, Suspension
from stream_server.web.shapes.rules import (
    DeletedRules,
    Explained,
    MadeRules,
    NewRules,
    OldRules,
    Previewed,
    Question,
    RuleIds,
    Rules,
    Trial,
)
from stream_server.web.shapes.sessions import NewSession, Session
from stream_server.web.shapes.statuses import NewStatus, Status, Statuses, StatusPage
from stream_server.web.shapes.talks import Message, MessagePage, NewMessage, NewTalk, Talk, TalkMark, TalkPage, TalkRead
from stream_server.web.shapes.tickets import Ticket
from stream_server.web.shapes.timelines import Home
from stream_server.web.shapes.users import Free, NewUser, OwnUser, User, UserChanges, UserPage, Users, Wanted

HASHED = Trips(2, "one before the password is hashed, which costs more than all of Redis, and one after it")
SPREAD = Trips(3, "the write; all timelines in one pipeline; the job that was for them is done")
FOLLOWED = Trips(3, "the write; all timelines in one pipeline; the jobs that were for them are done")
EXPLAINED = Trips(2, "the status as one may see it; its author as at posting, which the log knows")
DERIVED = Trips(2, "ids of a timeline, which may be on another shard; what may be seen of them")
RANKED = Trips(3, DERIVED.why + "; by importance, their figures between the two")

TABLE: tuple[Route, ...] = (
    Route("GET", "/", health.hint, OPEN, answer=Hint),
    Route("GET", "/healthz", health.alive, OPEN, answer=Alive),
    Route("GET", "/readyz", health.ready, OPEN, answer=Ready, refuses=(503,)),
    Route("GET", "/metrics", health.metrics, OPEN, media="text/plain"),
    Route("GET", "/openapi.json", openapi.document, OPEN, answer=OpenApi),
    Route(
        "POST", "/v1/users", users.sign_up, OPEN, body=NewUser, answer=OwnUser, status=201, refuses=(409,), trips=HASHED
    ),
    Route("GET", "/v1/users", users.many, "read", Ids, answer=Users),
    Route("GET", "/v1/users/available", users.available, OPEN, Wanted, answer=Free),
    Route("GET", "/v1/users/me", users.me, "read", answer=OwnUser),
    Route("PATCH", "/v1/users/me", users.update, "write", body=UserChanges, answer=OwnUser),
    Route("POST", "/v1/users/me/following", follows.batch, "write", body=FollowBatch, answer=Outcomes, trips=FOLLOWED),
    Route(
        "PUT", "/v1/users/me/following/{id}", follows.follow, "write", OnList, answer=Following, refuses=(413,),
        trips=FOLLOWED,
    ),
    Route("DELETE", "/v1/users/me/following/{id}", follows.unfollow, "write", OnList, answer=Following, trips=FOLLOWED),
    Route("GET", "/v1/users/me/requests", follow_requests.received, "read", Piece, answer=UserPage),
    Route("GET", "/v1/users/me/requests/sent", follow_requests.sent, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/users/me/requests/{id}", follow_requests.approve, "write", answer=Answered, trips=FOLLOWED),
    Route("DELETE", "/v1/users/me/requests/{id}", follow_requests.refuse, "write", answer=Answered),
    Route("GET", "/v1/users/me/blocks", blocks.listed, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/users/me/blocks/{id}", blocks.block, "write", answer=Blocking, trips=FOLLOWED),
    Route("DELETE", "/v1/users/me/blocks/{id}", blocks.unblock, "write", answer=Blocking),
    Route("GET", "/v1/users/me/mutes", mutes.listed, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/users/me/mutes/{id}", mutes.mute, "write", answer=Muting),
    Route("DELETE", "/v1/users/me/mutes/{id}", mutes.unmute, "write", answer=Muting),
    Route("GET", "/v1/users/by-login/{login}", users.by_login, "read", answer=User),
    Route("GET", "/v1/users/{id}", users.one, "read", answer=User),
    Route("GET", "/v1/users/{id}/followers", follows.followers, "read", Piece, answer=UserPage),
    Route("GET", "/v1/users/{id}/following", follows.following, "read", Piece, answer=UserPage),
    Route("GET", "/v1/users/{id}/relationship/{other}", relations.relationship, "read", answer=Relationship),
    Route("GET", "/v1/users/{id}/common-following/{other}", relations.common_following, "read", Piece, answer=UserPage),
    Route("GET", "/v1/users/{id}/common-followers/{other}", relations.common_followers, "read", Piece, answer=UserPage),
    Route(
        "POST", "/v1/sessions", sessions.log_in, OPEN, body=NewSession, answer=Session, status=201, refuses=(401, 403),
        trips=HASHED,
    ),
    Route("DELETE", "/v1/sessions", sessions.log_out, ANY, status=204),
    Route("POST", "/v1/statuses", statuses.post, "write", body=NewStatus, answer=Status, status=201, trips=SPREAD),
    Route("GET", "/v1/statuses", statuses.many, "read", Ids, answer=Statuses),
    Route("GET", "/v1/statuses/{id}", statuses.one, "read", answer=Status),
    Route("DELETE", "/v1/statuses/{id}", statuses.delete, "write", status=204, trips=SPREAD),
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
    Route("GET", "/v1/notifications", notifications.page, "read", Piece, answer=NotificationPage),
    Route("PUT", "/v1/notifications/read", notifications.mark_read, "write", body=ReadMark, answer=Unread),
    Route("POST", "/v1/reports", reports.report, "write", body=NewReport, answer=Report, status=201, also=(200,)),
    Route("GET", "/v1/reports/{id}", reports.one, "read", answer=Report),
    Route("GET", "/v1/admin/reports", reports.cases, "admin", Cases, answer=CasePage),
    Route("PATCH", "/v1/admin/reports/{id}", reports.decide, "admin", body=Decision, answer=Case, trips=SPREAD),
    Route("GET", "/v1/admin/suspensions", suspensions.suspended, "admin", Piece, answer=UserPage),
    Route("PUT", "/v1/admin/suspensions/{id}", suspensions.suspend, "admin", answer=Suspension),
    Route("DELETE", "/v1/admin/suspensions/{id}", suspensions.reinstate, "admin", answer=Suspension),
    Route("GET", "/v1/users/{id}/lists", lists.of_user, "read", Piece, answer=ListPage),
    Route("GET", "/v1/users/{id}/listed", lists.listed, "read", Piece, answer=ListPage),
    Route("POST", "/v1/lists", lists.create, "write", body=NewList, answer=List, status=201, refuses=(413,)),
    Route("GET", "/v1/lists/{id}", lists.one, "read", answer=List),
    Route("PATCH", "/v1/lists/{id}", lists.update, "write", body=ListChanges, answer=List),
    Route("DELETE", "/v1/lists/{id}", lists.delete, "write", status=204),
    Route("GET", "/v1/lists/{id}/members", lists.members, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/lists/{id}/members/{uid}", lists.add, "write", answer=List, refuses=(413,), trips=FOLLOWED),
    Route("DELETE", "/v1/lists/{id}/members/{uid}", lists.remove, "write", answer=List, trips=FOLLOWED),
    Route("GET", "/v1/users/me/groups", groups.mine, "read", Piece, answer=GroupPage),
    Route("POST", "/v1/groups", groups.create, "write", body=NewGroup, answer=Group, status=201, refuses=(413,)),
    Route("GET", "/v1/groups/{id}", groups.one, "read", answer=Group),
    Route("PATCH", "/v1/groups/{id}", groups.update, "write", body=GroupChanges, answer=Group),
    Route("DELETE", "/v1/groups/{id}", groups.delete, "write", status=204),
    Route("GET", "/v1/groups/{id}/members", groups.members, "read", Piece, answer=UserPage),
    Route("PUT", "/v1/groups/{id}/members/{uid}", groups.add, "write", answer=Group, refuses=(413,), me="uid"),
    Route("DELETE", "/v1/groups/{id}/members/{uid}", groups.remove, "write", answer=Group, me="uid"),
    Route("POST", "/v1/talks", talks.begin, "write", body=NewTalk, answer=Talk, status=201, also=(200,)),
    Route("GET", "/v1/talks", talks.mine, "read", Piece, answer=TalkPage),
    Route("GET", "/v1/talks/{id}", talks.one, "read", answer=Talk),
    Route("POST", "/v1/talks/{id}/messages", talks.send, "write", body=NewMessage, answer=Message, status=201),
    Route("GET", "/v1/talks/{id}/messages", talks.messages, "read", Piece, answer=MessagePage),
    Route("GET", "/v1/talks/{id}/messages/{message}", talks.message, "read", answer=Message),
    Route("PUT", "/v1/talks/{id}/read", talks.read, "write", body=TalkMark, answer=TalkRead),
    Route("GET", "/v1/timelines/home", timelines.home, "read", Home, answer=StatusPage, trips=RANKED),
    Route("GET", "/v1/users/me/mentions", timelines.mentions, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/users/me/favorites", timelines.favorites, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/users/{id}/statuses", timelines.profile, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/users/{id}/likes", timelines.liked, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/statuses/{id}/reposts", timelines.reposts, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/statuses/{id}/replies", timelines.replies, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/statuses/{id}/conversation", timelines.conversation, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/tags/{tag}/statuses", timelines.tag, "read", Paged, answer=StatusPage),
    Route("GET", "/v1/lists/{id}/statuses", timelines.of_list, "read", Paged, answer=StatusPage, trips=DERIVED),
    Route("GET", "/v1/groups/{id}/statuses", timelines.of_group, "read", Paged, answer=StatusPage),
    Route("POST", "/v1/admin/users", admin.accounts, "admin", body=AccountBatch, answer=Accounts),
    Route("POST", "/v1/streams/ticket", tickets.issue, "stream", answer=Ticket, status=201, writes=False),
    Route("GET", "/v1/rules", rules.saved, "stream", RuleIds, answer=Rules),
    Route(
        "POST", "/v1/rules", rules.add, "stream", body=NewRules, answer=MadeRules, status=201, also=(200,),
        refuses=(409, 413),
    ),
    Route("DELETE", "/v1/rules/{id}", rules.delete, "stream", status=204),
    Route("POST", "/v1/rules/delete", rules.delete_many, "stream", body=OldRules, answer=DeletedRules),
    Route(
        "POST", "/v1/rules/explain", rules.explain, "stream", body=Question, answer=Explained, writes=False,
        trips=EXPLAINED,
    ),
    Route(
        "POST", "/v1/rules/preview", rules.preview, "stream", body=Trial, answer=Previewed, streams=True, writes=False
    ),
    Route("GET", "/v1/stream", stream.stream, "stream", None, streams=True, ticket=True),
    Route("POST", "/v1/stream", stream.stream, "stream", None, streams=True),
    Route("GET", "/v1/stream/user", stream.own, "stream", None, streams=True, ticket=True),
    Route("POST", "/v1/stream/user", stream.own, "stream", None, streams=True),
    Route("GET", "/v1/events", events.poll, "stream", None, answer=Polled, streams=True, ticket=True),
    Route("POST", "/v1/events", events.poll, "stream", None, answer=Polled, streams=True),
    Route("GET", "/1.1/statuses/filter.json", v1.filtered, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("POST", "/1.1/statuses/filter.json", v1.filtered, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("GET", "/1.1/statuses/sample.json", v1.sample, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("POST", "/1.1/statuses/sample.json", v1.sample, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("GET", "/1.1/statuses/firehose.json", v1.firehose, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("POST", "/1.1/statuses/firehose.json", v1.firehose, "stream", None, streams=True, dialect=v1.DIALECT),
    Route("GET", "/2/tweets/search/stream", v2.search, "stream", None, streams=True, dialect=v2.DIALECT),
    Route("GET", "/2/tweets/search/stream/rules", v2_rules.listed, "stream", None, dialect=v2.DIALECT),
    Route("POST", "/2/tweets/search/stream/rules", v2_rules.change, "stream", None, dialect=v2.DIALECT),
    Route("GET", "/2/tweets/search/stream/rules/counts", v2_rules.counted, "stream", None, dialect=v2.DIALECT),
    Route("GET", "/2/tweets/sample/stream", v2.sample, "stream", None, streams=True, dialect=v2.DIALECT),
)


def add(app: web.Application, table: tuple[Route, ...] = TABLE) -> None:
    """Serve the table; a GET is served as HEAD too, but for streams, whose answer would have no end to leave out."""
    rows: dict[web.AbstractRoute, Route] = {}
    for row in table:
        rows[app.router.add_route(row.method, row.path, row.handler)] = row
        if row.method == "GET" and not row.streams:
            rows[app.router.add_route("HEAD", row.path, row.handler)] = row
    app[ROUTES] = rows
