"""Statuses: post, read, delete."""

from aiohttp import web

from stream_server.errors import BadRequest
from stream_server.store.social.statuses import StatusDraft
from stream_server.web.api.statuses_shapes import NewStatus
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging_shapes import IdsQuery
from stream_server.web.http.responses import created_response, json_response, list_response


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses``: a new status, which is on the log by the time of the answer."""
    new, body = await validation.read_body_as(NewStatus, request)
    _check_status_message(new, request.app[CONFIG].message_max_chars)
    key = read_idempotency_key(request, body)
    status = await request.app[STORE].statuses.create(request[CLAIMS].sub, _to_draft(new), key)
    return created_response(status, "/v1/statuses/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}``: one status."""
    status_id = query.read_path_id(request)
    return json_response(await request.app[STORE].statuses.get(request[CLAIMS].sub, status_id))


async def get_many(request: web.Request) -> web.Response:
    """``GET /v1/statuses?ids=``: several statuses; those of them that exist, in this order."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("statuses", await request.app[STORE].statuses.get_many(request[CLAIMS].sub, ids))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/statuses/{id}``: taken back by its author."""
    status_id = query.read_path_id(request)
    await request.app[STORE].statuses.delete(request[CLAIMS].sub, status_id, read_idempotency_key(request))
    return web.Response(status=204)


def check_message_text(message: str, max_chars: int) -> None:
    """Raises BadRequest for words that are too long, which is a setting, or none; of statuses and of comments."""
    if len(message) > max_chars:
        raise BadRequest(f"at most {max_chars} code points", param="message")
    if message and not message.strip():
        raise BadRequest("not only white space", param="message")


def _check_status_message(new: NewStatus, max_chars: int) -> None:
    """Only a repost, which shows another's words, may have none of its own."""
    check_message_text(new.message, max_chars)
    if not new.message and new.origin is None:
        raise BadRequest("a status needs a message, or an origin to repost", code="missing_parameter", param="message")


def _to_draft(new: NewStatus) -> StatusDraft:
    return StatusDraft(
        message=new.message,
        location=new.location,
        place=new.place,
        in_reply_to=new.in_reply_to,
        origin=new.origin,
        lang=new.lang,
        media=new.media,
        meta=new.meta,
        group=new.group,
    )
