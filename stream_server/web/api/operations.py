"""The state of the server for its operator."""

from aiohttp import web

from stream_server.web.http.app_keys import OPERATIONS
from stream_server.web.http.responses import encode_response


async def read_state(request: web.Request) -> web.Response:
    """``GET /v1/admin/operations``: read the state of all workers of this server, of Redis, the log and the jobs."""
    return encode_response(await request.app[OPERATIONS].read_state())
