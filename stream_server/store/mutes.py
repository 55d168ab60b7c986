"""Mutes: a user wants to hear no more of another, who is not told."""

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts


class Mutes:
    """Who mutes whom in one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def mute(self, source: str, target: str, request: Request) -> None:
        """Mute a user; already so changes nothing. Raises NotFound, and BadRequest for oneself."""
        await self._scripts.write("mute", request, source, target)

    async def unmute(self, source: str, target: str, request: Request) -> None:
        """Mute no longer; raises as :meth:`mute` does."""
        await self._scripts.write("unmute", request, source, target)

    async def page(self, uid: str, piece: Piece) -> Page:
        """Whom a user mutes, as JSON with ``since``, newest first; raises InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("mutes", uid), piece, uid, "", "")
