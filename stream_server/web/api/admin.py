"""What an administrator does for many at once."""

from aiohttp import web

from stream_server.errors import TooLarge
from stream_server.web.api.admin_shapes import MAX_ACCOUNTS, NewAccounts
from stream_server.web.http import validation
from stream_server.web.http.app_keys import STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def create_accounts(request: web.Request) -> web.Response:
    """``POST /v1/admin/users``: users without passwords, as for a replay; a login that exists gives its user."""
    asked, body = await validation.read_body_as(NewAccounts, request)
    if len(asked.users) > MAX_ACCOUNTS:
        raise TooLarge(f"at most {MAX_ACCOUNTS} users", code="too_many", param="users")
    key = read_idempotency_key(request, body)
    made = await request.app[STORE].users.create_many([(user.login, user.name) for user in asked.users], key)
    return encode_response({"users": [user._asdict() for user in made]})
