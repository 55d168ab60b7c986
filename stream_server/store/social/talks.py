"""Talks: direct messages among a fixed set of users. Only these users can read a talk."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from stream_server.errors import BadRequest
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads.sight import Sight, not_found
from stream_server.store.reads.users import time_text
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import KeyRead
from stream_server.store.redis.scripts import position_of
from stream_server.store.social.noun import Noun, encode_json

MAX_UNREAD, MESSAGES_SEARCHED, MAX_UNANSWERED = 100, 64, 3
"""Limits of a talk: the unread messages that are counted, the newest ones among which the last visible one is searched,
and those that are shown before the viewer has accepted the talk. ``lua/talk.lua`` has the last limit, too."""

_AUTHOR_READ = KeyRead(b"HGET", keys.key_for("message").encode(), b"uid")


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
        reply = await self._scripts.write(
            "talk_open", idempotency_key, uid=uid, name_json=encode_json(talk_name), rest=others
        )
        if reply.is_repeat:  # then as now but for its messages, which it had none of
            talk = msgspec.json.decode(await self.get(uid, reply.value.decode()))
            return encode_json({each: talk[each] for each in ("id", "people", "name", "created")} | {"unread": 0}), True
        return await self.get(uid, reply.first_time["id"].decode()), reply.value != b"unchanged"

    async def get(self, viewer: str, talk: str) -> bytes:
        """Return a talk as JSON, with the last message that the viewer may see and the unread count (up to 100)."""
        sight = self._sight(viewer)
        (found,) = await self._show(sight, [await self._require(sight, talk)])
        return found

    async def accept(self, uid: str, talk: str, idempotency_key: IdempotencyKey) -> None:
        """Accept a talk that a stranger opened. From now on the user gets its messages as events."""
        await self._scripts.write("talk_answer", idempotency_key, uid=uid, id=talk, answer="accept")

    async def refuse(self, uid: str, talk: str, idempotency_key: IdempotencyKey) -> None:
        """Refuse a talk that a stranger opened. The user no longer sees it. An accepted talk stays."""
        await self._scripts.write("talk_answer", idempotency_key, uid=uid, id=talk, answer="refuse")

    async def list_requests(self, uid: str, page_request: PageRequest) -> Page:
        """Return the talks that strangers opened with a user, and which wait for an answer, as JSON."""
        return await self._list("talk_requests", uid, page_request)

    async def list_talks(self, uid: str, page_request: PageRequest) -> Page:
        """Return the talks of a user as JSON, sorted by the time of their last messages, the newest first."""
        return await self._list("talks", uid, page_request)

    async def send_message(self, uid: str, talk: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Send a message to a talk (a direct conversation). Returns it as JSON, with the bytes of the log entry.

        This also marks all earlier messages of the talk as read for the sender, and accepts a request. In a talk of two
        users, raises NotFound if one of them blocks the other or is suspended. Raises Forbidden ``unanswered`` after
        three messages that none of the others has answered, if the talk is a request for all of them.
        """
        message_json = encode_json(message)
        reply = await self._scripts.write(
            "talk_send", idempotency_key, uid=uid, talk_id=talk, message_json=message_json
        )
        if not reply.is_repeat:
            json: bytes = reply.first_time["json"]
            return json
        key = keys.key_for("message", str(position_of(reply).status_number))
        (sent,) = await self._redis.execute(("HGET", key, "json"))
        return bytes(sent)

    async def get_message(self, viewer: str, talk: str, message_id: str) -> bytes:
        """Return a message of a talk as JSON. Raises NotFound if it is unknown or hidden by a block or a suspension."""
        sight, key = self._sight(viewer), keys.key_for("message", message_id)
        found = await self._require(sight, talk)
        ((author, json, its_talk),) = await self._redis.execute(("HMGET", key, "uid", "json", "talk"))
        if author is None or its_talk != found.id or not found.shows(message_id.encode()):
            raise not_found("message message")
        await sight.learn([author])
        if not sight.of_message(author):
            raise not_found("message message")
        return bytes(json)

    async def list_messages(self, viewer: str, talk: str, page_request: PageRequest) -> Page:
        """Return a talk's messages as JSON, newest first, without those of suspended, blocking or blocked users."""
        sight, found = self._sight(viewer), list[_Talk]()

        async def admit() -> None:
            found.append(await self._require(sight, talk))

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            rows = await self._redis.execute(*(_message_command(message) for message, _ in members))
            await sight.learn(found[0].people)
            return [
                json if author and found[0].shows(message) and sight.of_message(author) else None
                for (message, _), (author, json) in zip(members, rows, strict=True)
            ]

        return await self._page("messages", talk, page_request, show, admit=admit)

    async def mark_read(self, uid: str, talk: str, message_id: str, idempotency_key: IdempotencyKey) -> bytes:
        """Mark a talk as read up to a message. If the user has read a later message, nothing changes.

        Returns ``read`` (the id of the last read message) and ``unread`` (the number of unread messages) as JSON.
        """
        reply = await self._scripts.write("talk_mark_read", idempotency_key, uid=uid, talk=talk, id=message_id)
        unread = msgspec.json.decode(await self.get(uid, talk))["unread"]
        return b'{"read":"%b","unread":%d}' % (reply.value.split(b" ")[-1], unread)

    async def _list(self, row: str, uid: str, page_request: PageRequest) -> Page:
        sight = self._sight(uid)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            talks = await self._find(sight, [member for member, _ in members])
            shown = iter(await self._show(sight, [talk for talk in talks if talk is not None]))
            return [None if talk is None else next(shown) for talk in talks]

        return await self._page(row, uid, page_request, show)

    async def _require(self, sight: Sight, talk: str) -> "_Talk":
        (found,) = await self._find(sight, [talk.encode()])
        if found is None:
            raise not_found("talk id")
        return found

    async def _find(self, sight: Sight, ids: Sequence[bytes]) -> "list[_Talk | None]":
        """Return the talks with these ids, in this order.

        None stands for a talk that the viewer has neither accepted, nor has as the request of a user who can contact
        the viewer.
        """
        accepted, requested, talk, marks, messages = (
            keys.key_for(name).encode() for name in ("talks", "talk_requests", "talk", "marks", "messages")
        )
        replies = await self._redis.execute_at_once(
            *chain.from_iterable(
                (
                    ("ZSCORE", accepted + sight.viewer, each),
                    ("ZSCORE", requested + sight.viewer, each),
                    ("HMGET", talk + each, "uid", "people", "name_json", "created"),
                    ("HGET", marks + each, sight.viewer),
                    ("ZRANGE", messages + each, MAX_UNANSWERED - 1, MAX_UNANSWERED - 1),
                )
                for each in ids
            )
        )
        rows = [*zip(ids, *(replies[at::5] for at in range(5)), strict=True)]
        openers = [row[0] for _, is_own, is_asked, row, _, _ in rows if is_own is None and is_asked is not None]
        contacts = await sight.can_contact([*set(openers)])
        return [
            _Talk(each, people.split(), name, created, mark or b"0", b"+inf" if is_own or not held else held[0])
            if is_own is not None or (is_asked is not None and contacts[opener]) else None
            for each, is_own, is_asked, (opener, people, name, created), mark, held in rows
        ]  # fmt: skip

    async def _show(self, sight: Sight, talks: "Sequence[_Talk]") -> list[bytes]:
        """Return talks as JSON, each with its last message and the number of unread ones that the viewer may see."""
        messages = keys.key_for("messages").encode()
        ranges = [
            ("ZRANGE", messages + talk.id, talk.last_shown, lowest, "BYSCORE", "REV", "LIMIT", 0, most)
            for talk in talks
            for lowest, most in ((b"-inf", MESSAGES_SEARCHED), (b"(" + talk.mark, MAX_UNREAD))
        ]
        if not ranges:
            return []
        found = await self._redis.execute(*ranges)
        await sight.learn({uid for talk in talks for uid in talk.people})
        doubtful = dict.fromkeys(
            message
            for at, talk in enumerate(talks)
            if not all(map(sight.of_message, talk.people))  # rarely; else the viewer sees all messages
            for message in chain(found[2 * at], found[2 * at + 1])
        )
        # A page of talks may ask for many thousands of authors, so it reads no text of theirs.
        replies = await self._redis.execute(*map(_AUTHOR_READ.command, doubtful)) if doubtful else ()
        authors = dict(zip(doubtful, replies, strict=True))

        def is_seen(message: bytes) -> bool:
            author = authors.get(message, b"")
            return not author or bool(sight.of_message(author))

        last = [next(filter(is_seen, newest), None) for newest in found[::2]]
        wanted = [message for message in last if message is not None]
        rows = await self._redis.execute(*map(_message_command, wanted)) if wanted else []
        texts = {message: json for message, (_, json) in zip(wanted, rows, strict=True)}
        return [
            talk.json(texts[message] if message else None, sum(map(is_seen, unread)))
            for talk, message, unread in zip(talks, last, found[1::2], strict=True)
        ]


class _Talk(NamedTuple):
    """A talk of the viewer: its fields, the last message that the viewer has read, and the last one that is shown.

    ``last_shown`` is ``+inf``, or the id of the third message if the viewer has not accepted the talk. So strangers who
    know each other cannot write more by answering in the place of the viewer.
    """

    id: bytes
    people: list[bytes]
    name_json: bytes
    created: bytes
    mark: bytes
    last_shown: bytes

    def shows(self, message: bytes) -> bool:
        """Return whether the viewer may see the message with this id: it is not newer than the last shown message."""
        return self.last_shown == b"+inf" or int(message) <= int(self.last_shown)

    def json(self, last_message: bytes | None, unread: int) -> bytes:
        """Return the talk as JSON. ``last_message`` is the JSON of the last message that the viewer sees, or None."""
        last = b"" if last_message is None else b',"last_message":' + last_message
        return b'{"id":"%b","people":["%b"],"name":%b,"created":"%b"%b,"unread":%d}' % (
            self.id, b'","'.join(self.people), self.name_json, time_text(self.created), last, unread,
        )  # fmt: skip


def _message_command(message: bytes) -> Command:
    return ("HMGET", keys.key_for("message").encode() + message, "uid", "json")
