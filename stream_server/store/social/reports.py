"""Moderation: reports of users and statuses, the decisions of administrators, and suspensions."""

from enum import StrEnum

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.timelines.syndication import Syndication

SUSPENDED_JSON = b'{"suspended":true}'
REINSTATED_JSON = b'{"suspended":false}'

_KEY_NAME_BY_STATE = {"open": "reports", "decided": "decided"}


class ReportOutcome(StrEnum):
    """The decision of an administrator about a report."""

    DISMISSED = "dismissed"
    """The report was unfounded; nothing changes."""
    REMOVED = "removed"
    """The reported status is deleted."""
    SUSPENDED = "suspended"
    """The reported user, or the author of the reported status, is suspended."""


class Reports:
    """Creates, reads and decides reports."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def create(
        self,
        uid: str,
        *,
        user: str | None = None,
        status: str | None = None,
        reason: str,
        note: str,
        idempotency_key: IdempotencyKey,
    ) -> tuple[bytes, bool]:
        """Report a user or a status. Returns the report as JSON and whether it is new.

        If the same reporter has an open report of the same user or status, returns that one. Raises NotFound for what
        the reporter may not see, BadRequest if reporters report themselves.
        """
        reply = await self._scripts.write(
            "report_create", idempotency_key, uid, user or "", status or "", reason, msgspec.json.encode(note)
        )
        report_id, _, state = reply.value.partition(b" ")
        report = await self.get(uid, report_id.decode()) if reply.is_repeat else reply.first_time_extra[0]
        return report, state == b"new"

    async def get(self, uid: str, report: str) -> bytes:
        """Return a report with its outcome as JSON for its reporter. Raises NotFound for all other users."""
        return await self._read_report(report, uid)

    async def list_reports(self, page_request: PageRequest, state: str) -> Page:
        """Return the reports whose state is ``open`` or ``decided`` as JSON, newest first, for an administrator.

        Each contains the reported user and status as they are now, without regard to visibility. Raises InvalidCursor.
        """
        return await read_page(self._scripts, "reports_page", keys.key_for(_KEY_NAME_BY_STATE[state]), page_request)

    async def decide(
        self, admin: str, report: str, outcome: ReportOutcome, remark: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """Decide a report and carry the outcome out, in one atomic step. Returns the decided report as JSON.

        The same decision again changes nothing. Raises NotFound, BadRequest for the removal of a report without status
        and for administrators who would suspend themselves, and Conflict if another outcome was decided before.
        """
        reply = await self._scripts.write(
            "report_decide", idempotency_key, admin, report, outcome.value, msgspec.json.encode(remark)
        )
        if reply.is_repeat:
            return await self._read_report(report, "")
        return await self._finish_decision(reply)

    async def _finish_decision(self, reply: WriteReply) -> bytes:
        """Remove a deleted status from the first timelines. Returns the report as JSON."""
        report: bytes
        report, fence, followers, lists, author, status = reply.first_time_extra
        if fence:
            await self._syndication.withdraw(author.decode(), status.decode(), fence, followers, lists)
        return report

    async def _read_report(self, report: str, reporter: str) -> bytes:
        """Return a report as JSON for its reporter, or for an administrator if ``reporter`` is empty."""
        found: bytes = await self._scripts.call("report_get", keys.META, report, reporter)
        return found


class Suspensions:
    """Suspends and reinstates users. A suspension hides all that a user wrote; reinstating shows it again."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def suspend(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """Suspend a user. Returns the new state as JSON. The log entry ends the user's streams on all workers.

        A repeated suspension changes nothing. Raises NotFound, and BadRequest if administrators suspend themselves.
        """
        await self._scripts.write("suspend", idempotency_key, admin, uid)
        return SUSPENDED_JSON

    async def reinstate(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """End a suspension; all that it hid is visible again. Returns the new state as JSON. Raises NotFound."""
        await self._scripts.write("reinstate", idempotency_key, admin, uid)
        return REINSTATED_JSON

    async def list_suspended(self, page_request: PageRequest) -> Page:
        """Return the suspended users as JSON with ``since``, newest first, for an administrator.

        Raises InvalidCursor.
        """
        return await read_page(self._scripts, "suspended_users_page", keys.key_for("suspended"), page_request)
