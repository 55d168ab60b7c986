"""Lists of users, groups, talks (private conversations among a fixed set of users), and notifications.

A status posted in a group has the id of the group as ``group``.
"""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.api.people import UserPage
from stream_server.web.api.rows import CONTACT_LIMITS, TEXT_LIMITS, get, page, send, write
from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import (
    Body,
    Description,
    DisplayName,
    Id,
    NonNegativeInt,
    PatchBody,
    check_text,
)
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import json_response, page_response
from stream_server.web.http.validation import read_idempotency_key
from stream_server.web.limits.rate_limits import TALKS, WRITE_LIMITS
from stream_server.web.route import Request, Route
from stream_server.wire.objects import GROUP_KINDS_MEANING, Group, GroupKind, List, Notification, Talk, TalkMessage


class NewList(Body):
    """The body of ``POST /v1/lists``. A user may own at most 100 lists."""

    name: DisplayName
    description: Description = ""
    private: Annotated[bool, Meta(description="only the owner sees the list")] = False


class ListChanges(PatchBody):
    """The body of ``PATCH /v1/lists/{id}``: a new ``name``, ``description`` or ``private``, or several of these."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET
    private: bool | UnsetType = UNSET


class ListPage(paging.PageAnswer):
    """A page of lists."""

    lists: list[List]


class NewGroup(Body):
    """The body of ``POST /v1/groups``. The ``kind`` cannot change later. A user can be in at most 1,000 groups."""

    name: DisplayName
    kind: Annotated[GroupKind, Meta(description=GROUP_KINDS_MEANING)]
    description: Description = ""


class GroupChanges(PatchBody):
    """The body of ``PATCH /v1/groups/{id}``: a new ``name`` or ``description``, or both."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class GroupPage(paging.PageAnswer):
    """A page of groups."""

    groups: list[Group]


async def add_member(request: Request) -> web.Response:
    """``PUT /v1/groups/{id}/members/{uid}``: join (uid ``me``), or add a user to the caller's private group.

    A user who does not follow the caller is only invited (202), and then joins with ``me``.
    """
    caller, group_id = request[CLAIMS].sub, query.read_path_id(request)
    member = caller if request.match_info["uid"] == "me" else query.read_path_id(request, "uid")
    key = read_idempotency_key(request)
    group, is_invited = await request.app[STORE].groups.add_member(caller, group_id, member, key)
    return json_response(group, status=202 if is_invited else 200)


MAX_MESSAGE_CHARS = 2000


class NewTalk(Body):
    """The body of ``POST /v1/talks``: the other users, and optionally a name for a talk of three or more users.

    Two users have only one talk with each other, without a name; a second request returns it. Each request for three or
    more users, counting the caller, makes a new talk.
    """

    people: Annotated[list[Id], Meta(min_length=1, max_length=49, description="the others, without the caller")]
    name: Annotated[DisplayName, Meta(description="only for a talk of more than two users")] | None = None


class NewTalkMessage(Body):
    """The body of ``POST /v1/talks/{id}/messages``: the text of the message."""

    message: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARS)]

    def __post_init__(self) -> None:
        """Raise ValueError for a blank message, and for control characters other than line feed and tab."""
        check_text("message", self.message, allowed_controls="\n\t", may_be_blank=False)


class TalkReadMark(Body):
    """The body of ``PUT /v1/talks/{id}/read``: the id of the newest message that the caller has read."""

    id: Id


class TalkMessagePage(paging.PageAnswer):
    """A page of the messages of a talk."""

    messages: list[TalkMessage]


class TalkPage(paging.PageAnswer):
    """A page of talks."""

    talks: list[Talk]


class TalkReadState(msgspec.Struct):
    """The id of the newest message that the caller has read, and the number of unread messages."""

    read: Id
    unread: Annotated[int, Meta(ge=0, le=100, description="messages after the read mark; counting stops at 100")]


UnreadNumber = Annotated[
    NonNegativeInt, Meta(description="notifications above the read mark; beyond 100, hidden ones count too")
]


class ReadMark(Body):
    """The body of ``PUT /v1/notifications/read``: the id of the newest notification that the caller has read."""

    id: Id


class UnreadCount(msgspec.Struct):
    """The answer of ``PUT /v1/notifications/read``: the number of notifications that are still unread."""

    unread: UnreadNumber


class NotificationPage(paging.PageAnswer):
    """A page of notifications."""

    notifications: list[Notification]
    unread: UnreadNumber


async def list_notifications(request: Request) -> web.Response:
    """``GET /v1/notifications``: list the caller's notifications, newest first, and count the unread ones."""
    list_page = request.app[STORE].notifications.list_with_unread_count
    page, unread = await list_page(request[CLAIMS].sub, paging.read_page_request(request))
    return page_response("notifications", page, unread=unread)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/v1/notifications", list_notifications, "read", PageQuery, response=NotificationPage,
          name="notifications.list_notifications"),
    send("PUT", "/v1/notifications/read", "notifications.mark_read",
         "Mark the notifications up to an id as read; the read mark never moves back.", ReadMark, UnreadCount),
    page("/v1/users/{id}/lists", "lists.list_owned",
         "List the lists of a user, newest first; only the owner sees private lists.", ListPage),
    page("/v1/users/{id}/listed", "lists.list_containing",
         "List the lists with the user that the caller may see, last addition first.", ListPage),
    send("POST", "/v1/lists", "lists.create", "Create an empty list.", NewList, List, status=201,
         extra_error_statuses=(413,)),
    get("/v1/lists/{id}", "lists.get", "Read one list.", List),
    send("PATCH", "/v1/lists/{id}", "lists.update",
         "Change the name, description or visibility of a list that the caller owns.", ListChanges, List),
    write("DELETE", "/v1/lists/{id}", "lists.delete", "Delete a list that the caller owns, and its timeline."),
    page("/v1/lists/{id}/members", "lists.list_members",
         "List the members of a list, last added first, with the time of addition.", UserPage),
    write("PUT", "/v1/lists/{id}/members/{uid}", "lists.add_member",
          "Add a user to a list that the caller owns; repeating has no effect.", response=List,
          extra_error_statuses=(413,), limits=CONTACT_LIMITS),
    write("DELETE", "/v1/lists/{id}/members/{uid}", "lists.remove_member",
          "Remove a user from a list of the caller; repeating has no effect.", response=List),
    page("/v1/users/me/groups", "groups.list_own",
         "List the groups of which the caller is a member, last joined first.", GroupPage, call="groups.list_joined"),
    page("/v1/users/me/invitations", "groups.list_invitations",
         "List the groups to which the caller is invited, last invited first.", GroupPage),
    send("POST", "/v1/groups", "groups.create", "Create a group; the caller owns it and is its first member.",
         NewGroup, Group, status=201, extra_error_statuses=(413,)),
    get("/v1/groups/{id}", "groups.get", "Read one group; only its members see a private group.", Group),
    send("PATCH", "/v1/groups/{id}", "groups.update",
         "Change the name or description of a group that the caller owns.", GroupChanges, Group),
    write("DELETE", "/v1/groups/{id}", "groups.delete", "Delete a group that the caller owns, with all memberships."),
    page("/v1/groups/{id}/members", "groups.list_members",
         "List the members of a group, last joined first, with the time of joining.", UserPage),
    Route("PUT", "/v1/groups/{id}/members/{uid}", add_member, "write", response=Group, other_statuses=(202,),
          extra_error_statuses=(413,), me_parameter="uid", limits=CONTACT_LIMITS),
    write("DELETE", "/v1/groups/{id}/members/{uid}", "groups.remove_member",
          "Leave a group (uid `me`) or remove a user from the caller's group.", response=Group, me_parameter="uid"),
    send("POST", "/v1/talks", "talks.open_talk",
         "Open a talk; for two users who have a talk already, return that talk with status 200.", NewTalk, Talk,
         call="talks.open", status=201, other_statuses=(200,), limits=(*WRITE_LIMITS, TALKS)),
    page("/v1/talks", "talks.list_talks", "List the caller's talks, the talk with the latest message first.", TalkPage),
    page("/v1/talks/requests", "talks.list_requests",
         "List the talks that strangers opened with the caller, and that wait for an answer.", TalkPage),
    write("PUT", "/v1/talks/{id}/acceptance", "talks.accept",
          "Accept a talk that a stranger opened; a reply does this too."),
    write("DELETE", "/v1/talks/{id}/acceptance", "talks.refuse",
          "Refuse a talk that a stranger opened; the caller no longer sees it."),
    get("/v1/talks/{id}", "talks.get", "Read one talk that the caller is in.", Talk),
    send("POST", "/v1/talks/{id}/messages", "talks.send_message",
         "Send a message; the log has the message before the server answers.", NewTalkMessage, TalkMessage, status=201,
         limits=TEXT_LIMITS),
    page("/v1/talks/{id}/messages", "talks.list_messages",
         "List the messages of a talk that the caller is in, newest first.", TalkMessagePage),
    get("/v1/talks/{id}/messages/{message}", "talks.get_message", "Read one message of a talk that the caller is in.",
        TalkMessage),
    send("PUT", "/v1/talks/{id}/read", "talks.mark_read",
         "Mark the messages up to an id as read; an id below the read mark changes nothing.", TalkReadMark,
         TalkReadState),
)
# fmt: on
