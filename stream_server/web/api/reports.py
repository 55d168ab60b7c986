"""Reports of users and statuses, and what administrators decide about them."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.web.api.statuses import Status
from stream_server.web.api.users import User
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Cursor, Id, Timestamp, check_text
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import created_response, json_response, page_response

ReportReason = Literal["spam", "abuse", "harassment", "impersonation", "illegal", "other"]
ReportNote = Annotated[str, Meta(max_length=500, description="no control characters other than line feed and tab")]


class NewReport(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/reports``: it names either a user or a status."""

    reason: ReportReason
    user: Id | None = None
    status: Id | None = None
    note: ReportNote = ""

    def __post_init__(self) -> None:
        check_text("note", self.note, allowed_controls="\n\t")
        if self.user is None and self.status is None:
            raise BadRequest("give a user or a status", code="missing_parameter", param="user")
        if self.user is not None and self.status is not None:
            raise BadRequest("cannot be combined with user", code="conflicting_parameters", param="status")


class Decision(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PATCH /v1/admin/reports/{id}``.

    The outcome ``removed`` deletes the status, ``suspended`` suspends its author.
    """

    outcome: ReportOutcome
    note: Annotated[ReportNote, Meta(description="the reason, for other administrators")] = ""

    def __post_init__(self) -> None:
        check_text("note", self.note, allowed_controls="\n\t")


class ReportsQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """A page of the open reports, or of the decided ones."""

    state: Literal["open", "decided"] = "open"


class Report(msgspec.Struct):
    """A report. ``user`` is the reported user, or the author of the reported status."""

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
    """The reported user and status as they are now; a deleted status is null."""

    user: User
    status: Status | None


class AdminReport(Report, kw_only=True):
    """A report with the members that only administrators see."""

    decided_by: Id | None
    remark: Annotated[str, Meta(description="the note of the decision")]
    reported: ReportedContent


class AdminReportPage(msgspec.Struct):
    """A page of reports. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    reports: list[AdminReport]
    next: Cursor | None
    prev: Cursor | None


async def create(request: web.Request) -> web.Response:
    """``POST /v1/reports``: report a user or a status; an open report of the same thing comes back with status 200."""
    new_report, body = await validation.read_body_as(NewReport, request)
    report, is_new = await request.app[STORE].reports.create(
        request[CLAIMS].sub,
        user=new_report.user,
        status=new_report.status,
        reason=new_report.reason,
        note=new_report.note,
        idempotency_key=read_idempotency_key(request, body),
    )
    return created_response(report, "/v1/reports/") if is_new else json_response(report)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/reports/{id}``: read one of the caller's reports, with its outcome."""
    return json_response(await request.app[STORE].reports.get(request[CLAIMS].sub, query.read_path_id(request)))


async def list_reports(request: web.Request) -> web.Response:
    """``GET /v1/admin/reports``: list reports, newest first, each with what it reports even if that is private."""
    asked = query.parsed_query(request, ReportsQuery)
    return page_response("reports", *await request.app[STORE].reports.list_reports(asked.page_request(), asked.state))


async def decide(request: web.Request) -> web.Response:
    """``PATCH /v1/admin/reports/{id}``: decide a report and apply the outcome in one step.

    The first decision is final.
    """
    report_id = query.read_path_id(request)
    decision, body = await validation.read_body_as(Decision, request)
    key, admin = read_idempotency_key(request, body), request[CLAIMS].sub
    return json_response(
        await request.app[STORE].reports.decide(admin, report_id, decision.outcome, decision.note, key)
    )
