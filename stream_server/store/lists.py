"""Lists: people whom a user reads together; their owner's alone, or to be seen by everyone."""

from collections.abc import Mapping

import msgspec

from stream_server.store import keys, words
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Answer, Scripts
from stream_server.store.syndication import Pair, Syndication

_encode = msgspec.json.encode


class Lists:
    """The lists of one store: at most 1,000 of a user, with at most 5,000 members each.

    All that name a list raise NotFound for one that the user may not see (another's private one, or one of somebody
    who blocks them or is suspended), and what changes one Forbidden ``not_yours`` where it is another's.
    """

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def create(self, uid: str, name: str, description: str, private: bool, request: Request) -> bytes:  # noqa: FBT001 - the member of the body
        """A new list, as JSON; raises TooLarge ``too_many``."""
        answer = await self._scripts.write(
            "list_create", request, uid, _flag(private), name, description, _encode(name), _encode(description)
        )
        return words.json_of(answer)

    async def update(self, uid: str, list_id: str, changes: Mapping[str, str | bool], request: Request) -> bytes:
        """Change ``name``, ``description`` or ``private``, as JSON; what is so already is no event."""
        fields = words.pairs(**{name: word for name, word in changes.items() if isinstance(word, str)})
        for name, flag in changes.items():
            if isinstance(flag, bool):
                fields += (name, _flag(flag))
        return words.json_of(await self._scripts.write("list_update", request, uid, list_id, *fields))

    async def delete(self, uid: str, list_id: str, request: Request) -> None:
        """Nobody sees it any more; its timeline is cleared away by a job."""
        await self._scripts.write("list_delete", request, uid, list_id)

    async def get(self, viewer: str, list_id: str) -> bytes:
        """A list as JSON."""
        found: bytes = await self._scripts.read("list_card", keys.META, viewer, list_id)
        return found

    async def of(self, viewer: str, uid: str, piece: Piece) -> Page:
        """A user's lists, the newest first: all of one's own, another's public ones; raises NotFound, InvalidCursor."""
        return await walk(self._scripts, "lists", keys.named("lists", uid), piece, viewer, uid)

    async def listed(self, viewer: str, uid: str, piece: Piece) -> Page:
        """The lists that a user is on, the latest first, as far as the viewer may see them; raises as :meth:`of`."""
        return await walk(self._scripts, "lists", keys.named("listed", uid), piece, viewer, uid)

    async def add(self, uid: str, list_id: str, member: str, request: Request) -> bytes:
        """Put a user on one's list, whose timeline has their posts by then; gives the list as JSON.

        Raises NotFound ``uid`` for whom one may not know of or blocks, TooLarge ``too_many``.
        """
        answer = await self._scripts.write("list_add", request, uid, list_id, member)
        await self._settle("merge", list_id, member, answer)
        return words.json_of(answer)

    async def remove(self, uid: str, list_id: str, member: str, request: Request) -> bytes:
        """Take a user off one's list; gives the list as JSON. Raises NotFound ``uid`` for whom one may not know of."""
        answer = await self._scripts.write("list_remove", request, uid, list_id, member)
        await self._settle("remove", list_id, member, answer)
        return words.json_of(answer)

    async def members(self, viewer: str, list_id: str, piece: Piece) -> Page:
        """Who is on a list, as JSON with ``since``, the latest first; raises InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("members", list_id), piece, viewer, "list", list_id)

    async def _settle(self, mode: str, list_id: str, member: str, answer: Answer) -> None:
        """The timeline follows in the same call; a repetition was answered before, and its job is under way."""
        if answer.again:
            return
        fence, recent = answer.extra
        await self._syndication.pair(Pair("list", list_id, member, mode, fence, recent))


def _flag(value: bool) -> str:  # noqa: FBT001 - it is all there is
    return "1" if value else "0"
