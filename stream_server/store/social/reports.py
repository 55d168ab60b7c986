"""Moderation: reports of users and statuses, the decisions of administrators, and suspensions."""

from enum import StrEnum

import msgspec

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import FanOut

_KEY_NAME_BY_STATE = {"open": "reports", "decided": "decided"}


class ReportOutcome(StrEnum):
    """An administrator's decision about a report."""

    DISMISSED = "dismissed"  # the report was unfounded; nothing changes
    REMOVED = "removed"  # the reported status is deleted
    SUSPENDED = "suspended"  # the reported user, or the author of the reported status, is suspended


class Reports(Noun):
    """Creates, reads and decides reports. A report is a user's complaint about a user or a status."""

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
        """Report a user or a status. Returns the report as JSON, and whether the report is new.

        If the reporter already has an open report of the user or status, returns that report. Raises NotFound if the
        reporter may not see the user or status, and BadRequest if reporters report themselves.
        """
        arguments = (user or "", status or "", reason, msgspec.json.encode(note))
        reply = await self._scripts.write("report_create", idempotency_key, uid, *arguments)
        report = await self.get(uid, reply.value.decode()) if reply.is_repeat else reply.first_time_extra[0]
        return report, reply.value != b"unchanged"

    async def get(self, uid: str, report: str) -> bytes:
        """Return a report, with its decision, as JSON. Raises NotFound for users other than its reporter ``uid``."""
        return await self._read("report_get", report, uid)

    async def list_reports(self, page_request: PageRequest, state: str) -> Page:
        """Return the reports whose state is ``open`` or ``decided`` as JSON, newest first, for an administrator.

        Each report contains the reported user and status as they are now, even if they are hidden from other users.
        """
        return await self._page("reports_page", _KEY_NAME_BY_STATE[state], "", page_request)

    async def decide(
        self, admin: str, report: str, outcome: ReportOutcome, remark: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """Decide a report: ``removed`` deletes the status, ``suspended`` suspends the user, ``dismissed`` does neither.

        The decision and its consequence are one atomic step. Returns the decided report as JSON. The same decision
        again changes nothing. Raises NotFound for an unknown report, Conflict if another outcome was decided before,
        and BadRequest for ``removed`` if the report names no status, or if administrators suspend themselves.
        """
        arguments = (admin, report, outcome.value, msgspec.json.encode(remark))
        reply = await self._scripts.write("report_decide", idempotency_key, *arguments)
        if reply.is_repeat:
            return await self._read("report_get", report, "")
        decided: bytes
        decided, *readers, author, status = reply.first_time_extra
        await self._syndication.withdraw(FanOut(author.decode(), status.decode(), *readers))
        return decided


class Suspensions(Noun):
    """Suspends and reinstates users. A suspension hides all that a user wrote. Reinstating makes it visible again."""

    async def suspend(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """Suspend a user. Returns ``{"suspended":true}``. The log entry makes all servers end the user's streams.

        Raises NotFound for an unknown user, and BadRequest if administrators suspend themselves.
        """
        await self._scripts.write("suspension_change", idempotency_key, admin, uid, "suspend")
        return b'{"suspended":true}'

    async def reinstate(self, admin: str, uid: str, idempotency_key: IdempotencyKey) -> bytes:
        """End a suspension. Returns ``{"suspended":false}``. Raises NotFound for an unknown user."""
        await self._scripts.write("suspension_change", idempotency_key, admin, uid, "reinstate")
        return b'{"suspended":false}'

    async def list_suspended(self, page_request: PageRequest) -> Page:
        """Return the suspended users as JSON, last suspended first, for an administrator."""
        return await self._page("users_page", "suspended", "", page_request, "", "admin", "")
