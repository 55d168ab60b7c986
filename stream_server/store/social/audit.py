"""The audit log: what administrators did, when, and to whom. A deed and its record are one step."""

from stream_server.store.pagination import Page, PageRequest
from stream_server.store.social.noun import Noun


class AuditLog(Noun):
    """Reads the audit log, which has the newest 100,000 deeds."""

    async def list_deeds(self, page_request: PageRequest) -> Page:
        """Return the deeds of administrators as JSON, newest first."""
        return await self._page("audit_page", "audit", "", page_request)
