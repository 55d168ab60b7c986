"""How two users stand to each other, and whom they have in common."""

from aiohttp import web

from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.paging_shapes import PageQuery
from stream_server.web.http.responses import encode_response, page_response


async def get_relationship(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/relationship/{other}``: who of two follows the other; to themselves, who asks to, too."""
    uid, other = query.read_path_id(request), query.read_path_id(request, "other")
    found = await request.app[STORE].relations.get_relationship(request[CLAIMS].sub, uid, other)
    told = {name: value for name, value in found._asdict().items() if value is not None}
    return encode_response({**told, "mutual": found.is_mutual})


async def list_common_following(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-following/{other}``: whom both follow, newest first by when ``{id}`` began."""
    asked, uid, other = (
        query.parsed_query(request, PageQuery),
        query.read_path_id(request),
        query.read_path_id(request, "other"),
    )
    relations = request.app[STORE].relations
    return page_response(
        "users", *await relations.list_common_following(request[CLAIMS].sub, uid, other, asked.page_request())
    )


async def list_common_followers(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/common-followers/{other}``: who follows both, newest first by when with ``{id}``."""
    asked, uid, other = (
        query.parsed_query(request, PageQuery),
        query.read_path_id(request),
        query.read_path_id(request, "other"),
    )
    relations = request.app[STORE].relations
    return page_response(
        "users", *await relations.list_common_followers(request[CLAIMS].sub, uid, other, asked.page_request())
    )
