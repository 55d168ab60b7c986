"""The URL table. What is not here is not there; what a row does not allow is refused."""

from aiohttp import web

from stream_server.web.api import (
    admin,
    blocks,
    comments,
    favorites,
    follow_requests,
    follows,
    groups,
    likes,
    lists,
    mutes,
    notifications,
    relations,
    reports,
    rules,
    server,
    sessions,
    statuses,
    suspensions,
    talks,
    tickets,
    timelines,
    users,
)
from stream_server.web.api.admin_shapes import AccountResults, NewAccounts
from stream_server.web.api.comments_shapes import Comment, CommentPage, NewComment
from stream_server.web.api.favorites_shapes import FavoriteState
from stream_server.web.api.follows_shapes import FollowBatch, FollowQuery, FollowResults, FollowState
from stream_server.web.api.groups_shapes import Group, GroupChanges, GroupPage, NewGroup
from stream_server.web.api.likes_shapes import LikeCount, LikeState
from stream_server.web.api.lists_shapes import List, ListChanges, ListPage, NewList
from stream_server.web.api.notifications_shapes import NotificationPage, ReadMark, UnreadCount
from stream_server.web.api.relations_shapes import BlockState, FollowRequestState, MuteState, RelationshipState
from stream_server.web.api.reports_shapes import (
    AdminReport,
    AdminReportPage,
    Decision,
    NewReport,
    Report,
    ReportsQuery,
    SuspensionState,
)
from stream_server.web.api.rules_shapes import (
    CreatedRules,
    DeletedRules,
    ExplainBody,
    NewRules,
    PreviewBody,
    RuleDeletion,
    RuleExplanation,
    RuleList,
    RulePreviewResult,
    RulesQuery,
)
from stream_server.web.api.server_shapes import LivenessAnswer, OpenApiDocument, ReadinessAnswer, ServerIndex
from stream_server.web.api.sessions_shapes import NewSession, Session
from stream_server.web.api.statuses_shapes import NewStatus, Status, StatusesById, StatusPage
from stream_server.web.api.talks_shapes import (
    NewTalk,
    NewTalkMessage,
    Talk,
    TalkMessage,
    TalkMessagePage,
    TalkPage,
    TalkReadMark,
    TalkReadState,
)
from stream_server.web.api.tickets_shapes import Ticket
from stream_server.web.api.timelines_shapes import HomeTimelineQuery
from stream_server.web.api.users_shapes import (
    Availability,
    AvailabilityQuery,
    NewUser,
    OwnUser,
    User,
    UserChanges,
    UserPage,
    UsersById,
)
from stream_server.web.dialects import v1, v2, v2_rules
from stream_server.web.http.app_keys import ROUTES
from stream_server.web.http.paging_shapes import IdsQuery, NumberedPageQuery, PageQuery
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, RedisRoundTrips, Route
from stream_server.web.streaming import long_poll, stream
from stream_server.web.streaming.long_poll import PolledEvents

PASSWORD_TRIPS = RedisRoundTrips(
    2, "one before the password is hashed, which costs more than all of Redis, and one after it"
)
FANOUT_TRIPS = RedisRoundTrips(3, "the write; all timelines in one pipeline; the job that was for them is done")
FOLLOW_TRIPS = RedisRoundTrips(3, "the write; all timelines in one pipeline; the jobs that were for them are done")
EXPLAIN_TRIPS = RedisRoundTrips(2, "the status as one may see it; its author as at posting, which the log knows")
TIMELINE_TRIPS = RedisRoundTrips(2, "ids of a timeline, which may be on another shard; what may be seen of them")
RANKED_TIMELINE_TRIPS = RedisRoundTrips(3, TIMELINE_TRIPS.reason + "; by importance, their figures between the two")

ROUTE_TABLE: tuple[Route, ...] = (
    Route("GET", "/", server.index, NO_TOKEN, response=ServerIndex),
    Route("GET", "/healthz", server.liveness, NO_TOKEN, response=LivenessAnswer),
    Route("GET", "/readyz", server.readiness, NO_TOKEN, response=ReadinessAnswer, extra_error_statuses=(503,)),
    Route("GET", "/metrics", server.metrics, NO_TOKEN, media_type="text/plain"),
    Route("GET", "/openapi.json", server.openapi_document, NO_TOKEN, response=OpenApiDocument),
    Route(
        "POST",
        "/v1/users",
        users.sign_up,
        NO_TOKEN,
        body=NewUser,
        response=OwnUser,
        status=201,
        extra_error_statuses=(409,),
        round_trips=PASSWORD_TRIPS,
    ),
    Route("GET", "/v1/users", users.get_many, "read", IdsQuery, response=UsersById),
    Route("GET", "/v1/users/available", users.check_available, NO_TOKEN, AvailabilityQuery, response=Availability),
    Route("GET", "/v1/users/me", users.get_me, "read", response=OwnUser),
    Route("PATCH", "/v1/users/me", users.update, "write", body=UserChanges, response=OwnUser),
    Route(
        "POST",
        "/v1/users/me/following",
        follows.follow_many,
        "write",
        body=FollowBatch,
        response=FollowResults,
        round_trips=FOLLOW_TRIPS,
    ),
    Route(
        "PUT",
        "/v1/users/me/following/{id}",
        follows.follow,
        "write",
        FollowQuery,
        response=FollowState,
        extra_error_statuses=(413,),
        round_trips=FOLLOW_TRIPS,
    ),
    Route(
        "DELETE",
        "/v1/users/me/following/{id}",
        follows.unfollow,
        "write",
        FollowQuery,
        response=FollowState,
        round_trips=FOLLOW_TRIPS,
    ),
    Route("GET", "/v1/users/me/requests", follow_requests.list_received_requests, "read", PageQuery, response=UserPage),
    Route(
        "GET", "/v1/users/me/requests/sent", follow_requests.list_sent_requests, "read", PageQuery, response=UserPage
    ),
    Route(
        "PUT",
        "/v1/users/me/requests/{id}",
        follow_requests.approve_request,
        "write",
        response=FollowRequestState,
        round_trips=FOLLOW_TRIPS,
    ),
    Route("DELETE", "/v1/users/me/requests/{id}", follow_requests.refuse_request, "write", response=FollowRequestState),
    Route("GET", "/v1/users/me/blocks", blocks.list_blocks, "read", PageQuery, response=UserPage),
    Route("PUT", "/v1/users/me/blocks/{id}", blocks.block, "write", response=BlockState, round_trips=FOLLOW_TRIPS),
    Route("DELETE", "/v1/users/me/blocks/{id}", blocks.unblock, "write", response=BlockState),
    Route("GET", "/v1/users/me/mutes", mutes.list_mutes, "read", PageQuery, response=UserPage),
    Route("PUT", "/v1/users/me/mutes/{id}", mutes.mute, "write", response=MuteState),
    Route("DELETE", "/v1/users/me/mutes/{id}", mutes.unmute, "write", response=MuteState),
    Route("GET", "/v1/users/by-login/{login}", users.get_by_login, "read", response=User),
    Route("GET", "/v1/users/{id}", users.get, "read", response=User),
    Route("GET", "/v1/users/{id}/followers", follows.list_followers, "read", PageQuery, response=UserPage),
    Route("GET", "/v1/users/{id}/following", follows.list_following, "read", PageQuery, response=UserPage),
    Route("GET", "/v1/users/{id}/relationship/{other}", relations.get_relationship, "read", response=RelationshipState),
    Route(
        "GET",
        "/v1/users/{id}/common-following/{other}",
        relations.list_common_following,
        "read",
        PageQuery,
        response=UserPage,
    ),
    Route(
        "GET",
        "/v1/users/{id}/common-followers/{other}",
        relations.list_common_followers,
        "read",
        PageQuery,
        response=UserPage,
    ),
    Route(
        "POST",
        "/v1/sessions",
        sessions.log_in,
        NO_TOKEN,
        body=NewSession,
        response=Session,
        status=201,
        extra_error_statuses=(401, 403),
        round_trips=PASSWORD_TRIPS,
    ),
    Route("DELETE", "/v1/sessions", sessions.log_out, ANY_TOKEN, status=204),
    Route(
        "POST",
        "/v1/statuses",
        statuses.post,
        "write",
        body=NewStatus,
        response=Status,
        status=201,
        round_trips=FANOUT_TRIPS,
    ),
    Route("GET", "/v1/statuses", statuses.get_many, "read", IdsQuery, response=StatusesById),
    Route("GET", "/v1/statuses/{id}", statuses.get, "read", response=Status),
    Route("DELETE", "/v1/statuses/{id}", statuses.delete, "write", status=204, round_trips=FANOUT_TRIPS),
    Route("GET", "/v1/statuses/{id}/likes", likes.list_likers, "read", PageQuery, response=UserPage),
    Route("PUT", "/v1/users/me/likes/{id}", likes.like, "write", response=LikeCount),
    Route("DELETE", "/v1/users/me/likes/{id}", likes.unlike, "write", response=LikeCount),
    Route("GET", "/v1/users/me/likes/{id}", likes.get_like, "read", response=LikeState),
    Route("PUT", "/v1/users/me/favorites/{id}", favorites.add_favorite, "write", response=FavoriteState),
    Route("DELETE", "/v1/users/me/favorites/{id}", favorites.remove_favorite, "write", response=FavoriteState),
    Route("GET", "/v1/users/me/favorites/{id}", favorites.get_favorite, "read", response=FavoriteState),
    Route("POST", "/v1/statuses/{id}/comments", comments.post, "write", body=NewComment, response=Comment, status=201),
    Route("GET", "/v1/statuses/{id}/comments", comments.list_under_status, "read", PageQuery, response=CommentPage),
    Route("GET", "/v1/comments/{id}", comments.get, "read", response=Comment),
    Route("DELETE", "/v1/comments/{id}", comments.delete, "write", status=204),
    Route("GET", "/v1/notifications", notifications.list_notifications, "read", PageQuery, response=NotificationPage),
    Route("PUT", "/v1/notifications/read", notifications.mark_read, "write", body=ReadMark, response=UnreadCount),
    Route(
        "POST",
        "/v1/reports",
        reports.create,
        "write",
        body=NewReport,
        response=Report,
        status=201,
        other_statuses=(200,),
    ),
    Route("GET", "/v1/reports/{id}", reports.get, "read", response=Report),
    Route("GET", "/v1/admin/reports", reports.list_reports, "admin", ReportsQuery, response=AdminReportPage),
    Route(
        "PATCH",
        "/v1/admin/reports/{id}",
        reports.decide,
        "admin",
        body=Decision,
        response=AdminReport,
        round_trips=FANOUT_TRIPS,
    ),
    Route("GET", "/v1/admin/suspensions", suspensions.list_suspended, "admin", PageQuery, response=UserPage),
    Route("PUT", "/v1/admin/suspensions/{id}", suspensions.suspend, "admin", response=SuspensionState),
    Route("DELETE", "/v1/admin/suspensions/{id}", suspensions.reinstate, "admin", response=SuspensionState),
    Route("GET", "/v1/users/{id}/lists", lists.list_owned, "read", PageQuery, response=ListPage),
    Route("GET", "/v1/users/{id}/listed", lists.list_memberships, "read", PageQuery, response=ListPage),
    Route(
        "POST", "/v1/lists", lists.create, "write", body=NewList, response=List, status=201, extra_error_statuses=(413,)
    ),
    Route("GET", "/v1/lists/{id}", lists.get, "read", response=List),
    Route("PATCH", "/v1/lists/{id}", lists.update, "write", body=ListChanges, response=List),
    Route("DELETE", "/v1/lists/{id}", lists.delete, "write", status=204),
    Route("GET", "/v1/lists/{id}/members", lists.list_members, "read", PageQuery, response=UserPage),
    Route(
        "PUT",
        "/v1/lists/{id}/members/{uid}",
        lists.add_member,
        "write",
        response=List,
        extra_error_statuses=(413,),
        round_trips=FOLLOW_TRIPS,
    ),
    Route(
        "DELETE", "/v1/lists/{id}/members/{uid}", lists.remove_member, "write", response=List, round_trips=FOLLOW_TRIPS
    ),
    Route("GET", "/v1/users/me/groups", groups.list_own, "read", PageQuery, response=GroupPage),
    Route(
        "POST",
        "/v1/groups",
        groups.create,
        "write",
        body=NewGroup,
        response=Group,
        status=201,
        extra_error_statuses=(413,),
    ),
    Route("GET", "/v1/groups/{id}", groups.get, "read", response=Group),
    Route("PATCH", "/v1/groups/{id}", groups.update, "write", body=GroupChanges, response=Group),
    Route("DELETE", "/v1/groups/{id}", groups.delete, "write", status=204),
    Route("GET", "/v1/groups/{id}/members", groups.list_members, "read", PageQuery, response=UserPage),
    Route(
        "PUT",
        "/v1/groups/{id}/members/{uid}",
        groups.add_member,
        "write",
        response=Group,
        extra_error_statuses=(413,),
        me_parameter="uid",
    ),
    Route("DELETE", "/v1/groups/{id}/members/{uid}", groups.remove_member, "write", response=Group, me_parameter="uid"),
    Route(
        "POST", "/v1/talks", talks.open_talk, "write", body=NewTalk, response=Talk, status=201, other_statuses=(200,)
    ),
    Route("GET", "/v1/talks", talks.list_own, "read", PageQuery, response=TalkPage),
    Route("GET", "/v1/talks/{id}", talks.get, "read", response=Talk),
    Route(
        "POST",
        "/v1/talks/{id}/messages",
        talks.send_message,
        "write",
        body=NewTalkMessage,
        response=TalkMessage,
        status=201,
    ),
    Route("GET", "/v1/talks/{id}/messages", talks.list_messages, "read", PageQuery, response=TalkMessagePage),
    Route("GET", "/v1/talks/{id}/messages/{message}", talks.get_message, "read", response=TalkMessage),
    Route("PUT", "/v1/talks/{id}/read", talks.mark_read, "write", body=TalkReadMark, response=TalkReadState),
    Route(
        "GET",
        "/v1/timelines/home",
        timelines.home_timeline,
        "read",
        HomeTimelineQuery,
        response=StatusPage,
        round_trips=RANKED_TIMELINE_TRIPS,
    ),
    Route("GET", "/v1/users/me/mentions", timelines.mention_timeline, "read", NumberedPageQuery, response=StatusPage),
    Route("GET", "/v1/users/me/favorites", timelines.favorite_statuses, "read", NumberedPageQuery, response=StatusPage),
    Route("GET", "/v1/users/{id}/statuses", timelines.profile_timeline, "read", NumberedPageQuery, response=StatusPage),
    Route("GET", "/v1/users/{id}/likes", timelines.liked_statuses, "read", NumberedPageQuery, response=StatusPage),
    Route("GET", "/v1/statuses/{id}/reposts", timelines.list_reposts, "read", NumberedPageQuery, response=StatusPage),
    Route("GET", "/v1/statuses/{id}/replies", timelines.list_replies, "read", NumberedPageQuery, response=StatusPage),
    Route(
        "GET",
        "/v1/statuses/{id}/conversation",
        timelines.list_conversation,
        "read",
        NumberedPageQuery,
        response=StatusPage,
    ),
    Route("GET", "/v1/tags/{tag}/statuses", timelines.hashtag_timeline, "read", NumberedPageQuery, response=StatusPage),
    Route(
        "GET",
        "/v1/lists/{id}/statuses",
        timelines.list_timeline,
        "read",
        NumberedPageQuery,
        response=StatusPage,
        round_trips=TIMELINE_TRIPS,
    ),
    Route("GET", "/v1/groups/{id}/statuses", timelines.group_timeline, "read", NumberedPageQuery, response=StatusPage),
    Route("POST", "/v1/admin/users", admin.create_accounts, "admin", body=NewAccounts, response=AccountResults),
    Route("POST", "/v1/streams/ticket", tickets.issue_ticket, "stream", response=Ticket, status=201, is_write=False),
    Route("GET", "/v1/rules", rules.list_saved, "stream", RulesQuery, response=RuleList),
    Route(
        "POST",
        "/v1/rules",
        rules.add,
        "stream",
        body=NewRules,
        response=CreatedRules,
        status=201,
        other_statuses=(200,),
        extra_error_statuses=(409, 413),
    ),
    Route("DELETE", "/v1/rules/{id}", rules.delete, "stream", status=204),
    Route("POST", "/v1/rules/delete", rules.delete_many, "stream", body=RuleDeletion, response=DeletedRules),
    Route(
        "POST",
        "/v1/rules/explain",
        rules.explain,
        "stream",
        body=ExplainBody,
        response=RuleExplanation,
        is_write=False,
        round_trips=EXPLAIN_TRIPS,
    ),
    Route(
        "POST",
        "/v1/rules/preview",
        rules.preview,
        "stream",
        body=PreviewBody,
        response=RulePreviewResult,
        is_streaming=True,
        is_write=False,
    ),
    Route("GET", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True, accepts_ticket=True),
    Route("POST", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True),
    Route("GET", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True, accepts_ticket=True),
    Route("POST", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True),
    Route(
        "GET",
        "/v1/events",
        long_poll.poll_events,
        "stream",
        None,
        response=PolledEvents,
        is_streaming=True,
        accepts_ticket=True,
    ),
    Route("POST", "/v1/events", long_poll.poll_events, "stream", None, response=PolledEvents, is_streaming=True),
    Route(
        "GET", "/1.1/statuses/filter.json", v1.filter_stream, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT
    ),
    Route(
        "POST", "/1.1/statuses/filter.json", v1.filter_stream, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT
    ),
    Route(
        "GET", "/1.1/statuses/sample.json", v1.sample_stream, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT
    ),
    Route(
        "POST", "/1.1/statuses/sample.json", v1.sample_stream, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT
    ),
    Route(
        "GET",
        "/1.1/statuses/firehose.json",
        v1.firehose_stream,
        "stream",
        None,
        is_streaming=True,
        dialect=v1.V1_DIALECT,
    ),
    Route(
        "POST",
        "/1.1/statuses/firehose.json",
        v1.firehose_stream,
        "stream",
        None,
        is_streaming=True,
        dialect=v1.V1_DIALECT,
    ),
    Route("GET", "/2/tweets/search/stream", v2.search_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/search/stream/rules", v2_rules.list_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("POST", "/2/tweets/search/stream/rules", v2_rules.change_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/search/stream/rules/counts", v2_rules.count_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/sample/stream", v2.sample_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT),
)


def add_routes(app: web.Application, table: tuple[Route, ...] = ROUTE_TABLE) -> None:
    """Serve the table; a GET is served as HEAD too, but for streams, whose answer would have no end to leave out."""
    rows: dict[web.AbstractRoute, Route] = {}
    for row in table:
        rows[app.router.add_route(row.method, row.path, row.handler)] = row
        if row.method == "GET" and not row.is_streaming:
            rows[app.router.add_route("HEAD", row.path, row.handler)] = row
    app[ROUTES] = rows
