"""A status before it has an id: what its author gave, and the fields of its hash that follow from it."""

from collections.abc import Mapping, Sequence

import msgspec

from filters.entities import Entities

_encode = msgspec.json.encode


class StatusLocation(msgspec.Struct, frozen=True):
    """Where the author was, in degrees (WGS 84)."""

    lon: float
    lat: float


class StatusPlace(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the author calls the place; ``box`` is west, south, east, north in degrees."""

    name: str
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class StatusMedia(msgspec.Struct, frozen=True):
    """One attachment, by reference."""

    url: str
    type: str


class StatusDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Checked by whoever made it. ``origin`` is what is reposted, ``meta`` a JSON object of the author's own.

    ``lang`` is a BCP 47 tag; without one the store is to tell it by the message.
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
        """The natural fields of the hash that are the author's own; what there is not is left out."""
        fields = {"message": self.message.encode()}
        for name, value in (("location", self.location), ("place", self.place), ("media", self.media or None)):
            if value is not None:
                fields[name] = _encode(value)
        if self.meta is not None:
            fields["meta"] = _encode(self.meta)
        return fields

    def message_json(self) -> bytes:
        """The message as JSON."""
        return _encode(self.message)

    def location_members(self) -> bytes:
        """The JSON members of where the author was."""
        return b'"location":%b,"place":%b' % (_encode(self.location), _encode(self.place))

    def attachment_members(self) -> bytes:
        """The JSON members of what is attached."""
        return b'"media":%b,"meta":%b' % (_encode(self.media), _encode(self.meta))


def mention_arguments(entities: Entities) -> list[str | bytes | int]:
    """What ``lua/parts/mentions.lua`` takes: how many mentions, their logins, the entities in pieces."""
    return [len(entities.mentions), *(mention.login.lower() for mention in entities.mentions), *entity_pieces(entities)]


def entity_pieces(entities: Entities) -> list[bytes]:
    """The entities of a status as JSON, cut after each mention's login: the script puts the users' ids there."""
    mentions = [_encode({"login": m.login, "indices": m.indices}) for m in entities.mentions]
    heads = [b'{"login":%b' % _encode(m.login) for m in entities.mentions]
    pieces, last = [], b'{"mentions":['
    for number, (mention, head) in enumerate(zip(mentions, heads, strict=True)):
        pieces.append(last + (b"," if number else b"") + head)
        last = mention[len(head) :]
    others = {
        "hashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.hashtags],
        "cashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.cashtags],
        "urls": [
            {"url": u.url, "display_url": u.display_url, "expanded_url": u.expanded_url, "indices": u.indices}
            for u in entities.urls
        ],
    }
    return [*pieces, last + b"]," + _encode(others)[1:]]
