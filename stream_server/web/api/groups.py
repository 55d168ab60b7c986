"""Lists of users, groups, talks (private conversations among a fixed set of users), and notifications.

A status posted in a group has the id of the group as ``group``.
"""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.api.people import UserPage
from stream_server.web.api.rows import (
    CONTACT_LIMITS,
    FOLLOW_TRIPS,
    TEXT_LIMITS,
    get,
    page,
    read_trips,
    update,
    write,
    written_trips,
)
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
from stream_server.web.http.idempotency import read_idempotency_key, read_keyed_body
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import created_response, encode_response, json_response, page_response
from stream_server.web.limits.rate_limit import TALKS, WRITE_BYTES, WRITES
from stream_server.web.route import Route
from stream_server.wire.objects import GROUP_KINDS_MEANING, Group, List, Notification, Talk, TalkMessage


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


async def create_list(request: web.Request) -> web.Response:
    """``POST /v1/lists``: create an empty list."""
    new, key = await read_keyed_body(NewList, request)
    created = await request.app[STORE].lists.create(request[CLAIMS].sub, new.name, new.description, new.private, key)
    return created_response(created, "/v1/lists/")


GroupKind = Annotated[Literal["public", "private", "announcement"], Meta(description=GROUP_KINDS_MEANING)]


class NewGroup(Body):
    """The body of ``POST /v1/groups``. The ``kind`` cannot change later. A user can be in at most 1,000 groups."""

    name: DisplayName
    kind: GroupKind
    description: Description = ""


class GroupChanges(PatchBody):
    """The body of ``PATCH /v1/groups/{id}``: a new ``name`` or ``description``, or both."""

    name: DisplayName | UnsetType = UNSET
    description: Description | UnsetType = UNSET


class GroupPage(paging.PageAnswer):
    """A page of groups."""

    groups: list[Group]


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/users/me/groups``: list the groups of which the caller is a member, last joined first."""
    asked, uid = paging.read_page_request(request), request[CLAIMS].sub
    return page_response("groups", await request.app[STORE].groups.list_joined(uid, uid, asked))


async def create_group(request: web.Request) -> web.Response:
    """``POST /v1/groups``: create a group; the caller owns it and is its first member."""
    group, key = await read_keyed_body(NewGroup, request)
    create_group = request.app[STORE].groups.create
    created = await create_group(request[CLAIMS].sub, group.name, group.kind, group.description, key)
    return created_response(created, "/v1/groups/")


async def add_member(request: web.Request) -> web.Response:
    """``PUT /v1/groups/{id}/members/{uid}``: join (uid ``me``), or add a user to the caller's private group.

    A user who does not follow the caller is only invited (202), and then joins with ``me``.
    """
    group_id, member, key = query.read_path_id(request), _member_id(request), read_idempotency_key(request)
    add_member = request.app[STORE].groups.add_member
    group, is_invited = await add_member(request[CLAIMS].sub, group_id, member, key)
    return json_response(group, status=202 if is_invited else 200)


def _member_id(request: web.Request) -> str:
    """Return the member's user id from the path, in which ``me`` stands for the caller."""
    return request[CLAIMS].sub if request.match_info["uid"] == "me" else query.read_path_id(request, "uid")


MAX_OTHERS = 49
MAX_MESSAGE_CHARS = 2000
_UNREAD_MESSAGES = "messages after the read mark; counting stops at 100"
UnreadMessageCount = Annotated[int, Meta(ge=0, le=100, description=_UNREAD_MESSAGES)]


class NewTalk(Body):
    """The body of ``POST /v1/talks``: the other users, and optionally a name for a talk of three or more users.

    Two users have only one talk with each other, without a name; a second request returns it. Each request for three or
    more users, counting the caller, makes a new talk.
    """

    people: Annotated[list[Id], Meta(min_length=1, max_length=MAX_OTHERS, description="the others, without the caller")]
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
    unread: UnreadMessageCount


async def open_talk(request: web.Request) -> web.Response:
    """``POST /v1/talks``: open a talk; for two users who have a talk already, return that talk with status 200."""
    new_talk, key = await read_keyed_body(NewTalk, request)
    talk, is_new = await request.app[STORE].talks.open(request[CLAIMS].sub, new_talk.people, new_talk.name, key)
    return created_response(talk, "/v1/talks/") if is_new else json_response(talk)


async def send_message(request: web.Request) -> web.Response:
    """``POST /v1/talks/{id}/messages``: send a message; the log has the message before the server answers."""
    talk_id = query.read_path_id(request)
    new_message, key = await read_keyed_body(NewTalkMessage, request)
    message = await request.app[STORE].talks.send_message(request[CLAIMS].sub, talk_id, new_message.message, key)
    return created_response(message, f"/v1/talks/{talk_id}/messages/")


async def mark_talk_read(request: web.Request) -> web.Response:
    """``PUT /v1/talks/{id}/read``: mark the messages up to an id as read; an id below the read mark changes nothing."""
    talk_id = query.read_path_id(request)
    mark, key = await read_keyed_body(TalkReadMark, request)
    return json_response(await request.app[STORE].talks.mark_read(request[CLAIMS].sub, talk_id, mark.id, key))


_UNREAD = "notifications above the read mark; beyond 100, hidden ones count too"
UnreadNumber = Annotated[NonNegativeInt, Meta(description=_UNREAD)]


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


async def list_notifications(request: web.Request) -> web.Response:
    """``GET /v1/notifications``: list the caller's notifications, newest first, and count the unread ones."""
    list_page = request.app[STORE].notifications.list_with_unread_count
    page, unread = await list_page(request[CLAIMS].sub, paging.read_page_request(request))
    return page_response("notifications", page, unread=unread)


async def mark_notifications_read(request: web.Request) -> web.Response:
    """``PUT /v1/notifications/read``: mark the notifications up to an id as read; the read mark never moves back."""
    mark, key = await read_keyed_body(ReadMark, request)
    unread = await request.app[STORE].notifications.mark_read(request[CLAIMS].sub, mark.id, key)
    return encode_response({"unread": unread})


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("GET", "/v1/notifications", list_notifications, "read", PageQuery, response=NotificationPage,
          name="notifications.list_notifications", round_trips=read_trips(6)),
    Route("PUT", "/v1/notifications/read", mark_notifications_read, "write", body=ReadMark, response=UnreadCount,
          name="notifications.mark_read", round_trips=written_trips(3)),
    page("/v1/users/{id}/lists", "lists.list_owned",
         "List the lists of a user, newest first; only the owner sees private lists.", ListPage, trips=3),
    page("/v1/users/{id}/listed", "lists.list_containing",
         "List the lists with the user that the caller may see, last addition first.", ListPage),
    Route("POST", "/v1/lists", create_list, "write", body=NewList, response=List, status=201,
          extra_error_statuses=(413,), name="lists.create"),
    get("/v1/lists/{id}", "lists.get", "Read one list.", List),
    update("/v1/lists/{id}", "lists.update",
           "Change the name, description or visibility of a list that the caller owns.", ListChanges, List),
    write("DELETE", "/v1/lists/{id}", "lists.delete", "Delete a list that the caller owns, and its timeline."),
    page("/v1/lists/{id}/members", "lists.list_members",
         "List the members of a list, last added first, with the time of addition.", UserPage, trips=3),
    write("PUT", "/v1/lists/{id}/members/{uid}", "lists.add_member",
          "Add a user to a list that the caller owns; repeating has no effect.", response=List,
          extra_error_statuses=(413,), round_trips=FOLLOW_TRIPS, limits=CONTACT_LIMITS),
    write("DELETE", "/v1/lists/{id}/members/{uid}", "lists.remove_member",
          "Remove a user from a list of the caller; repeating has no effect.", response=List, round_trips=FOLLOW_TRIPS),
    Route("GET", "/v1/users/me/groups", list_own, "read", PageQuery, response=GroupPage),
    page("/v1/users/me/invitations", "groups.list_invitations",
         "List the groups to which the caller is invited, last invited first.", GroupPage),
    Route("POST", "/v1/groups", create_group, "write", body=NewGroup, response=Group, status=201,
          extra_error_statuses=(413,), name="groups.create"),
    get("/v1/groups/{id}", "groups.get", "Read one group; only its members see a private group.", Group, trips=2),
    update("/v1/groups/{id}", "groups.update", "Change the name or description of a group that the caller owns.",
           GroupChanges, Group),
    write("DELETE", "/v1/groups/{id}", "groups.delete", "Delete a group that the caller owns, with all memberships."),
    page("/v1/groups/{id}/members", "groups.list_members",
         "List the members of a group, last joined first, with the time of joining.", UserPage, trips=4),
    Route("PUT", "/v1/groups/{id}/members/{uid}", add_member, "write", response=Group, other_statuses=(202,),
          extra_error_statuses=(413,), me_parameter="uid", limits=CONTACT_LIMITS),
    write("DELETE", "/v1/groups/{id}/members/{uid}", "groups.remove_member",
          "Leave a group (uid `me`) or remove a user from the caller's group.", response=Group, me_parameter="uid"),
    Route("POST", "/v1/talks", open_talk, "write", body=NewTalk, response=Talk, status=201, other_statuses=(200,),
          limits=(WRITES, WRITE_BYTES, TALKS), name="talks.open_talk", round_trips=written_trips(4)),
    page("/v1/talks", "talks.list_talks", "List the caller's talks, the talk with the latest message first.", TalkPage),
    page("/v1/talks/requests", "talks.list_requests",
         "List the talks that strangers opened with the caller, and that wait for an answer.", TalkPage),
    write("PUT", "/v1/talks/{id}/acceptance", "talks.accept",
          "Accept a talk that a stranger opened; a reply does this too."),
    write("DELETE", "/v1/talks/{id}/acceptance", "talks.refuse",
          "Refuse a talk that a stranger opened; the caller no longer sees it."),
    get("/v1/talks/{id}", "talks.get", "Read one talk that the caller is in.", Talk, trips=4),
    Route("POST", "/v1/talks/{id}/messages", send_message, "write", body=NewTalkMessage, response=TalkMessage,
          status=201, limits=TEXT_LIMITS, name="talks.send_message"),
    page("/v1/talks/{id}/messages", "talks.list_messages",
         "List the messages of a talk that the caller is in, newest first.", TalkMessagePage, trips=4),
    get("/v1/talks/{id}/messages/{message}", "talks.get_message", "Read one message of a talk that the caller is in.",
        TalkMessage, trips=3),
    Route("PUT", "/v1/talks/{id}/read", mark_talk_read, "write", body=TalkReadMark, response=TalkReadState,
          name="talks.mark_read", round_trips=written_trips(5)),
)
# fmt: on
