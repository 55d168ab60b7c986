"""Reports, and what administrators decide about them."""

from aiohttp import web

from stream_server.web import query, schema
from stream_server.web.answers import created, json_answer, page
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.shapes.reports import Cases, Decision, NewReport


async def report(request: web.Request) -> web.Response:
    """``POST /v1/reports``: report a user or a status; 200 for what one has reported already and is still open."""
    new, body = await schema.read_body_as(NewReport, request)
    made, is_new = await request.app[STORE].reports.create(
        request[CLAIMS].sub,
        user=new.user,
        status=new.status,
        reason=new.reason,
        note=new.note,
        request=request_key(request, body),
    )
    return created(made, "/v1/reports/") if is_new else json_answer(made)


async def one(request: web.Request) -> web.Response:
    """``GET /v1/reports/{id}``: a report of one's own, with what became of it."""
    return json_answer(await request.app[STORE].reports.get(request[CLAIMS].sub, query.path_id(request)))


async def cases(request: web.Request) -> web.Response:
    """``GET /v1/admin/reports``: newest first, each with what was reported, whoever may see that."""
    asked = query.given(request, Cases)
    return page("reports", *await request.app[STORE].reports.page(asked.piece(), asked.state))


async def decide(request: web.Request) -> web.Response:
    """``PATCH /v1/admin/reports/{id}``: decide a report and do what follows, in one step; the first decision stands."""
    report_id = query.path_id(request)
    decision, body = await schema.read_body_as(Decision, request)
    key, admin = request_key(request, body), request[CLAIMS].sub
    decided = await request.app[STORE].reports.decide(admin, report_id, decision.outcome, decision.note, key)
    return json_answer(decided)
