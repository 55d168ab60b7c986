"""The audit log: what administrators did, when, and to whom. A deed and its record are one step."""

from collections.abc import Sequence

from stream_server.store import keys
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.social.noun import Noun


class AuditLog(Noun):
    """Reads the audit log, which has the newest 100,000 deeds."""

    async def list_deeds(self, page_request: PageRequest) -> Page:
        """Return the deeds of administrators as JSON, newest first."""

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            (deeds,) = await self._redis.execute(("HMGET", keys.key_for("deeds"), *(member for member, _ in members)))
            return list(deeds)

        return await self._page("audit", "", page_request, show)
