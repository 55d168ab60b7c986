"""What administrators do: decide reports, suspend users, read the audit log and the state of the server."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.monitoring.history import OperationsHistory
from stream_server.monitoring.operations import HostState
from stream_server.store.social.reports import ReportOutcome
from stream_server.web.api.rows import get, page, send, write
from stream_server.web.api.streams import StreamUser
from stream_server.web.http import fields, paging
from stream_server.web.http.app_keys import HISTORY, OPERATIONS
from stream_server.web.http.fields import Body, Id, Timestamp
from stream_server.web.http.responses import encode_response
from stream_server.web.limits.rate_limits import REPORTS, WRITE_LIMITS
from stream_server.web.route import Request, Route
from stream_server.wire.objects import ListedUser, Status, User

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
    """The reported user and status as they are now.

    ``user`` is null if the account is deleted. ``status`` is null if it is deleted or if a user was reported.
    """

    user: User | None
    status: Status | None


class AdminReport(Report, kw_only=True):
    """A report with what only administrators see: the decision's author and note, and the reported content."""

    decided_by: Id | None
    remark: Annotated[str, Meta(description="the note of the decision")]
    reported: ReportedContent


class AdminReportPage(paging.PageAnswer):
    """A page of reports, for administrators."""

    reports: list[AdminReport]


class Deed(msgspec.Struct):
    """One row of the audit log: what an administrator did, when, and to whom."""

    id: Id
    at: Timestamp
    by: Annotated[Id | None, Meta(description="the administrator; null for the command line")]
    deed: Literal[
        "suspend",
        "reinstate",
        "decide",
        "create_users",
        "grant_admin",
        "revoke_admin",
        "ingest",
        "delete_user",
        "end_stream",
    ]
    on: Annotated[str, Meta(description="the id of the user or report, or the number of created users")]
    details: Annotated[
        str,
        Meta(
            description="the outcome of a decided report; the note of a suspension; the ended connection; a digest of "
            "the token that ingests"
        ),
    ]
    user: Annotated[
        StreamUser | None,
        Meta(description="whom it was about; null for `create_users` and a stream of a reader token"),
    ]
    note: Annotated[str, Meta(description="the reason that the administrator gave; empty without one")]


class DeedPage(paging.PageAnswer):
    """A page of the audit log."""

    deeds: list[Deed]


class Suspension(msgspec.Struct):
    """The administrator who suspended a user, and the reason."""

    by: Annotated[
        Id | None, Meta(description="the administrator; null if the suspension began before this was recorded")
    ]
    note: Annotated[str, Meta(description="the reason that was given; empty without one")]


class SuspendedUser(ListedUser, frozen=True, kw_only=True):
    """A suspended user. ``since`` is when the suspension began."""

    suspension: Suspension


class SuspendedUserPage(paging.PageAnswer):
    """A page of suspended users."""

    users: list[SuspendedUser]


class SuspensionQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of a suspension, and of its end."""

    note: Annotated[
        str,
        Meta(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$(?!\n)", description="one line: why, for the audit log"),
    ] = ""


class SuspensionState(msgspec.Struct):
    """The answer to a suspension or reinstatement: whether the user is suspended now."""

    suspended: bool


async def read_state(request: Request) -> web.Response:
    """``GET /v1/admin/operations``: read the state of all workers of this server, of Redis, the log and the jobs."""
    return encode_response(await request.app[OPERATIONS].read_state())


async def read_history(request: Request) -> web.Response:
    """``GET /v1/admin/operations/history``: read the figures of all workers of this server in the last hour."""
    return encode_response(await request.app[HISTORY].read())


# fmt: off
ROWS: tuple[Route, ...] = (
    send("POST", "/v1/reports", "reports.create",
         "Report a user or status, or return the caller's open report about it (200).", NewReport, Report, status=201,
         other_statuses=(200,), limits=(*WRITE_LIMITS, REPORTS), is_for_safety=True),
    get("/v1/reports/{id}", "reports.get", "Read one of the caller's reports, with its outcome.", Report),
    page("/v1/admin/reports", "reports.list_reports",
         "List reports, newest first, with the user and status, even if hidden from others.", AdminReportPage,
         ReportsQuery, scope="admin"),
    send("PATCH", "/v1/admin/reports/{id}", "reports.decide",
         "Decide a report and apply the outcome at once; the first decision is final.", Decision, AdminReport,
         scope="admin", works_when_full=True),
    page("/v1/admin/audit", "audit.list_deeds", "List what administrators did, newest first.", DeedPage, scope="admin"),
    Route("GET", "/v1/admin/operations", read_state, "admin", response=HostState,
          name="operations.read_state"),
    Route("GET", "/v1/admin/operations/history", read_history, "admin", response=OperationsHistory,
          name="operations.read_history"),
    page("/v1/admin/suspensions", "suspensions.list_suspended",
         "List the suspended users, last suspended first: since when, by whom, and why.", SuspendedUserPage,
         scope="admin"),
    write("PUT", "/v1/admin/suspensions/{id}", "suspensions.suspend",
          "Suspend a user and end the user's streams; repeating has no effect.", query=SuspensionQuery,
          response=SuspensionState, scope="admin", works_when_full=True),
    write("DELETE", "/v1/admin/suspensions/{id}", "suspensions.reinstate",
          "End the suspension of a user; repeating has no effect.", query=SuspensionQuery,
          response=SuspensionState, scope="admin"),
)
# fmt: on
