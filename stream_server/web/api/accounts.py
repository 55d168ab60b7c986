"""Accounts: users delete their own with their password, administrators delete those of others."""

from typing import Annotated

from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store.idempotency import IdempotencyKey
from stream_server.web.api.rows import write
from stream_server.web.api.sessions import check_own_password
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body
from stream_server.web.http.validation import read_body_as
from stream_server.web.route import Request, Route


class AccountDeletion(Body):
    """The body of ``DELETE /v1/users/me``."""

    password: Annotated[str, Meta(max_length=256, description="left out without a password")] | None = None


async def delete_own(request: Request) -> web.Response:
    """``DELETE /v1/users/me``: delete the caller's account and all that it wrote; this cannot be undone.

    An account with a password needs it, also if the token was issued elsewhere. Afterwards all tokens of the account
    get 401 ``account_deleted``, so this is what a repeated request gets.
    """
    body = await read_body_as(AccountDeletion, request)
    uid, store = request[CLAIMS].sub, request.app[STORE]
    password_hash = await store.users.get_password_hash(uid)
    if password_hash is not None and body.password is None:
        raise BadRequest("this account has a password", code="missing_parameter", param="password")
    if body.password is not None:
        await check_own_password(request, password_hash, body.password)
    await store.accounts.delete_own(uid, password_hash or "", IdempotencyKey.generate())
    return web.Response(status=204)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("DELETE", "/v1/users/me", delete_own, "write", body=AccountDeletion, status=204,
          name="accounts.delete_own", ignores_key=True),
    write("DELETE", "/v1/users/{id}", "accounts.delete",
          "Delete the account of another user and all that it wrote; this cannot be undone.", scope="admin"),
)
# fmt: on
