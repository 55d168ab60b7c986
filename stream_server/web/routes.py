"""The URL table: all routes of the server. Other paths get 404, and requests that a row does not allow are refused."""

from aiohttp import web

from stream_server.monitoring.host_state import HostState
from stream_server.web.api import (
    audit,
    blocks,
    comments,
    console,
    follows,
    groups,
    ingest,
    ingest_lines,
    likes,
    lists,
    notifications,
    operations,
    relations,
    reports,
    rules,
    server,
    sessions,
    statuses,
    streams,
    suspensions,
    talks,
    tickets,
    timelines,
    trends,
    users,
)
from stream_server.web.dialects import v1, v2, v2_rules
from stream_server.web.http.app_keys import FIXED_PATHS, ROUTES
from stream_server.web.http.paging import IdsQuery, NumberedPageQuery, PageAnswer, PageQuery
from stream_server.web.limits.rate_limit import (
    FILES,
    FOLLOWS,
    LOOKUPS,
    POLLS,
    REPORTS,
    STATUSES,
    TALKS,
    TICKETS,
    TRIALS,
    WRITE_BYTES,
    WRITES,
)
from stream_server.web.route import ANY_TOKEN, NO_TOKEN, ONE_ROUND_TRIP, Handler, RedisRoundTrips, Route
from stream_server.web.streaming import long_poll, stream
from stream_server.web.websocket import opening

PASSWORD_TRIPS = RedisRoundTrips(2, "one before and one after hashing the password, which costs more than Redis")
FANOUT_TRIPS = RedisRoundTrips(2, "the write; its timelines, if they are many, and the end of their job")
FOLLOW_TRIPS = RedisRoundTrips(3, "the write; if it leaves jobs, all timelines in one pipeline; completing the jobs")
EXPLAIN_TRIPS = RedisRoundTrips(2, "the status as the caller may see it; its author as of posting, from the log")
TIMELINE_TRIPS = RedisRoundTrips(2, "the ids of a timeline, possibly on another shard; the visible statuses of them")
RANKED_TIMELINE_TRIPS = RedisRoundTrips(3, TIMELINE_TRIPS.reason + "; by importance, also the counts for ranking")

NO_ROUND_TRIP = RedisRoundTrips(0)
STREAM_TRIPS = RedisRoundTrips(3, "none for a stream of this process; else two look-ups and the command to the other")

TEXT_LIMITS = (WRITES, STATUSES, WRITE_BYTES)
"""Limits of the routes that write a text: these fill the log, in which other users' events wait to be read."""

CONTACT_LIMITS = (WRITES, WRITE_BYTES, FOLLOWS)
"""Limits of the routes that put a user into a set of another: these fill timelines, or ask the user."""

V1_STREAMS = {
    "/1.1/statuses/filter.json": v1.filter_stream,
    "/1.1/statuses/sample.json": v1.sample_stream,
    "/1.1/statuses/firehose.json": v1.firehose_stream,
}


def _page(path: str, handler: Handler, response: type[PageAnswer]) -> Route:
    """Return a row of the URL table for a GET route that answers with one page of a list."""
    return Route("GET", path, handler, "read", PageQuery, response=response)


def _timeline(path: str, handler: Handler, round_trips: RedisRoundTrips = ONE_ROUND_TRIP) -> Route:
    """Return a row of the URL table for a GET route that answers with one page of a timeline's statuses."""
    return Route(
        "GET", path, handler, "read", NumberedPageQuery, response=timelines.StatusPage, round_trips=round_trips
    )


# A row takes one or two lines, so that the table can be read at a glance.
# fmt: off
ROUTE_TABLE: tuple[Route, ...] = (
    Route("GET", "/", console.index, NO_TOKEN, response=server.ServerIndex),
    Route("GET", "/docs", console.docs, NO_TOKEN, media_type="text/html", limits=(FILES,)),
    Route("GET", "/console/{file}", console.file, NO_TOKEN, media_type="text/javascript", limits=(FILES,)),
    Route("GET", "/console/{folder}/{file}", console.folder_file, NO_TOKEN, media_type="text/javascript",
          limits=(FILES,)),
    Route("GET", "/healthz", server.liveness, NO_TOKEN, response=server.LivenessAnswer, limits=()),
    Route("GET", "/readyz", server.readiness, NO_TOKEN, response=server.ReadinessAnswer, extra_error_statuses=(503,),
          limits=()),
    Route("GET", "/metrics", server.metrics, NO_TOKEN, media_type="text/plain", extra_error_statuses=(401, 403),
          limits=()),
    Route("GET", "/openapi.json", server.openapi_document, NO_TOKEN, response=server.OpenApiDocument),
    Route("POST", "/v1/users", users.sign_up, NO_TOKEN, body=users.NewUser, response=users.OwnUser, status=201,
          extra_error_statuses=(409,), round_trips=PASSWORD_TRIPS),
    Route("GET", "/v1/users", users.get_many, "read", IdsQuery, response=users.UsersById),
    Route("GET", "/v1/users/available", users.check_available, NO_TOKEN, users.AvailabilityQuery,
          response=users.Availability, limits=(LOOKUPS,)),
    Route("GET", "/v1/users/me", users.get_me, "read", response=users.OwnUser),
    Route("PATCH", "/v1/users/me", users.update, "write", body=users.UserChanges, response=users.OwnUser),
    Route("POST", "/v1/users/me/following", follows.follow_many, "write", body=follows.FollowBatch,
          response=follows.FollowResults, round_trips=FOLLOW_TRIPS),
    Route("PUT", "/v1/users/me/following/{id}", follows.follow, "write", follows.FollowQuery,
          response=follows.FollowState, extra_error_statuses=(413,), round_trips=FOLLOW_TRIPS,
          limits=CONTACT_LIMITS),
    Route("DELETE", "/v1/users/me/following/{id}", follows.unfollow, "write", follows.FollowQuery,
          response=follows.FollowState, round_trips=FOLLOW_TRIPS),
    _page("/v1/users/me/requests", follows.list_received_requests, users.UserPage),
    _page("/v1/users/me/requests/sent", follows.list_sent_requests, users.UserPage),
    Route("PUT", "/v1/users/me/requests/{id}", follows.approve_request, "write", response=follows.FollowRequestState,
          round_trips=FOLLOW_TRIPS),
    Route("DELETE", "/v1/users/me/requests/{id}", follows.refuse_request, "write", response=follows.FollowRequestState),
    _page("/v1/users/me/blocks", blocks.list_blocks, users.UserPage),
    Route("PUT", "/v1/users/me/blocks/{id}", blocks.block, "write", response=blocks.BlockState,
          round_trips=FOLLOW_TRIPS),
    Route("DELETE", "/v1/users/me/blocks/{id}", blocks.unblock, "write", response=blocks.BlockState),
    _page("/v1/users/me/mutes", blocks.list_mutes, users.UserPage),
    Route("PUT", "/v1/users/me/mutes/{id}", blocks.mute, "write", response=blocks.MuteState),
    Route("DELETE", "/v1/users/me/mutes/{id}", blocks.unmute, "write", response=blocks.MuteState),
    Route("GET", "/v1/users/by-login/{login}", users.get_by_login, "read", response=users.User),
    Route("GET", "/v1/users/{id}", users.get, "read", response=users.User),
    _page("/v1/users/{id}/followers", follows.list_followers, users.UserPage),
    _page("/v1/users/{id}/following", follows.list_following, users.UserPage),
    Route("GET", "/v1/users/{id}/relationship/{other}", relations.get_relationship, "read",
          response=relations.RelationshipState),
    _page("/v1/users/{id}/common-following/{other}", relations.list_common_following, users.UserPage),
    _page("/v1/users/{id}/common-followers/{other}", relations.list_common_followers, users.UserPage),
    Route("POST", "/v1/sessions", sessions.log_in, NO_TOKEN, body=sessions.NewSession, response=sessions.Session,
          status=201, extra_error_statuses=(401, 403), round_trips=PASSWORD_TRIPS, works_when_full=True),
    Route("GET", "/v1/sessions", sessions.list_open, "read", response=sessions.OpenSessions),
    Route("DELETE", "/v1/sessions", sessions.log_out, ANY_TOKEN, sessions.LogOutQuery, status=204),
    Route("DELETE", "/v1/sessions/{id}", sessions.end, ANY_TOKEN, status=204),
    Route("PUT", "/v1/users/me/password", sessions.change_password, "write", body=sessions.PasswordChange, status=204,
          round_trips=PASSWORD_TRIPS, works_when_full=True),
    Route("POST", "/v1/statuses", statuses.post, "write", body=statuses.NewStatus, response=statuses.Status, status=201,
          round_trips=FANOUT_TRIPS, limits=TEXT_LIMITS),
    Route("GET", "/v1/statuses", statuses.get_many, "read", IdsQuery, response=statuses.StatusesById),
    Route("GET", "/v1/statuses/{id}", statuses.get, "read", response=statuses.Status),
    Route("DELETE", "/v1/statuses/{id}", statuses.delete, "write", status=204, round_trips=FANOUT_TRIPS),
    _page("/v1/statuses/{id}/likes", likes.list_likers, users.UserPage),
    Route("PUT", "/v1/users/me/likes/{id}", likes.like, "write", response=likes.LikeCount),
    Route("DELETE", "/v1/users/me/likes/{id}", likes.unlike, "write", response=likes.LikeCount),
    Route("GET", "/v1/users/me/likes/{id}", likes.get_like, "read", response=likes.LikeState),
    Route("PUT", "/v1/users/me/favorites/{id}", likes.add_favorite, "write", response=likes.FavoriteState),
    Route("DELETE", "/v1/users/me/favorites/{id}", likes.remove_favorite, "write", response=likes.FavoriteState),
    Route("GET", "/v1/users/me/favorites/{id}", likes.get_favorite, "read", response=likes.FavoriteState),
    Route("POST", "/v1/statuses/{id}/comments", comments.post, "write", body=comments.NewComment,
          response=comments.Comment, status=201, limits=TEXT_LIMITS),
    _page("/v1/statuses/{id}/comments", comments.list_under_status, comments.CommentPage),
    Route("GET", "/v1/comments/{id}", comments.get, "read", response=comments.Comment),
    Route("DELETE", "/v1/comments/{id}", comments.delete, "write", status=204),
    _page("/v1/notifications", notifications.list_notifications, notifications.NotificationPage),
    Route("PUT", "/v1/notifications/read", notifications.mark_read, "write", body=notifications.ReadMark,
          response=notifications.UnreadCount),
    Route("POST", "/v1/reports", reports.create, "write", body=reports.NewReport, response=reports.Report, status=201,
          other_statuses=(200,), limits=(WRITES, WRITE_BYTES, REPORTS)),
    Route("GET", "/v1/reports/{id}", reports.get, "read", response=reports.Report),
    Route("GET", "/v1/admin/reports", reports.list_reports, "admin", reports.ReportsQuery,
          response=reports.AdminReportPage),
    Route("PATCH", "/v1/admin/reports/{id}", reports.decide, "admin", body=reports.Decision,
          response=reports.AdminReport, round_trips=FANOUT_TRIPS, works_when_full=True),
    Route("GET", "/v1/admin/audit", audit.list_deeds, "admin", PageQuery, response=audit.DeedPage),
    Route("GET", "/v1/admin/operations", operations.read_state, "admin", response=HostState,
          round_trips=NO_ROUND_TRIP),
    Route("GET", "/v1/admin/suspensions", suspensions.list_suspended, "admin", PageQuery, response=users.UserPage),
    Route("PUT", "/v1/admin/suspensions/{id}", suspensions.suspend, "admin", response=suspensions.SuspensionState,
          works_when_full=True),
    Route("DELETE", "/v1/admin/suspensions/{id}", suspensions.reinstate, "admin", response=suspensions.SuspensionState),
    _page("/v1/users/{id}/lists", lists.list_owned, lists.ListPage),
    _page("/v1/users/{id}/listed", lists.list_memberships, lists.ListPage),
    Route("POST", "/v1/lists", lists.create, "write", body=lists.NewList, response=lists.List, status=201,
          extra_error_statuses=(413,)),
    Route("GET", "/v1/lists/{id}", lists.get, "read", response=lists.List),
    Route("PATCH", "/v1/lists/{id}", lists.update, "write", body=lists.ListChanges, response=lists.List),
    Route("DELETE", "/v1/lists/{id}", lists.delete, "write", status=204),
    _page("/v1/lists/{id}/members", lists.list_members, users.UserPage),
    Route("PUT", "/v1/lists/{id}/members/{uid}", lists.add_member, "write", response=lists.List,
          extra_error_statuses=(413,), round_trips=FOLLOW_TRIPS, limits=CONTACT_LIMITS),
    Route("DELETE", "/v1/lists/{id}/members/{uid}", lists.remove_member, "write", response=lists.List,
          round_trips=FOLLOW_TRIPS),
    _page("/v1/users/me/groups", groups.list_own, groups.GroupPage),
    _page("/v1/users/me/invitations", groups.list_invitations, groups.GroupPage),
    Route("POST", "/v1/groups", groups.create, "write", body=groups.NewGroup, response=groups.Group, status=201,
          extra_error_statuses=(413,)),
    Route("GET", "/v1/groups/{id}", groups.get, "read", response=groups.Group),
    Route("PATCH", "/v1/groups/{id}", groups.update, "write", body=groups.GroupChanges, response=groups.Group),
    Route("DELETE", "/v1/groups/{id}", groups.delete, "write", status=204),
    _page("/v1/groups/{id}/members", groups.list_members, users.UserPage),
    Route("PUT", "/v1/groups/{id}/members/{uid}", groups.add_member, "write", response=groups.Group,
          other_statuses=(202,), extra_error_statuses=(413,), me_parameter="uid", limits=CONTACT_LIMITS),
    Route("DELETE", "/v1/groups/{id}/members/{uid}", groups.remove_member, "write", response=groups.Group,
          me_parameter="uid"),
    Route("POST", "/v1/talks", talks.open_talk, "write", body=talks.NewTalk, response=talks.Talk, status=201,
          other_statuses=(200,), limits=(WRITES, WRITE_BYTES, TALKS)),
    _page("/v1/talks", talks.list_own, talks.TalkPage),
    _page("/v1/talks/requests", talks.list_requests, talks.TalkPage),
    Route("PUT", "/v1/talks/{id}/acceptance", talks.accept, "write", status=204),
    Route("DELETE", "/v1/talks/{id}/acceptance", talks.refuse, "write", status=204),
    Route("GET", "/v1/talks/{id}", talks.get, "read", response=talks.Talk),
    Route("POST", "/v1/talks/{id}/messages", talks.send_message, "write", body=talks.NewTalkMessage,
          response=talks.TalkMessage, status=201, limits=TEXT_LIMITS),
    _page("/v1/talks/{id}/messages", talks.list_messages, talks.TalkMessagePage),
    Route("GET", "/v1/talks/{id}/messages/{message}", talks.get_message, "read", response=talks.TalkMessage),
    Route("PUT", "/v1/talks/{id}/read", talks.mark_read, "write", body=talks.TalkReadMark,
          response=talks.TalkReadState),
    Route("GET", "/v1/timelines/home", timelines.home_timeline, "read", timelines.HomeTimelineQuery,
          response=timelines.StatusPage, round_trips=RANKED_TIMELINE_TRIPS),
    _timeline("/v1/users/me/mentions", timelines.mention_timeline),
    _timeline("/v1/users/me/favorites", timelines.favorite_statuses),
    _timeline("/v1/users/{id}/statuses", timelines.profile_timeline),
    _timeline("/v1/users/{id}/likes", timelines.liked_statuses),
    _timeline("/v1/statuses/{id}/reposts", timelines.list_reposts),
    _timeline("/v1/statuses/{id}/replies", timelines.list_replies),
    _timeline("/v1/statuses/{id}/conversation", timelines.list_conversation),
    Route("GET", "/v1/trends", trends.get, "read", trends.TrendsQuery, response=trends.Trends,
          round_trips=NO_ROUND_TRIP),
    _timeline("/v1/tags/{tag}/statuses", timelines.hashtag_timeline),
    _timeline("/v1/lists/{id}/statuses", timelines.list_timeline, TIMELINE_TRIPS),
    _timeline("/v1/groups/{id}/statuses", timelines.group_timeline),
    Route("POST", "/v1/admin/users", users.create_accounts, "admin", body=users.NewAccounts,
          response=users.AccountResults),
    Route("POST", "/v1/ingest", ingest.ingest, "ingest", response=ingest_lines.LineAnswer, lines=ingest_lines.LINES,
          media_type=ingest.NDJSON, is_streaming=True, limits=(WRITES,), extra_error_statuses=(415,)),
    Route("POST", "/v1/streams/ticket", tickets.issue_ticket, "stream", response=tickets.Ticket, status=201,
          is_write=False, limits=(TICKETS,)),
    Route("GET", "/v1/streams", streams.list_open, "stream", response=streams.OpenStreamList),
    Route("DELETE", "/v1/streams/{connection}", streams.close, "stream", status=204, round_trips=STREAM_TRIPS),
    Route("POST", "/v1/streams/{connection}/token", streams.prolong, "stream", response=streams.ProlongedStream,
          is_write=False, round_trips=STREAM_TRIPS),
    Route("GET", "/v1/rules", rules.list_saved, "stream", rules.RulesQuery, response=rules.RuleList),
    Route("POST", "/v1/rules", rules.add, "stream", body=rules.NewRules, response=rules.CreatedRules, status=201,
          other_statuses=(200,), extra_error_statuses=(409, 413)),
    Route("DELETE", "/v1/rules/{id}", rules.delete, "stream", status=204),
    Route("POST", "/v1/rules/delete", rules.delete_many, "stream", body=rules.RuleDeletion,
          response=rules.DeletedRules, works_when_full=True),
    Route("POST", "/v1/rules/explain", rules.explain, "stream", body=rules.ExplainBody, response=rules.RuleExplanation,
          is_write=False, round_trips=EXPLAIN_TRIPS, limits=(TRIALS,)),
    Route("POST", "/v1/rules/preview", rules.preview, "stream", body=rules.PreviewBody,
          response=rules.RulePreviewResult, is_streaming=True, is_write=False, limits=(TRIALS,)),
    Route("GET", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True, accepts_ticket=True,
          websocket=opening.filter_socket),
    Route("POST", "/v1/stream", stream.filter_stream, "stream", None, is_streaming=True),
    Route("GET", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True, accepts_ticket=True,
          websocket=opening.user_socket),
    Route("POST", "/v1/stream/user", stream.user_stream, "stream", None, is_streaming=True),
    Route("GET", "/v1/events", long_poll.poll_events, "stream", None, response=long_poll.PolledEvents,
          is_streaming=True, accepts_ticket=True, limits=(POLLS,)),
    Route("POST", "/v1/events", long_poll.poll_events, "stream", None, response=long_poll.PolledEvents,
          is_streaming=True, limits=(POLLS,)),
    *(Route(method, path, handler, "stream", None, is_streaming=True, dialect=v1.V1_DIALECT, limits=())
      for path, handler in V1_STREAMS.items() for method in ("GET", "POST")),
    Route("GET", "/2/tweets/search/stream", v2.search_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT,
          limits=()),
    Route("GET", "/2/tweets/search/stream/rules", v2_rules.list_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("POST", "/2/tweets/search/stream/rules", v2_rules.change_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/search/stream/rules/counts", v2_rules.count_rules, "stream", None, dialect=v2.V2_DIALECT),
    Route("GET", "/2/tweets/sample/stream", v2.sample_stream, "stream", None, is_streaming=True, dialect=v2.V2_DIALECT,
          limits=()),
)
# fmt: on


def add_routes(app: web.Application, table: tuple[Route, ...] = ROUTE_TABLE) -> None:
    """Register the routes in ``app``, with HEAD for each GET. Fill ``app[ROUTES]`` and ``app[FIXED_PATHS]``."""
    rows: dict[web.AbstractRoute, Route] = {}
    fixed_paths: dict[str, set[str]] = {row.path: set() for row in table if "{" not in row.path}
    for row in table:
        for method in ("GET", "HEAD") if row.method == "GET" else (row.method,):
            rows[app.router.add_route(method, row.path, row.handler)] = row
            if row.path in fixed_paths:
                fixed_paths[row.path].add(method)
    app[ROUTES], app[FIXED_PATHS] = rows, fixed_paths
