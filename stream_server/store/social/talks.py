"""Talks: messages among people named beforehand, whom nobody joins later; only they read them."""

from collections.abc import Sequence

import msgspec

from stream_server.errors import BadRequest
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social import text_fields

_encode = msgspec.json.encode


class Talks:
    """The talks of one store. All that name a talk raise NotFound for whoever is not in it."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def open(
        self, uid: str, other_uids: Sequence[str], name: str | None, idempotency_key: IdempotencyKey
    ) -> tuple[bytes, bool]:
        """A talk with these others, as JSON, and whether it is new: two people have one talk only, without a name.

        Raises NotFound ``other_uids`` if one of them is unknown, suspended or blocked either way, BadRequest ``other_uids``
        for oneself among them and for nobody.
        """
        others = list(dict.fromkeys(other_uids))
        if uid in others or not others:
            raise BadRequest("others than oneself, at least one", param="people")
        named = name if len(others) > 1 else None
        answer = await self._scripts.write("talk_open", idempotency_key, uid, _encode(named), named or "", *others)
        return text_fields.json_of_reply(answer), answer.value.startswith(b"opened ")

    async def get(self, viewer: str, talk: str) -> bytes:
        """A talk as JSON, with its last message, if there is one to be seen, and how many are unread, up to 100."""
        found: bytes = await self._scripts.call("talk_get", keys.META, viewer, talk)
        return found

    async def list_talks(self, uid: str, page_request: PageRequest) -> Page:
        """A user's talks as :meth:`get` gives them, those with the latest messages first; raises InvalidCursor."""
        return await read_page(self._scripts, "talks_page", keys.key_for("talks", uid), page_request, uid)

    async def send_message(self, uid: str, talk: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """A message, as JSON, the same bytes as on the log; one has read what stands before one's own words.

        Raises NotFound also in a talk of two where one blocks the other, or is suspended, by now.
        """
        answer = await self._scripts.write("talk_send", idempotency_key, uid, talk, _encode(message), message)
        if not answer.is_repeat:
            json: bytes = answer.first_time_extra[0]
            return json
        key = keys.key_for("message", str(position_of(answer).status_number))
        (sent,) = await self._redis.execute(("HGET", key, "json"))
        return bytes(sent)

    async def get_message(self, viewer: str, talk: str, message_id: str) -> bytes:
        """One message of a talk, as JSON; raises NotFound also where :meth:`list_messages` leaves it out."""
        found: bytes = await self._scripts.call("talk_message_get", keys.META, viewer, talk, message_id)
        return found

    async def list_messages(self, viewer: str, talk: str, page_request: PageRequest) -> Page:
        """The messages of a talk, the newest first, without those of people who block the viewer or are blocked.

        Raises InvalidCursor.
        """
        return await read_page(
            self._scripts, "talk_messages_page", keys.key_for("messages", talk), page_request, viewer, talk
        )

    async def mark_read(self, uid: str, talk: str, message_id: str, idempotency_key: IdempotencyKey) -> bytes:
        """Read up to this message: ``{"read", "unread"}`` as JSON; an older one than before changes nothing.

        Raises NotFound also for a message that is not there.
        """
        return text_fields.json_of_reply(
            await self._scripts.write("talk_mark_read", idempotency_key, uid, talk, message_id)
        )
