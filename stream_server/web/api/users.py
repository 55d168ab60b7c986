"""Users: sign-up, look-up and changes; accounts that an administrator creates in bulk."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import BadRequest, Conflict, NotFound, TooLarge
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.http import fields, query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, PASSWORDS, STORE
from stream_server.web.http.fields import (
    Body,
    DisplayName,
    Email,
    ForeignId,
    Id,
    Language,
    Login,
    NonNegativeInt,
    Timestamp,
)
from stream_server.web.http.idempotency import read_keyed_body
from stream_server.web.http.paging import IdsQuery, PageAnswer
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.http.responses import created_response, encode_response, json_response, list_response
from stream_server.web.limits.rate_limit import SIGN_UPS

MAX_ACCOUNTS = 1000
_BIO_LIMITS = f"1 to 500 code points, {fields.LINE_LIMITS}"
Bio = Annotated[str, Meta(min_length=1, max_length=fields.MAX_BIO_CHARS, description=_BIO_LIMITS)]
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
    """Whether the login and e-mail address of the query are free. What the query lacks, the answer lacks too."""

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
    foreign_id: Annotated[ForeignId, Meta(description="only of a user of another site")] | UnsetType = UNSET


class OwnUser(User, kw_only=True):
    """The caller's own user, with the e-mail address, which is null for an account created without one."""

    email: str | None


class ListedUser(User, kw_only=True):
    """A user on a page of users. ``since`` is the time of the relation, such as when the user began to follow."""

    since: Annotated[Timestamp, Meta(description="omitted if the list does not record it")] | UnsetType = UNSET


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


async def sign_up(request: web.Request) -> web.Response:
    """``POST /v1/users``: create a user; the answer includes the e-mail address.

    An Idempotency-Key has no effect, because keys belong to existing users. A repeated request gets ``login_taken``.
    """
    _refuse_without_sign_up(request)
    new_user, _ = await validation.read_body_as(NewUser, request)
    users = request.app[STORE].users
    await request.app[LIMITS].use(request, SIGN_UPS)
    _refuse_taken(await users.check_available(new_user.login, new_user.email))
    password_hash = await request.app[PASSWORDS].hash(new_user.password, request.app[LIMITS].address_of(request))
    user = await users.create(new_user.login, new_user.name, new_user.email, password_hash, IdempotencyKey.generate())
    return created_response(user, "/v1/users/")


async def check_available(request: web.Request) -> web.Response:
    """``GET /v1/users/available?login=&email=``: tell whether a new user could take a login or an e-mail address."""
    _refuse_without_sign_up(request)
    asked = query.parsed_query(request, AvailabilityQuery)
    if asked.login is None and asked.email is None:
        raise BadRequest("give a login or an email", code="missing_parameter", param="login")
    return encode_response(await request.app[STORE].users.check_available(asked.login, asked.email))


async def get_many(request: web.Request) -> web.Response:
    """``GET /v1/users?ids=``: read several users in the requested order; unknown ids are left out."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("users", await request.app[STORE].users.get_many(request[CLAIMS].sub, ids))


async def get(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}``: read one user."""
    return json_response(await request.app[STORE].users.get(request[CLAIMS].sub, query.read_path_id(request)))


async def get_by_login(request: web.Request) -> web.Response:
    """``GET /v1/users/by-login/{login}``: read one user by login; letter case does not matter."""
    login = request.match_info["login"]
    if not fields.LOGIN_PATTERN.fullmatch(login):
        raise NotFound("there is no such user")
    return json_response(await request.app[STORE].users.get_by_login(request[CLAIMS].sub, login))


async def get_me(request: web.Request) -> web.Response:
    """``GET /v1/users/me``: read the caller's own user, with the e-mail address."""
    return json_response(await request.app[STORE].users.get_own(request[CLAIMS].sub))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/users/me``: change the caller's profile; ``protected`` hides the statuses from non-followers."""
    changes, key = await read_keyed_body(UserChanges, request)
    return json_response(await request.app[STORE].users.update(request[CLAIMS].sub, changes.present_members(), key))


async def create_accounts(request: web.Request) -> web.Response:
    """``POST /v1/admin/users``: create users without passwords; for a login that exists, return the existing user."""
    asked, key = await read_keyed_body(NewAccounts, request)
    if len(asked.users) > MAX_ACCOUNTS:
        raise TooLarge(f"at most {MAX_ACCOUNTS} users", code="too_many", param="users")
    accounts = [(user.login, user.name) for user in asked.users]
    results = await request.app[STORE].users.create_many(accounts, key, request[CLAIMS].sub)
    return encode_response(AccountResults([AccountResult(*result) for result in results]))


def _refuse_without_sign_up(request: web.Request) -> None:
    """Raise NotFound if users do not sign up here: the setting is off, or an identity provider has the users."""
    config = request.app[CONFIG]
    if config.sign_up == "off" or config.external_subjects == "on":
        raise NotFound("sign-up is switched off on this server")


def _refuse_taken(availability: dict[str, bool]) -> None:
    """Raise Conflict for a taken login or e-mail address, before time is spent on hashing the password."""
    for name, is_free in availability.items():
        if not is_free:
            raise Conflict(f"this {name} is taken", code=f"{name}_taken", param=name)
