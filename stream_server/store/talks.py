"""Talks: messages among people named beforehand, whom nobody joins later; only they read them."""

from collections.abc import Sequence

import msgspec

from stream_server.errors import BadRequest
from stream_server.store import keys, words
from stream_server.store.link import Link
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts, position_of

_encode = msgspec.json.encode


class Talks:
    """The talks of one store. All that name a talk raise NotFound for whoever is not in it."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def open(self, uid: str, people: Sequence[str], name: str | None, request: Request) -> tuple[bytes, bool]:
        """A talk with these others, as JSON, and whether it is new: two people have one talk only, without a name.

        Raises NotFound ``people`` if one of them is unknown, suspended or blocked either way, BadRequest ``people``
        for oneself among them and for nobody.
        """
        others = list(dict.fromkeys(people))
        if uid in others or not others:
            raise BadRequest("others than oneself, at least one", param="people")
        named = name if len(others) > 1 else None
        answer = await self._scripts.write("talk_open", request, uid, _encode(named), named or "", *others)
        return words.json_of(answer), answer.value.startswith(b"opened ")

    async def get(self, viewer: str, talk: str) -> bytes:
        """A talk as JSON, with its last message, if there is one to be seen, and how many are unread, up to 100."""
        found: bytes = await self._scripts.read("talk_card", keys.META, viewer, talk)
        return found

    async def of(self, uid: str, piece: Piece) -> Page:
        """A user's talks as :meth:`get` gives them, those with the latest messages first; raises InvalidCursor."""
        return await walk(self._scripts, "talks", keys.named("talks", uid), piece, uid)

    async def send(self, uid: str, talk: str, message: str, request: Request) -> bytes:
        """A message, as JSON, the same bytes as on the log; one has read what stands before one's own words.

        Raises NotFound also in a talk of two where one blocks the other, or is suspended, by now.
        """
        answer = await self._scripts.write("talk_send", request, uid, talk, _encode(message), message)
        if not answer.again:
            json: bytes = answer.extra[0]
            return json
        key = keys.named("message", str(position_of(answer).status_number))
        (sent,) = await self._link.ask(("HGET", key, "json"))
        return bytes(sent)

    async def message(self, viewer: str, talk: str, message_id: str) -> bytes:
        """One message of a talk, as JSON; raises NotFound also where :meth:`messages` leaves it out."""
        found: bytes = await self._scripts.read("talk_message", keys.META, viewer, talk, message_id)
        return found

    async def messages(self, viewer: str, talk: str, piece: Piece) -> Page:
        """The messages of a talk, the newest first, without those of people who block the viewer or are blocked.

        Raises InvalidCursor.
        """
        return await walk(self._scripts, "talk_messages", keys.named("messages", talk), piece, viewer, talk)

    async def read(self, uid: str, talk: str, message_id: str, request: Request) -> bytes:
        """Read up to this message: ``{"read", "unread"}`` as JSON; an older one than before changes nothing.

        Raises NotFound also for a message that is not there.
        """
        return words.json_of(await self._scripts.write("talk_read", request, uid, talk, message_id))
