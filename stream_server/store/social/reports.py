"""Reports of users and statuses, and what administrators decide."""

from enum import StrEnum

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.timelines.syndication import Syndication

_KEY_NAME_BY_STATE = {"open": "reports", "decided": "decided"}


class ReportOutcome(StrEnum):
    """What an administrator decides."""

    DISMISSED = "dismissed"
    """Nothing was wrong."""
    REMOVED = "removed"
    """The reported status is deleted."""
    SUSPENDED = "suspended"
    """The reported user, or the author of the reported status, is suspended."""


class Reports:
    """The reports of one store."""

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
        """The report of a user or of a status as JSON, and whether it is new: while one is open, it is not made twice.

        Raises NotFound for what the reporter may not see, BadRequest for oneself.
        """
        told = msgspec.json.encode(note)
        answer = await self._scripts.write(
            "report_create", idempotency_key, uid, user or "", status or "", reason, told
        )
        report, _, which = answer.value.partition(b" ")
        if answer.is_repeat:
            return await self.get(uid, report.decode()), which == b"new"
        return answer.first_time_extra[0], which == b"new"

    async def get(self, uid: str, report: str) -> bytes:
        """A report as JSON for who made it, with what became of it; raises NotFound for everybody else."""
        return await self._read_report(report, uid)

    async def list_reports(self, page_request: PageRequest, state: str) -> Page:
        """The ``open`` or the ``decided`` reports as JSON, newest first, for an administrator; raises InvalidCursor.

        Each has what was reported, as it is now and whoever may see it.
        """
        return await read_page(self._scripts, "reports_page", keys.key_for(_KEY_NAME_BY_STATE[state]), page_request)

    async def decide(
        self, admin: str, report: str, outcome: ReportOutcome, remark: str, idempotency_key: IdempotencyKey
    ) -> bytes:
        """The report as JSON, decided; what the outcome does is done in the same step.

        The same decision again changes nothing. Raises NotFound, BadRequest for the removal of what is no status and
        for the suspension of oneself, Conflict where another outcome was decided before.
        """
        told = msgspec.json.encode(remark)
        answer = await self._scripts.write("report_decide", idempotency_key, admin, report, outcome.value, told)
        if answer.is_repeat:
            return await self._read_report(report, "")
        return await self._finish_decision(answer)

    async def _finish_decision(self, reply: WriteReply) -> bytes:
        case: bytes
        case, fence, people, lists, author, status = reply.first_time_extra
        if fence:
            await self._syndication.withdraw(author.decode(), status.decode(), fence, people, lists)
        return case

    async def _read_report(self, report: str, reporter: str) -> bytes:
        card: bytes = await self._scripts.call("report_get", keys.META, report, reporter)
        return card
