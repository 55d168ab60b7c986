"""Groups: people who post among themselves; open to all, closed, or for announcements of the owner."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys, words
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts

_encode = msgspec.json.encode


class Groups:
    """The groups of one store: at most 5,000 members each, a user in at most 1,000.

    All that name a group raise NotFound for one that the user may not see: a private one of which they are no
    member, or one of somebody who blocks them or is suspended, unless they are a member. What is the owner's to do
    raises Forbidden ``not_yours`` for others.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def create(self, uid: str, name: str, kind: str, description: str, request: Request) -> bytes:
        """A new group, ``public``, ``private`` or ``announcement``, with its owner in it, as JSON.

        Raises TooLarge ``too_many`` for who is in too many.
        """
        answer = await self._scripts.write(
            "group_create", request, uid, kind, name, description, _encode(name), _encode(description)
        )
        return words.json_of(answer)

    async def update(self, uid: str, group: str, changes: Mapping[str, str], request: Request) -> bytes:
        """Change ``name`` or ``description``, as JSON; what is so already is no event.

        A kind never changes: what was written among few would be open to all.
        """
        answer = await self._scripts.write("group_update", request, uid, group, *words.pairs(**changes))
        return words.json_of(answer)

    async def delete(self, uid: str, group: str, request: Request) -> None:
        """It is gone for all members; its statuses are left to their authors alone."""
        await self._scripts.write("group_delete", request, uid, group)

    async def get(self, viewer: str, group: str) -> bytes:
        """A group as JSON."""
        found: bytes = await self._scripts.read("group_card", keys.META, viewer, group)
        return found

    async def of(self, viewer: str, uid: str, piece: Piece) -> Page:
        """The groups that a user is in, the latest first, as far as the viewer sees them.

        Raises NotFound, InvalidCursor.
        """
        return await walk(self._scripts, "groups", keys.named("groups", uid), piece, viewer, uid)

    async def join(self, uid: str, group: str, request: Request) -> bytes:
        """Come into a group that is not private; gives it as JSON. Raises TooLarge ``too_many``."""
        return await self.add(uid, group, uid, request)

    async def leave(self, uid: str, group: str, request: Request) -> bytes:
        """Go out of a group; gives it as JSON. Raises BadRequest for its owner."""
        return await self.remove(uid, group, uid, request)

    async def add(self, uid: str, group: str, member: str, request: Request) -> bytes:
        """Put a user into one's private group; gives it as JSON.

        Raises NotFound ``uid`` for whom one may not know of or blocks, BadRequest where people come by themselves,
        TooLarge ``too_many``.
        """
        return words.json_of(await self._scripts.write("group_join", request, uid, group, member))

    async def remove(self, uid: str, group: str, member: str, request: Request) -> bytes:
        """Take a user out of one's group; gives it as JSON. Raises NotFound ``uid``, BadRequest for the owner."""
        return words.json_of(await self._scripts.write("group_leave", request, uid, group, member))

    async def members(self, viewer: str, group: str, piece: Piece) -> Page:
        """Who is in a group, as JSON with ``since``, the latest first; raises InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("joined", group), piece, viewer, "group", group)
