"""Users: sign up, look up, change."""

from aiohttp import web

from stream_server.errors import BadRequest, Conflict, NotFound
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.api.users_shapes import AvailabilityQuery, NewUser, UserChanges
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, PASSWORDS, STORE
from stream_server.web.http.fields import LOGIN_PATTERN
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging_shapes import IdsQuery
from stream_server.web.http.responses import created_response, encode_response, json_response, list_response


async def sign_up(request: web.Request) -> web.Response:
    """``POST /v1/users``: a new user, answered with the e-mail since it is one's own.

    There is no user yet to whom an Idempotency-Key could belong; who sends it twice hears that the login is taken.
    """
    new, _ = await validation.read_body_as(NewUser, request)
    users = request.app[STORE].users
    _refuse_taken(await users.check_available(new.login, new.email))
    hashed = await request.app[PASSWORDS].hash(new.password)
    body = await users.create(new.login, new.name, new.email, hashed, IdempotencyKey.generate())
    return created_response(body, "/v1/users/")


async def check_available(request: web.Request) -> web.Response:
    """``GET /v1/users/available?login=&email=``: whether a login or an e-mail could be signed up with now."""
    asked = query.parsed_query(request, AvailabilityQuery)
    if asked.login is None and asked.email is None:
        raise BadRequest("ask for a login or an email", code="missing_parameter", param="login")
    return encode_response(await request.app[STORE].users.check_available(asked.login, asked.email))


async def get_many(request: web.Request) -> web.Response:
    """``GET /v1/users?ids=``: several users; those of them who exist, in this order."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("users", await request.app[STORE].users.get_many(request[CLAIMS].sub, ids))


async def get(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}``: one user."""
    return json_response(await request.app[STORE].users.get(request[CLAIMS].sub, query.read_path_id(request)))


async def get_by_login(request: web.Request) -> web.Response:
    """``GET /v1/users/by-login/{login}``: one user, by a login in any case of letters."""
    login = request.match_info["login"]
    if not LOGIN_PATTERN.fullmatch(login):
        raise NotFound("there is no such user")
    return json_response(await request.app[STORE].users.get_by_login(request[CLAIMS].sub, login))


async def get_me(request: web.Request) -> web.Response:
    """``GET /v1/users/me``: oneself, with the e-mail."""
    return json_response(await request.app[STORE].users.get_own(request[CLAIMS].sub))


async def update(request: web.Request) -> web.Response:
    """``PATCH /v1/users/me``: change what one says of oneself, and whether only those may read who were let."""
    changes, body = await validation.read_body_as(UserChanges, request)
    key = read_idempotency_key(request, body)
    return json_response(await request.app[STORE].users.update(request[CLAIMS].sub, changes.present_members(), key))


def _refuse_taken(availability: dict[str, bool]) -> None:
    """Before the costly hash; two who race for one login are told apart by the store."""
    for name, is_free in availability.items():
        if not is_free:
            raise Conflict(f"this {name} is taken", code=f"{name}_taken", param=name)
