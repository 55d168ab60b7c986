"""Reports of users and statuses, and what administrators decide about them."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.web.api.statuses import Status
from stream_server.web.api.users import User
from stream_server.web.http import fields, paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body, Id, Timestamp
from stream_server.web.http.idempotency import read_keyed_body
from stream_server.web.http.responses import created_response, json_response, page_response

ReportReason = Literal["spam", "abuse", "harassment", "impersonation", "illegal", "other"]
ReportNote = Annotated[str, Meta(max_length=500, description=fields.LINE_LIMITS)]


class NewReport(Body):
    """The body of ``POST /v1/reports``. It names either a user or a status, not both."""

    reason: ReportReason
    user: Id | None = None
    status: Id | None = None
    note: ReportNote = ""

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid ``note``, BadRequest unless exactly one of user and status is present."""
        super().__post_init__()
        if self.user is None and self.status is None:
            raise BadRequest("give a user or a status", code="missing_parameter", param="user")
        if self.user is not None and self.status is not None:
            raise BadRequest("cannot be combined with user", code="conflicting_parameters", param="status")


class Decision(Body):
    """The body of ``PATCH /v1/admin/reports/{id}``. ``removed`` deletes the status, ``suspended`` suspends the user."""

    outcome: ReportOutcome
    note: Annotated[ReportNote, Meta(description="the reason, for other administrators")] = ""


class ReportsQuery(paging.PageQuery, frozen=True, forbid_unknown_fields=True):
    """The query of one page of reports. ``open`` reports wait for a decision, ``decided`` reports have one."""

    state: Literal["open", "decided"] = "open"


class Report(msgspec.Struct):
    """A report of a user or a status to the administrators. ``user`` is the reported user, or the status's author."""

    id: Id
    uid: Annotated[Id, Meta(description="the user who reports")]
    user: Id
    status: Id | None
    reason: ReportReason
    note: str
    posted: Timestamp
    outcome: ReportOutcome | None
    decided: Timestamp | None


class ReportedContent(msgspec.Struct):
    """The reported user and status as they are now. ``status`` is null if it is deleted or if a user was reported."""

    user: User
    status: Status | None


class AdminReport(Report, kw_only=True):
    """A report with what only administrators see: the decision's author and note, and the reported content."""

    decided_by: Id | None
    remark: Annotated[str, Meta(description="the note of the decision")]
    reported: ReportedContent


class AdminReportPage(paging.PageAnswer):
    """A page of reports, for administrators."""

    reports: list[AdminReport]


async def create(request: web.Request) -> web.Response:
    """``POST /v1/reports``: report a user or status, or return the caller's open report about it (200)."""
    new, key = await read_keyed_body(NewReport, request)
    report, is_new = await request.app[STORE].reports.create(
        request[CLAIMS].sub, user=new.user, status=new.status, reason=new.reason, note=new.note, idempotency_key=key
    )
    return created_response(report, "/v1/reports/") if is_new else json_response(report)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/reports/{id}``: read one of the caller's reports, with its outcome."""
    return json_response(await request.app[STORE].reports.get(request[CLAIMS].sub, query.read_path_id(request)))


async def list_reports(request: web.Request) -> web.Response:
    """``GET /v1/admin/reports``: list reports, newest first, with the user and status, even if hidden from others."""
    asked = query.parsed_query(request, ReportsQuery)
    return page_response("reports", *await request.app[STORE].reports.list_reports(asked.page_request(), asked.state))


async def decide(request: web.Request) -> web.Response:
    """``PATCH /v1/admin/reports/{id}``: decide a report and apply the outcome at once; the first decision is final."""
    report_id = query.read_path_id(request)
    decision, key = await read_keyed_body(Decision, request)
    decide_report = request.app[STORE].reports.decide
    return json_response(await decide_report(request[CLAIMS].sub, report_id, decision.outcome, decision.note, key))
