"""Talks: direct messages among a fixed set of users. Only these users can read a talk."""

from collections.abc import Sequence

import msgspec

from stream_server.errors import BadRequest
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.redis.scripts import position_of
from stream_server.store.social.noun import Noun
from stream_server.store.social.stored_json import encode_json

_NEW_TALK_MEMBERS = ("id", "people", "name", "created")


class Talks(Noun):
    """Opens talks (direct conversations), sends and reads messages. Raises NotFound if the user is not in the talk."""

    async def open(
        self, uid: str, other_uids: Sequence[str], name: str | None, idempotency_key: IdempotencyKey
    ) -> tuple[bytes, bool]:
        """Open a talk (a direct conversation) with other users. Returns the talk as JSON, and whether it is new.

        Two users have only one talk, which has no name. A second call returns the same talk. Raises NotFound (``param``
        is ``people``) if one of the others is unknown or suspended, or if a block exists between one of them and the
        user. Raises BadRequest if ``other_uids`` includes the user or is empty.

        For users who do not follow ``uid``, the talk is a request: they get no events of it until they answer, and see
        its first three messages only. Raises Forbidden ``unanswered`` (``param`` is ``people``) if one of them has not
        answered another talk that ``uid`` opened.
        """
        others = list(dict.fromkeys(other_uids))
        if uid in others or not others:
            raise BadRequest("must name at least one other user, and not yourself", param="people")
        talk_name = name if len(others) > 1 else None
        names = (encode_json(talk_name), talk_name or "")
        reply = await self._scripts.write("talk_open", idempotency_key, uid, *names, *others)
        if reply.is_repeat:  # then as now but for its messages, which it had none of
            talk = msgspec.json.decode(await self.get(uid, reply.value.decode()))
            return encode_json({name: talk[name] for name in _NEW_TALK_MEMBERS} | {"unread": 0}), True
        return reply.first_time_extra[0], reply.value != b"unchanged"

    async def get(self, viewer: str, talk: str) -> bytes:
        """Return a talk as JSON, with the last message that the viewer may see and the unread count (up to 100)."""
        return await self._read("talk_get", viewer, talk)

    async def accept(self, uid: str, talk: str, idempotency_key: IdempotencyKey) -> None:
        """Accept a talk that a stranger opened. From now on the user gets its messages as events."""
        await self._scripts.write("talk_answer", idempotency_key, uid, talk, "accept")

    async def refuse(self, uid: str, talk: str, idempotency_key: IdempotencyKey) -> None:
        """Refuse a talk that a stranger opened. The user no longer sees it. An accepted talk stays."""
        await self._scripts.write("talk_answer", idempotency_key, uid, talk, "refuse")

    async def list_requests(self, uid: str, page_request: PageRequest) -> Page:
        """Return the talks that strangers opened with a user, and which wait for an answer, as JSON."""
        return await self._page("talks_page", "talk_requests", uid, page_request, uid)

    async def list_talks(self, uid: str, page_request: PageRequest) -> Page:
        """Return the talks of a user as JSON, sorted by the time of their last messages, the newest first."""
        return await self._page("talks_page", "talks", uid, page_request, uid)

    async def send_message(self, uid: str, talk: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Send a message to a talk (a direct conversation). Returns it as JSON, with the bytes of the log entry.

        This also marks all earlier messages of the talk as read for the sender, and accepts a request. In a talk of two
        users, raises NotFound if one of them blocks the other or is suspended. Raises Forbidden ``unanswered`` after
        three messages that none of the others has answered, if the talk is a request for all of them.
        """
        reply = await self._scripts.write("talk_send", idempotency_key, uid, talk, encode_json(message), message)
        if not reply.is_repeat:
            json: bytes = reply.first_time_extra[0]
            return json
        key = keys.key_for("message", str(position_of(reply).status_number))
        (sent,) = await self._redis.execute(("HGET", key, "json"))
        return bytes(sent)

    async def get_message(self, viewer: str, talk: str, message_id: str) -> bytes:
        """Return a message of a talk as JSON. Raises NotFound if it is unknown or hidden by a block or a suspension."""
        return await self._read("talk_message_get", viewer, talk, message_id)

    async def list_messages(self, viewer: str, talk: str, page_request: PageRequest) -> Page:
        """Return a talk's messages as JSON, newest first, without those of suspended, blocking or blocked users."""
        return await self._page("talk_messages_page", "messages", talk, page_request, viewer, talk)

    async def mark_read(self, uid: str, talk: str, message_id: str, idempotency_key: IdempotencyKey) -> bytes:
        """Mark a talk as read up to a message. If the user has read a later message, nothing changes.

        Returns ``read`` (the id of the last read message) and ``unread`` (the number of unread messages) as JSON.
        """
        reply = await self._scripts.write("talk_mark_read", idempotency_key, uid, talk, message_id)
        *_, read, unread = reply.value.split(b" ")
        return b'{"read":"%b","unread":%b}' % (read, unread)
