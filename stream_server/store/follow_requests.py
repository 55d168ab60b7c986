"""Requests to follow protected users: made by following them, withdrawn by not following, answered here."""

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts
from stream_server.store.syndication import Pair, Syndication


class FollowRequests:
    """The requests of one store that wait for an answer; they stay when the one who is asked protects no more."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def received(self, uid: str, piece: Piece) -> Page:
        """Who asks to follow a user, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("asks", uid), piece, uid, "", "")

    async def sent(self, uid: str, piece: Piece) -> Page:
        """Whom a user asks to follow, as :meth:`received`."""
        return await walk(self._scripts, "people", keys.named("asked", uid), piece, uid, "", "")

    async def approve(self, uid: str, source: str, request: Request) -> None:
        """Let ``source`` follow, who has asked to; the home timeline of ``source`` follows in the same call.

        Raises NotFound where nobody asks, any more or yet.
        """
        answer = await self._scripts.write("approve", request, uid, source)
        if not answer.again:
            fence, recent = answer.extra
            await self._syndication.pair(Pair("home", source, uid, "merge", fence, recent))

    async def refuse(self, uid: str, source: str, request: Request) -> None:
        """Do not let ``source`` follow; raises as :meth:`approve` does."""
        await self._scripts.write("refuse", request, uid, source)
