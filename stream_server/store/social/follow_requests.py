"""Requests to follow protected users: made by following them, withdrawn by not following, answered here."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts
from stream_server.store.timelines.syndication import Syndication, TimelineChange


class FollowRequests:
    """The requests of one store that wait for an answer; they stay when the one who is asked protects no more."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def list_received(self, uid: str, page_request: PageRequest) -> Page:
        """Who asks to follow a user, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await read_page(self._scripts, "users_page", keys.key_for("asks", uid), page_request, uid, "", "")

    async def list_sent(self, uid: str, page_request: PageRequest) -> Page:
        """Whom a user asks to follow, as :meth:`list_received`."""
        return await read_page(self._scripts, "users_page", keys.key_for("asked", uid), page_request, uid, "", "")

    async def approve(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Let ``requester`` follow, who has asked to; the home timeline of ``requester`` follows in the same call.

        Raises NotFound where nobody asks, any more or yet.
        """
        answer = await self._scripts.write("follow_request_approve", idempotency_key, uid, requester)
        if not answer.is_repeat:
            fence, recent = answer.first_time_extra
            await self._syndication.apply_changes(TimelineChange("home", requester, uid, "merge", fence, recent))

    async def refuse(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Do not let ``requester`` follow; raises as :meth:`approve` does."""
        await self._scripts.write("follow_request_refuse", idempotency_key, uid, requester)
