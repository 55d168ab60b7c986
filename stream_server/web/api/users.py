"""Users: sign-up, look-up and changes; accounts that an administrator creates in bulk."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import BadRequest, Conflict, NotFound, TooLarge
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, PASSWORDS, STORE
from stream_server.web.http.fields import (
    LOGIN_PATTERN,
    Cursor,
    DisplayName,
    Email,
    HttpUrl,
    Id,
    Language,
    Login,
    NonNegativeInt,
    Password,
    PatchBody,
    Timestamp,
    check_name,
    check_text,
)
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging import IdsQuery
from stream_server.web.http.responses import created_response, encode_response, json_response, list_response

MAX_ACCOUNTS = 1000
"""Most accounts that an administrator creates with one request."""

Bio = Annotated[
    str,
    Meta(min_length=1, max_length=500, description="1 to 500 code points, no control characters other than line feed"),
]
PlaceText = Annotated[str, Meta(min_length=1, max_length=100, description="1 to 100 code points")]


class NewUser(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/users``."""

    login: Login
    name: DisplayName
    email: Email
    password: Password

    def __post_init__(self) -> None:
        check_name(self.name)


class AvailabilityQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/users/available``: a login, an e-mail address, or both."""

    login: Login | None = None
    email: Email | None = None


class Availability(msgspec.Struct):
    """Whether a new user could take the login and the e-mail address; only those in the query are answered."""

    login: bool | UnsetType = UNSET
    email: bool | UnsetType = UNSET


class UserChanges(PatchBody):
    """The body of ``PATCH /v1/users/me``. Omitted members stay unchanged; null clears an optional member."""

    name: DisplayName | UnsetType = UNSET
    bio: Bio | UnsetType | None = UNSET
    url: HttpUrl | UnsetType | None = UNSET
    place: PlaceText | UnsetType | None = UNSET
    lang: Language | UnsetType | None = UNSET
    protected: bool | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.name is not UNSET:
            check_name(self.name)
        if isinstance(self.bio, str):
            check_text("bio", self.bio, allowed_controls="\n", may_be_blank=False)
        if isinstance(self.place, str):
            check_text("place", self.place, may_be_blank=False)


class User(msgspec.Struct):
    """A user, with the members that everybody may see."""

    id: Id
    login: Login
    name: str
    bio: str | None
    url: str | None
    place: str | None
    lang: str | None
    protected: bool
    followers: NonNegativeInt
    following: NonNegativeInt
    posts: NonNegativeInt
    signup: Timestamp


class OwnUser(User, kw_only=True):
    """The caller's own user, with the e-mail address. It is null for an account created without one."""

    email: str | None


class ListedUser(User, kw_only=True):
    """A user in a list of users; ``since`` is when the user was added, for example began to follow."""

    since: Annotated[Timestamp, Meta(description="omitted if the list does not record it")] | UnsetType = UNSET


class UsersById(msgspec.Struct):
    """The requested users that exist, in the order of the request."""

    users: list[User]


class UserPage(msgspec.Struct):
    """A page of users. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end of the list."""

    users: list[ListedUser]
    next: Cursor | None
    prev: Cursor | None


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    """One user that an administrator creates. The account has no password, so it cannot log in."""

    login: Login
    name: DisplayName

    def __post_init__(self) -> None:
        check_name(self.name)


class NewAccounts(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/admin/users``: 1 to 1,000 accounts."""

    users: Annotated[list[NewAccount], Meta(min_length=1)]


class AccountResult(msgspec.Struct):
    """The user that has the login now; ``created`` is false if the user existed before the request."""

    id: Id
    login: Login
    created: bool


class AccountResults(msgspec.Struct):
    """One result for each account of the request, in the same order."""

    users: list[AccountResult]


async def sign_up(request: web.Request) -> web.Response:
    """``POST /v1/users``: create a user; the answer includes the e-mail address.

    An Idempotency-Key has no effect, because keys belong to users and this user does not exist yet. A client that
    repeats the request gets the error ``login_taken``.
    """
    new_user, _ = await validation.read_body_as(NewUser, request)
    users = request.app[STORE].users
    _refuse_taken(await users.check_available(new_user.login, new_user.email))
    password_hash = await request.app[PASSWORDS].hash(new_user.password)
    user = await users.create(new_user.login, new_user.name, new_user.email, password_hash, IdempotencyKey.generate())
    return created_response(user, "/v1/users/")


async def check_available(request: web.Request) -> web.Response:
    """``GET /v1/users/available?login=&email=``: tell whether a new user could take a login or an e-mail address."""
    asked = query.parsed_query(request, AvailabilityQuery)
    if asked.login is None and asked.email is None:
        raise BadRequest("give a login or an email", code="missing_parameter", param="login")
    return encode_response(await request.app[STORE].users.check_available(asked.login, asked.email))


async def get_many(request: web.Request) -> web.Response:
    """``GET /v1/users?ids=``: read several users; unknown ids are left out, the order is kept."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("users", await request.app[STORE].users.get_many(request[CLAIMS].sub, ids))


async def get(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}``: read one user."""
    return json_response(await request.app[STORE].users.get(request[CLAIMS].sub, query.read_path_id(request)))


async def get_by_login(request: web.Request) -> web.Response:
    """``GET /v1/users/by-login/{login}``: read one user by login; letter case does not matter."""
    login = request.match_info["login"]
    if not LOGIN_PATTERN.fullmatch(login):
        raise NotFound("there is no such user")
    return json_response(await request.app[STORE].users.get_by_login(request[CLAIMS].sub, login))


async def get_me(request: web.Request) -> web.Response:
    """``GET /v1/users/me``: read the caller's own user, with the e-mail address."""
    return json_response(await request.app[STORE].users.get_own(request[CLAIMS].sub))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/users/me``: change the caller's profile, or whether only approved followers may read the caller."""
    changes, body = await validation.read_body_as(UserChanges, request)
    key = read_idempotency_key(request, body)
    return json_response(await request.app[STORE].users.update(request[CLAIMS].sub, changes.present_members(), key))


async def create_accounts(request: web.Request) -> web.Response:
    """``POST /v1/admin/users``: create users without passwords, for example to replay a recording.

    If a login exists already, the answer names its user.
    """
    asked, body = await validation.read_body_as(NewAccounts, request)
    if len(asked.users) > MAX_ACCOUNTS:
        raise TooLarge(f"at most {MAX_ACCOUNTS} users", code="too_many", param="users")
    key = read_idempotency_key(request, body)
    results = await request.app[STORE].users.create_many([(user.login, user.name) for user in asked.users], key)
    return encode_response(AccountResults([AccountResult(*result) for result in results]))


def _refuse_taken(availability: dict[str, bool]) -> None:
    """Raise Conflict for a login or an e-mail address that is taken.

    The check comes before the costly password hash. The store decides again when it creates the user, so two
    simultaneous requests cannot both take a login.
    """
    for name, is_free in availability.items():
        if not is_free:
            raise Conflict(f"this {name} is taken", code=f"{name}_taken", param=name)
