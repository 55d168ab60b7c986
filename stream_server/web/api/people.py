"""Users: sign-up, look-up and profiles, follows and requests, blocks and mutes, and the relationship of two users.

A block hides two users from each other. A mute hides a user, who does not learn of the mute.
"""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import BadRequest, Conflict, NotFound, TooLarge
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.api.rows import CONTACT_LIMITS, get, page, write
from stream_server.web.http import fields, query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, PASSWORDS, STORE, WAIVED
from stream_server.web.http.fields import (
    Body,
    DisplayName,
    Email,
    Id,
    Language,
    Login,
)
from stream_server.web.http.paging import IdsQuery, PageAnswer
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import (
    created_response,
    encode_response,
    json_response,
    list_response,
)
from stream_server.web.http.validation import read_keyed_body
from stream_server.web.limits.rate_limits import FOLLOWS, LOOKUPS, SIGN_UPS
from stream_server.web.route import NO_TOKEN, Request, Route
from stream_server.wire.objects import FollowState, ListedUser, OwnUser, User

MAX_ACCOUNTS = 1000
Bio = Annotated[
    str, Meta(min_length=1, max_length=fields.MAX_BIO_CHARS, description=f"1 to 500 code points, {fields.LINE_LIMITS}")
]
PlaceText = Annotated[str, Meta(min_length=1, max_length=100, description="1 to 100 code points")]


class NewUser(Body):
    """The body of ``POST /v1/users``: the login, name, e-mail address and password of a new user."""

    login: Login
    name: DisplayName
    email: Email
    password: fields.Password


class AvailabilityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/available``: a login, an e-mail address, or both."""

    login: Login | None = None
    email: Email | None = None


class Availability(msgspec.Struct):
    """Whether the login and the e-mail address of the query are free. Has only the members that the query has."""

    login: bool | UnsetType = UNSET
    email: bool | UnsetType = UNSET


class UserChanges(fields.PatchBody):
    """The body of ``PATCH /v1/users/me``. Omitted members stay unchanged; null clears an optional member."""

    name: DisplayName | UnsetType = UNSET
    bio: Bio | UnsetType | None = UNSET
    url: fields.HttpUrl | UnsetType | None = UNSET
    place: PlaceText | UnsetType | None = UNSET
    lang: Language | UnsetType | None = UNSET
    protected: bool | UnsetType = UNSET


async def update(request: Request) -> web.Response:
    """``PATCH /v1/users/me``: change the caller's profile; `protected` hides the statuses from non-followers."""
    sent, key = await read_keyed_body(UserChanges, request)
    changes = sent.present_members()
    if changes != {"protected": True} and WAIVED in request:
        raise request[WAIVED]
    return json_response(await request.app[STORE].users.update(request[CLAIMS].sub, changes, key))


class UsersById(msgspec.Struct):
    """The requested users that exist, in the order of the request."""

    users: list[User]


class UserPage(PageAnswer):
    """A page of users."""

    users: list[ListedUser]


class NewAccount(Body):
    """One user that an administrator creates. The account has no password, so it cannot log in."""

    login: Login
    name: DisplayName


class NewAccounts(Body):
    """The body of ``POST /v1/admin/users``: 1 to 1,000 accounts."""

    users: Annotated[list[NewAccount], Meta(min_length=1)]


class AccountResult(msgspec.Struct):
    """The user with the requested login. ``created`` is false if the user existed before the request."""

    id: Id
    login: Login
    created: bool


class AccountResults(msgspec.Struct):
    """One result for each account of the request, in the same order."""

    users: list[AccountResult]


async def sign_up(request: Request) -> web.Response:
    """``POST /v1/users``: create a user; the answer includes the e-mail address.

    An Idempotency-Key has no effect, because keys belong to existing users. A repeated request gets ``login_taken``.
    """
    _refuse_without_sign_up(request)
    new_user = await validation.read_body_as(NewUser, request)
    users = request.app[STORE].users
    await request.app[LIMITS].use(request, SIGN_UPS)
    for name, is_free in (await users.check_available(new_user.login, new_user.email)).items():
        if not is_free:  # known before time is spent on hashing the password
            raise Conflict(f"this {name} is taken", code=f"{name}_taken", param=name)
    password_hash = await request.app[PASSWORDS].hash(new_user.password, request.app[LIMITS].address_of(request))
    user = await users.create(new_user.login, new_user.name, new_user.email, password_hash, IdempotencyKey.generate())
    return created_response(user, "/v1/users/")


async def check_available(request: Request) -> web.Response:
    """``GET /v1/users/available?login=&email=``: tell whether a new user could take a login or an e-mail address."""
    _refuse_without_sign_up(request)
    asked = query.parsed_query(request, AvailabilityQuery)
    if asked.login is None and asked.email is None:
        raise BadRequest("give a login or an email", code="missing_parameter", param="login")
    return encode_response(await request.app[STORE].users.check_available(asked.login, asked.email))


async def get_users(request: Request) -> web.Response:
    """``GET /v1/users?ids=``: read several users in the requested order; unknown ids are left out."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("users", await request.app[STORE].users.get_many(request[CLAIMS].sub, ids))


async def get_by_login(request: Request) -> web.Response:
    """``GET /v1/users/by-login/{login}``: read one user by login; letter case does not matter."""
    login = request.match_info["login"]
    if not fields.LOGIN_PATTERN.fullmatch(login):
        raise NotFound("there is no such user")
    return json_response(await request.app[STORE].users.get_by_login(request[CLAIMS].sub, login))


async def create_accounts(request: Request) -> web.Response:
    """``POST /v1/admin/users``: create users without passwords; for a login that exists, return the existing user."""
    asked, key = await read_keyed_body(NewAccounts, request)
    if len(asked.users) > MAX_ACCOUNTS:
        raise TooLarge(f"at most {MAX_ACCOUNTS} users", code="too_many", param="users")
    accounts = [(user.login, user.name) for user in asked.users]
    results = await request.app[STORE].users.create_many(accounts, key, request[CLAIMS].sub)
    return encode_response(AccountResults([AccountResult(*result) for result in results]))


def _refuse_without_sign_up(request: Request) -> None:
    """Raise NotFound if users do not sign up here: the setting is off, or an identity provider has the users."""
    config = request.app[CONFIG]
    if config.sign_up == "off" or config.external_subjects == "on":
        raise NotFound("sign-up is switched off on this server")


MAX_FOLLOW_BATCH = 200


class FollowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``PUT`` and ``DELETE /v1/users/me/following/{id}``.

    With ``list``, a follow also adds the user to this list of the caller, and an unfollow also removes the user.
    """

    list: Annotated[Id, Meta(description="a list that the caller owns")] | None = None


class FollowBatch(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/users/me/following``: ids of users to follow and to unfollow, at most 200 together."""

    follow: list[Id] = []
    unfollow: list[Id] = []


class FollowResult(msgspec.Struct):
    """The outcome of following or unfollowing the user ``id``."""

    id: Id
    outcome: Literal[
        "followed", "requested", "unfollowed", "not_found", "oneself", "blocked", "too_many", "unavailable"
    ]


class FollowResults(msgspec.Struct):
    """One result for each id to follow or unfollow, in the order of the request."""

    results: list[FollowResult]


class FollowRequestState(msgspec.Struct):
    """After the answer to a follow request: whether its sender follows the caller, and whether it is open."""

    followed_by: bool
    requested_by: bool


async def follow_many(request: Request) -> web.Response:
    """``POST /v1/users/me/following``: follow and unfollow many users; each id has its own outcome."""
    batch, key = await read_keyed_body(FollowBatch, request)
    count = len(batch.follow) + len(batch.unfollow)
    if count > MAX_FOLLOW_BATCH:
        raise TooLarge(f"at most {MAX_FOLLOW_BATCH} ids in both lists", code="too_many", param="follow")
    if not count:
        raise BadRequest("give ids to follow or unfollow", code="missing_parameter", param="follow")
    if set(batch.follow) & set(batch.unfollow):
        raise BadRequest("an id is in both lists", code="conflicting_parameters", param="unfollow")
    if batch.follow and WAIVED in request:
        raise request[WAIVED]
    if batch.follow:
        await request.app[LIMITS].use(request, FOLLOWS, len(batch.follow))
    results = await request.app[STORE].follows.change_many(request[CLAIMS].sub, batch.follow, batch.unfollow, key)
    return encode_response({"results": [result._asdict() for result in results]})


PrivateFlag = Annotated[bool, Meta(description="present only if the caller is one of the two users")]


class RelationshipState(msgspec.Struct):
    """The relations of the user ``{id}`` to ``{other}``: ``following`` means that ``{id}`` follows ``{other}``.

    If the caller is one of them, ``blocking`` and ``muting`` say whether the caller blocks or mutes the other user.
    """

    following: bool
    followed_by: bool
    mutual: bool
    requested: PrivateFlag | UnsetType = UNSET
    requested_by: PrivateFlag | UnsetType = UNSET
    blocking: PrivateFlag | UnsetType = UNSET
    muting: PrivateFlag | UnsetType = UNSET


async def get_relationship(request: Request) -> web.Response:
    """``GET /v1/users/{id}/relationship/{other}``: tell whether each of two users follows the other.

    If the caller is one of the two users, the answer also has their follow requests, and the caller's block and mute.
    """
    uid, other = query.read_path_id(request), query.read_path_id(request, "other")
    relationship = await request.app[STORE].relations.get_relationship(request[CLAIMS].sub, uid, other)
    known = {name: value for name, value in relationship._asdict().items() if value is not None}
    return encode_response({**known, "mutual": relationship.is_mutual})


class BlockState(msgspec.Struct):
    """The answer to a block or unblock: whether the caller blocks the user now."""

    blocking: bool


class MuteState(msgspec.Struct):
    """The answer to a mute or unmute: whether the caller mutes the user now."""

    muting: bool


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", "/v1/users", sign_up, NO_TOKEN, body=NewUser, response=OwnUser, status=201,
          extra_error_statuses=(409,), name="users.sign_up"),
    Route("GET", "/v1/users", get_users, "read", IdsQuery, response=UsersById, name="users.get_many"),
    Route("GET", "/v1/users/available", check_available, NO_TOKEN, AvailabilityQuery, response=Availability,
          limits=(LOOKUPS,), name="users.check_available"),
    get("/v1/users/me", "users.get_own", "Read the caller's own user, with the e-mail address.", OwnUser),
    Route("PATCH", "/v1/users/me", update, "write", body=UserChanges, response=OwnUser, name="users.update",
          is_for_safety=True),
    Route("POST", "/v1/users/me/following", follow_many, "write", body=FollowBatch, response=FollowResults,
          name="follows.follow_many", is_for_safety=True),
    write("PUT", "/v1/users/me/following/{id}", "follows.follow",
          "Follow a user or ask a protected one to approve; repeating has no effect.", response=FollowState,
          query=FollowQuery, extra_error_statuses=(413,), limits=CONTACT_LIMITS),
    write("DELETE", "/v1/users/me/following/{id}", "follows.unfollow",
          "Unfollow a user or withdraw a follow request; repeating has no effect.", response=FollowState,
          query=FollowQuery),
    page("/v1/users/me/requests", "follow_requests.list_received",
         "List the users who request to follow the caller, newest first.", UserPage),
    page("/v1/users/me/requests/sent", "follow_requests.list_sent",
         "List the users whom the caller requests to follow, newest first.", UserPage),
    write("PUT", "/v1/users/me/requests/{id}", "follow_requests.approve",
          "Approve a request to follow the caller; 404 if there is no such request.",
          FollowRequestState(followed_by=True, requested_by=False)),
    write("DELETE", "/v1/users/me/requests/{id}", "follow_requests.refuse",
          "Refuse a request to follow the caller; 404 if there is no such request.",
          FollowRequestState(followed_by=False, requested_by=False)),
    page("/v1/users/me/blocks", "blocks.list_blocked",
         "List the users whom the caller blocks, each with the time of block, newest first.", UserPage),
    write("PUT", "/v1/users/me/blocks/{id}", "blocks.block",
          "Block a user; the two no longer see or follow each other.", BlockState(blocking=True),
          is_for_safety=True),
    write("DELETE", "/v1/users/me/blocks/{id}", "blocks.unblock",
          "End a block; the follows that it ended do not come back.", BlockState(blocking=False),
          is_for_safety=False),
    page("/v1/users/me/mutes", "mutes.list_muted",
         "List the users whom the caller mutes, each with the time of mute, newest first.", UserPage),
    write("PUT", "/v1/users/me/mutes/{id}", "mutes.mute",
          "Mute a user, who does not learn of it; repeating has no effect.", MuteState(muting=True),
          is_for_safety=True),
    write("DELETE", "/v1/users/me/mutes/{id}", "mutes.unmute", "End a mute.", MuteState(muting=False),
          is_for_safety=False),
    Route("GET", "/v1/users/by-login/{login}", get_by_login, "read", response=User, name="users.get_by_login"),
    get("/v1/users/{id}", "users.get", "Read one user.", User),
    page("/v1/users/{id}/followers", "follows.list_followers",
         "List a user's followers, each with the time of the follow, newest first.", UserPage),
    page("/v1/users/{id}/following", "follows.list_following",
         "List whom a user follows, each with the time of the follow, newest first.", UserPage),
    Route("GET", "/v1/users/{id}/relationship/{other}", get_relationship, "read", response=RelationshipState,
          name="relations.get_relationship"),
    page("/v1/users/{id}/common-following/{other}", "relations.list_common_following",
         "List the users whom both `{id}` and `{other}` follow.", UserPage),
    page("/v1/users/{id}/common-followers/{other}", "relations.list_common_followers",
         "List the users who follow both `{id}` and `{other}`.", UserPage),
    Route("POST", "/v1/admin/users", create_accounts, "admin", body=NewAccounts, response=AccountResults,
          name="users.create_accounts"),
)
# fmt: on
