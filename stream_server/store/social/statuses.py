"""Statuses: post, read, delete."""

from collections.abc import Sequence

import msgspec

from filters.entities import extract_entities
from filters.tokens import fold
from stream_server.errors import NotFound
from stream_server.events.language import LanguageDetector
from stream_server.events.position import Position
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social.status_draft import StatusDraft, mention_arguments
from stream_server.store.timelines.syndication import Syndication


class _StatusWire(msgspec.Struct):
    status: msgspec.Raw


class _PostEntry(msgspec.Struct):
    """A post's entry, as far as its answer goes."""

    wire: _StatusWire


class Statuses:
    """The statuses of one store."""

    def __init__(
        self, redis: RedisClient, scripts: Scripts, syndication: Syndication, detect_language: LanguageDetector
    ) -> None:
        self._redis = redis
        self._scripts = scripts
        self._syndication = syndication
        self._detect_language = detect_language

    async def create(self, uid: str, draft: StatusDraft, idempotency_key: IdempotencyKey) -> bytes:
        """A new status as JSON, the same bytes as on the log; it is in the first timelines by then.

        Raises NotFound for an author, a group, a replied-to or a reposted status that does not exist or is not to be
        seen, Forbidden ``not_yours`` in a group where the author may not post, BadRequest for what is protected or
        belongs elsewhere. A repost of a repost is one of its original; a status with words of its own is an
        original, also when it quotes.
        """
        answer = await self._scripts.write(
            "status_post", idempotency_key, uid, *_post_arguments(draft, self._detect_language)
        )
        if answer.is_repeat:
            return await self._read_earlier_reply(uid, position_of(answer))
        status: bytes
        status, fence, people, lists = answer.first_time_extra
        if fence:
            await self._syndication.fan_out(uid, str(position_of(answer).status_number), fence, people, lists)
        return status

    async def get(self, viewer: str, status_id: str) -> bytes:
        """A status as JSON; raises NotFound where there is none, or none for this viewer."""
        found = await self.get_many(viewer, [status_id])
        if not found:
            raise NotFound("there is no such status")
        return found[0]

    async def get_many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Those of these statuses that the viewer may see, as JSON, in this order, in one round trip."""
        if not ids:
            return []
        flat, _, _ = await self._scripts.call(
            "statuses_show", keys.META, viewer, int(Visibility.ON_REQUEST), "", len(ids), 0, *ids
        )
        shown: list[bytes] = flat[1::2]
        return shown

    async def delete(self, uid: str, status_id: str, idempotency_key: IdempotencyKey) -> None:
        """Take back a status of one's own; raises NotFound, or Forbidden ``not_yours``."""
        answer = await self._scripts.write("status_delete", idempotency_key, uid, status_id)
        if not answer.is_repeat:
            await self._syndication.withdraw(uid, status_id, *answer.first_time_extra)

    async def _read_earlier_reply(self, uid: str, log_position: Position) -> bytes:
        """The answer that was given before: it stands on the log; where that was trimmed, the status as it is."""
        (entries,) = await self._redis.execute(("XRANGE", keys.LOG, log_position.entry_id, log_position.entry_id))
        if entries:
            return bytes(msgspec.json.decode(entries[0][1][7], type=_PostEntry).wire.status)
        return await self.get(uid, str(log_position.status_number))


def _post_arguments(draft: StatusDraft, detect_language: LanguageDetector) -> list[str | bytes | int]:
    """What ``lua/post.lua`` takes, in its order."""
    found = extract_entities(draft.message)
    tags = dict.fromkeys(fold(tag.text) for tag in found.hashtags)
    fields = draft.hash_fields()
    return [
        draft.in_reply_to or "",
        draft.origin or "",
        draft.group or "",
        draft.message_json(),
        draft.lang or detect_language(draft.message, found),
        draft.location_members(),
        draft.attachment_members(),
        "".join(f"{tag} " for tag in tags),
        *mention_arguments(found),
        *(item for pair in fields.items() for item in pair),
    ]
