"""Blocks: neither sees the other, nor follows the other, until the block is taken back."""

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts
from stream_server.store.syndication import Pair, Syndication


class Blocks:
    """Who blocks whom in one store."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def block(self, source: str, target: str, request: Request) -> None:
        """Block a user; follows and requests of both end, and both home timelines follow in the same call.

        Already so changes nothing. Raises BadRequest for oneself, and NotFound for whom one may not know of, which
        whoever blocks the source is among: so only one of two ever blocks the other.
        """
        answer = await self._scripts.write("block", request, source, target)
        if answer.again:
            return
        fence, recent, fence_back, recent_back = answer.extra
        await self._syndication.pair(
            Pair("home", source, target, "remove", fence, recent),
            Pair("home", target, source, "remove", fence_back, recent_back),
        )

    async def unblock(self, source: str, target: str, request: Request) -> None:
        """Block no longer; what was cut stays cut. Raises as :meth:`block` does."""
        await self._scripts.write("unblock", request, source, target)

    async def page(self, uid: str, piece: Piece) -> Page:
        """Whom a user blocks, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("blocks", uid), piece, uid, "", "")
