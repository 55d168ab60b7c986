"""What an administrator does for many at once."""

from aiohttp import web

from stream_server.errors import TooLarge
from stream_server.web import schema
from stream_server.web.answers import encoded
from stream_server.web.idempotency import request_key
from stream_server.web.keys import STORE
from stream_server.web.shapes.admin import MAX_ADMIN_BATCH, AccountBatch


async def accounts(request: web.Request) -> web.Response:
    """``POST /v1/admin/users``: users without passwords, as for a replay; a login that exists gives its user."""
    asked, body = await schema.read_body_as(AccountBatch, request)
    if len(asked.users) > MAX_ADMIN_BATCH:
        raise TooLarge(f"at most {MAX_ADMIN_BATCH} users", code="too_many", param="users")
    key = request_key(request, body)
    made = await request.app[STORE].users.create_many([(user.login, user.name) for user in asked.users], key)
    return encoded({"users": [user._asdict() for user in made]})
