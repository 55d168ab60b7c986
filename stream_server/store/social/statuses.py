"""Statuses: drafts, posting, reading and deleting."""

from collections.abc import Mapping, Sequence

import msgspec

from filters.entities import extract_entities
from filters.tokens import fold
from stream_server.errors import NotFound
from stream_server.events.language import LanguageDetector
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social.mentions import mention_arguments
from stream_server.store.social.stored_json import read_wire_member
from stream_server.store.timelines.syndication import Syndication

_encode = msgspec.json.encode


class StatusLocation(msgspec.Struct, frozen=True):
    """Where the author was, as longitude and latitude in degrees (WGS 84)."""

    lon: float
    lat: float


class StatusPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place that the author names. ``box`` holds its west, south, east and north edges in degrees."""

    name: str
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class StatusMedia(msgspec.Struct, frozen=True):
    """One attachment: its URL and its media type. The file itself is not stored."""

    url: str
    type: str


class StatusDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A status before it has an id. The caller has checked its values.

    Attributes:
        message: Text of the status; empty for a plain repost.
        location: Where the author was.
        place: Place that the author names.
        in_reply_to: Id of the status that this one answers.
        origin: Id of the status that this one reposts or quotes.
        lang: BCP 47 tag of the message's language. If it is None, the store detects the language.
        media: Attachments.
        meta: JSON object that the author adds. The server only stores it.
        group: Id of the group in which the status is posted.
    """

    message: str = ""
    location: StatusLocation | None = None
    place: StatusPlace | None = None
    in_reply_to: str | None = None
    origin: str | None = None
    lang: str | None = None
    media: Sequence[StatusMedia] = ()
    meta: Mapping[str, object] | None = None
    group: str | None = None

    def hash_fields(self) -> dict[str, bytes]:
        """Return the fields of the status's hash that the author gave. Members without a value are left out."""
        fields = {"message": self.message.encode()}
        for name, value in (("location", self.location), ("place", self.place), ("media", self.media or None)):
            if value is not None:
                fields[name] = _encode(value)
        if self.meta is not None:
            fields["meta"] = _encode(self.meta)
        return fields

    def message_json(self) -> bytes:
        """Return the message as a JSON string."""
        return _encode(self.message)

    def location_members(self) -> bytes:
        """Return the JSON members ``location`` and ``place``, null where the author gave none."""
        return b'"location":%b,"place":%b' % (_encode(self.location), _encode(self.place))

    def attachment_members(self) -> bytes:
        """Return the JSON members ``media`` and ``meta``."""
        return b'"media":%b,"meta":%b' % (_encode(self.media), _encode(self.meta))


class Statuses:
    """Posts, reads and deletes statuses."""

    def __init__(
        self, redis: RedisClient, scripts: Scripts, syndication: Syndication, detect_language: LanguageDetector
    ) -> None:
        self._redis = redis
        self._scripts = scripts
        self._syndication = syndication
        self._detect_language = detect_language

    async def create(self, uid: str, draft: StatusDraft, idempotency_key: IdempotencyKey) -> bytes:
        """Post a status. Returns its JSON, the same bytes as on the log, after the first timelines have it.

        A repost of a plain repost becomes a repost of the original. A status with a message of its own (a quote) is an
        original itself.

        Raises NotFound if the author, the group, the answered or the reposted status is unknown or hidden. Raises
        Forbidden ``not_yours`` if the author may not post in the group. Raises BadRequest for a repost of a protected
        user's status, and for a reply or repost that would leave its group.
        """
        reply = await self._scripts.write(
            "status_post", idempotency_key, uid, *_post_arguments(draft, self._detect_language)
        )
        position = position_of(reply)
        if reply.is_repeat:
            posted = await read_wire_member(self._redis, position, "status")
            return posted or await self.get(uid, str(position.status_number))
        status: bytes
        status, fence, followers, lists = reply.first_time_extra
        if fence:
            await self._syndication.fan_out(uid, str(position.status_number), fence, followers, lists)
        return status

    async def get(self, viewer: str, status_id: str) -> bytes:
        """Return a status as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        found = await self.get_many(viewer, [status_id])
        if not found:
            raise NotFound("unknown status")
        return found[0]

    async def get_many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Return these statuses as JSON, in this order, in one round trip. Leaves out what the viewer may not see."""
        if not ids:
            return []
        flat, _, _ = await self._scripts.call(
            "statuses_show", keys.META, viewer, int(Visibility.ON_REQUEST), "", len(ids), 0, *ids
        )
        shown: list[bytes] = flat[1::2]
        return shown

    async def delete(self, uid: str, status_id: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a status of this user. Raises NotFound, or Forbidden ``not_yours`` for another author's status."""
        reply = await self._scripts.write("status_delete", idempotency_key, uid, status_id)
        if not reply.is_repeat:
            await self._syndication.withdraw(uid, status_id, *reply.first_time_extra)


def _post_arguments(draft: StatusDraft, detect_language: LanguageDetector) -> list[str | bytes | int]:
    """Return the arguments of ``lua/status_post.lua`` behind the author's id, in its order."""
    entities = extract_entities(draft.message)
    tags = dict.fromkeys(fold(tag.text) for tag in entities.hashtags)
    return [
        draft.in_reply_to or "",
        draft.origin or "",
        draft.group or "",
        draft.message_json(),
        draft.lang or detect_language(draft.message, entities),
        draft.location_members(),
        draft.attachment_members(),
        "".join(f"{tag} " for tag in tags),
        *mention_arguments(entities),
        *(item for pair in draft.hash_fields().items() for item in pair),
    ]
