"""A status before it has an id: what its author gave, and the fields of its hash that follow from it."""

from collections.abc import Mapping, Sequence

import msgspec

from filters.entities import Entities

_encode = msgspec.json.encode


class Location(msgspec.Struct, frozen=True):
    """Where the author was, in degrees (WGS 84)."""

    lon: float
    lat: float


class Place(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the author calls the place; ``box`` is west, south, east, north in degrees."""

    name: str
    country: str | None = None
    box: tuple[float, float, float, float] | None = None


class Media(msgspec.Struct, frozen=True):
    """One attachment, by reference."""

    url: str
    type: str


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Checked by whoever made it. ``origin`` is what is reposted, ``meta`` a JSON object of the author's own.

    ``lang`` is a BCP 47 tag; without one the status is ``und``.
    """

    message: str = ""
    location: Location | None = None
    place: Place | None = None
    in_reply_to: str | None = None
    origin: str | None = None
    lang: str | None = None
    media: Sequence[Media] = ()
    meta: Mapping[str, object] | None = None

    def fields(self, entities: bytes) -> dict[str, bytes]:
        """The natural fields of the hash; what there is not is left out, JSON stays encoded."""
        fields = {"message": self.message.encode(), "lang": (self.lang or "und").encode(), "entities": entities}
        if self.in_reply_to is not None:
            fields["in_reply_to"] = self.in_reply_to.encode()
        if self.origin is not None:
            fields["origin"] = self.origin.encode()
        for name, value in (("location", self.location), ("place", self.place), ("media", self.media or None)):
            if value is not None:
                fields[name] = _encode(value)
        if self.meta is not None:
            fields["meta"] = _encode(self.meta)
        return fields


def entities_json(found: Entities, ids: Mapping[str, str]) -> bytes:
    """The entities of a status as JSON; ``ids`` are those of the mentioned, by lower-cased login."""
    return _encode(
        {
            "mentions": [_mention(m.login, m.indices, ids.get(m.login.lower())) for m in found.mentions],
            "hashtags": [{"text": tag.text, "indices": tag.indices} for tag in found.hashtags],
            "cashtags": [{"text": tag.text, "indices": tag.indices} for tag in found.cashtags],
            "urls": [
                {"url": u.url, "display_url": u.display_url, "expanded_url": u.expanded_url, "indices": u.indices}
                for u in found.urls
            ],
        }
    )


def _mention(login: str, indices: tuple[int, int], uid: str | None) -> dict[str, object]:
    return {"login": login, "indices": indices} if uid is None else {"login": login, "id": uid, "indices": indices}
