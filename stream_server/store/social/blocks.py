"""Blocks: neither sees the other, nor follows the other, until the block is taken back."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts
from stream_server.store.timelines.syndication import Syndication, TimelineChange


class Blocks:
    """Who blocks whom in one store."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def block(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Block a user; follows and requests of both end, and both home timelines follow in the same call.

        Already so changes nothing. Raises BadRequest for oneself, and NotFound for whom one may not know of, which
        whoever blocks the source is among: so only one of two ever blocks the other.
        """
        answer = await self._scripts.write("block", idempotency_key, uid, blocked_uid)
        if answer.is_repeat:
            return
        fence, recent, fence_back, recent_back = answer.first_time_extra
        await self._syndication.apply_changes(
            TimelineChange("home", uid, blocked_uid, "remove", fence, recent),
            TimelineChange("home", blocked_uid, uid, "remove", fence_back, recent_back),
        )

    async def unblock(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Block no longer; what was cut stays cut. Raises as :meth:`block` does."""
        await self._scripts.write("unblock", idempotency_key, uid, blocked_uid)

    async def list_blocked(self, uid: str, page_request: PageRequest) -> Page:
        """Whom a user blocks, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await read_page(self._scripts, "users_page", keys.key_for("blocks", uid), page_request, uid, "", "")
