"""Reports, decisions and suspensions."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store.social.reports import ReportOutcome
from stream_server.web.api.statuses_shapes import Status
from stream_server.web.api.users_shapes import User
from stream_server.web.http.fields import Cursor, Id, Timestamp, check_text
from stream_server.web.http.paging_shapes import PageQuery

ReportReason = Literal["spam", "abuse", "harassment", "impersonation", "illegal", "other"]
ReportNote = Annotated[str, Meta(max_length=500, description="no control characters but line feed and tab")]


class NewReport(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/reports``: of a user or of a status, exactly one."""

    reason: ReportReason
    user: Id | None = None
    status: Id | None = None
    note: ReportNote = ""

    def __post_init__(self) -> None:
        check_text("note", self.note, allowed_controls="\n\t")
        if self.user is None and self.status is None:
            raise BadRequest("give a user or a status", code="missing_parameter", param="user")
        if self.user is not None and self.status is not None:
            raise BadRequest("not together with user", code="conflicting_parameters", param="status")


class Decision(msgspec.Struct, forbid_unknown_fields=True):
    """``PATCH /v1/admin/reports/{id}``: ``removed`` deletes the status, ``suspended`` suspends its author."""

    outcome: ReportOutcome
    note: Annotated[ReportNote, Meta(description="why, for other administrators")] = ""

    def __post_init__(self) -> None:
        check_text("note", self.note, allowed_controls="\n\t")


class ReportsQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """A piece of the reports that wait, or of those that were decided."""

    state: Literal["open", "decided"] = "open"


class Report(msgspec.Struct):
    """A report; ``user`` is also the author of a reported status."""

    id: Id
    uid: Annotated[Id, Meta(description="who reports")]
    user: Id
    status: Id | None
    reason: ReportReason
    note: str
    posted: Timestamp
    outcome: ReportOutcome | None
    decided: Timestamp | None


class ReportedContent(msgspec.Struct):
    """What was reported, as it is now; a status that is gone is null."""

    user: User
    status: Status | None


class AdminReport(Report, kw_only=True):
    """A report as an administrator sees it."""

    decided_by: Id | None
    remark: Annotated[str, Meta(description="the note of the decision")]
    reported: ReportedContent


class AdminReportPage(msgspec.Struct):
    """A piece of the reports; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    reports: list[AdminReport]
    next: Cursor | None
    prev: Cursor | None


class SuspensionState(msgspec.Struct):
    """How it stands now."""

    suspended: bool
