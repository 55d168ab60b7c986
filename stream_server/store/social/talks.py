"""Talks: direct messages among a fixed set of users. Only these users can read a talk."""

from collections.abc import Sequence

import msgspec

from stream_server.errors import BadRequest
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social.stored_json import json_of_reply

_encode = msgspec.json.encode


class Talks:
    """Opens talks, and sends and reads their messages.

    Methods that name a talk raise NotFound for users who do not take part in it.
    """

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def open(
        self, uid: str, other_uids: Sequence[str], name: str | None, idempotency_key: IdempotencyKey
    ) -> tuple[bytes, bool]:
        """Open a talk with other users. Returns its JSON and whether it is new.

        Two users have only one talk, and it has no name; opening it again returns the existing one.

        Raises NotFound ``people`` if one of the others is unknown or suspended, or if a block exists in either
        direction. Raises BadRequest ``people`` if the others include the user or are empty.
        """
        others = list(dict.fromkeys(other_uids))
        if uid in others or not others:
            raise BadRequest("must name at least one other user, and not yourself", param="people")
        talk_name = name if len(others) > 1 else None
        reply = await self._scripts.write(
            "talk_open", idempotency_key, uid, _encode(talk_name), talk_name or "", *others
        )
        return json_of_reply(reply), reply.value.startswith(b"opened ")

    async def get(self, viewer: str, talk: str) -> bytes:
        """Return a talk as JSON, with the last message that the viewer may see and the unread count (up to 100)."""
        found: bytes = await self._scripts.call("talk_get", keys.META, viewer, talk)
        return found

    async def list_talks(self, uid: str, page_request: PageRequest) -> Page:
        """Return the talks of a user in the form of :meth:`get`, latest message first. Raises InvalidCursor."""
        return await read_page(self._scripts, "talks_page", keys.key_for("talks", uid), page_request, uid)

    async def send_message(self, uid: str, talk: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Send a message. Returns it as JSON, the same bytes as on the log.

        Sending marks all earlier messages of the talk as read for the sender. In a talk of two users, raises NotFound
        if one of them blocks the other or is suspended.
        """
        reply = await self._scripts.write("talk_send", idempotency_key, uid, talk, _encode(message), message)
        if not reply.is_repeat:
            json: bytes = reply.first_time_extra[0]
            return json
        key = keys.key_for("message", str(position_of(reply).status_number))
        (sent,) = await self._redis.execute(("HGET", key, "json"))
        return bytes(sent)

    async def get_message(self, viewer: str, talk: str, message_id: str) -> bytes:
        """Return one message of a talk as JSON. Raises NotFound also if :meth:`list_messages` would leave it out."""
        found: bytes = await self._scripts.call("talk_message_get", keys.META, viewer, talk, message_id)
        return found

    async def list_messages(self, viewer: str, talk: str, page_request: PageRequest) -> Page:
        """Return the messages of a talk, newest first, without those of suspended users and across blocks.

        Raises InvalidCursor.
        """
        key = keys.key_for("messages", talk)
        return await read_page(self._scripts, "talk_messages_page", key, page_request, viewer, talk)

    async def mark_read(self, uid: str, talk: str, message_id: str, idempotency_key: IdempotencyKey) -> bytes:
        """Mark a talk as read up to a message. Returns ``{"read", "unread"}`` as JSON.

        The mark never moves back: an older message changes nothing. Raises NotFound for an unknown message.
        """
        return json_of_reply(await self._scripts.write("talk_mark_read", idempotency_key, uid, talk, message_id))
