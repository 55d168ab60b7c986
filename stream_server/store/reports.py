"""Reports of users and statuses, and what administrators decide."""

from enum import StrEnum

import msgspec

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Answer, Scripts
from stream_server.store.syndication import Syndication

_LISTS = {"open": "reports", "decided": "decided"}


class Outcome(StrEnum):
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
        self, uid: str, *, user: str | None = None, status: str | None = None, reason: str, note: str, request: Request
    ) -> tuple[bytes, bool]:
        """The report of a user or of a status as JSON, and whether it is new: while one is open, it is not made twice.

        Raises NotFound for what the reporter may not see, BadRequest for oneself.
        """
        told = msgspec.json.encode(note)
        answer = await self._scripts.write("report", request, uid, user or "", status or "", reason, told)
        report, _, which = answer.value.partition(b" ")
        if answer.again:
            return await self.get(uid, report.decode()), which == b"new"
        return answer.extra[0], which == b"new"

    async def get(self, uid: str, report: str) -> bytes:
        """A report as JSON for who made it, with what became of it; raises NotFound for everybody else."""
        return await self._card(report, uid)

    async def page(self, piece: Piece, state: str) -> Page:
        """The ``open`` or the ``decided`` reports as JSON, newest first, for an administrator; raises InvalidCursor.

        Each has what was reported, as it is now and whoever may see it.
        """
        return await walk(self._scripts, "reports", keys.named(_LISTS[state]), piece)

    async def decide(self, admin: str, report: str, outcome: Outcome, remark: str, request: Request) -> bytes:
        """The report as JSON, decided; what the outcome does is done in the same step.

        The same decision again changes nothing. Raises NotFound, BadRequest for the removal of what is no status and
        for the suspension of oneself, Conflict where another outcome was decided before.
        """
        told = msgspec.json.encode(remark)
        answer = await self._scripts.write("decide", request, admin, report, outcome.value, told)
        if answer.again:
            return await self._card(report, "")
        return await self._settle(answer)

    async def _settle(self, answer: Answer) -> bytes:
        case: bytes
        case, fence, people, lists, author, status = answer.extra
        if fence:
            await self._syndication.clean(author.decode(), status.decode(), fence, people, lists)
        return case

    async def _card(self, report: str, reporter: str) -> bytes:
        card: bytes = await self._scripts.read("report_card", keys.META, report, reporter)
        return card
