"""Reports, and what administrators decide about them."""

from aiohttp import web

from stream_server.web.api.reports_shapes import Decision, NewReport, ReportsQuery
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response, page_response


async def create(request: web.Request) -> web.Response:
    """``POST /v1/reports``: report a user or a status; 200 for what one has reported already and is still open."""
    new, body = await validation.read_body_as(NewReport, request)
    made, is_new = await request.app[STORE].reports.create(
        request[CLAIMS].sub,
        user=new.user,
        status=new.status,
        reason=new.reason,
        note=new.note,
        idempotency_key=read_idempotency_key(request, body),
    )
    return created_response(made, "/v1/reports/") if is_new else json_response(made)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/reports/{id}``: a report of one's own, with what became of it."""
    return json_response(await request.app[STORE].reports.get(request[CLAIMS].sub, query.read_path_id(request)))


async def list_reports(request: web.Request) -> web.Response:
    """``GET /v1/admin/reports``: newest first, each with what was reported, whoever may see that."""
    asked = query.parsed_query(request, ReportsQuery)
    return page_response("reports", *await request.app[STORE].reports.list_reports(asked.page_request(), asked.state))


async def decide(request: web.Request) -> web.Response:
    """``PATCH /v1/admin/reports/{id}``: decide a report and do what follows, in one step; the first decision stands."""
    report_id = query.read_path_id(request)
    decision, body = await validation.read_body_as(Decision, request)
    key, admin = read_idempotency_key(request, body), request[CLAIMS].sub
    decided = await request.app[STORE].reports.decide(admin, report_id, decision.outcome, decision.note, key)
    return json_response(decided)
