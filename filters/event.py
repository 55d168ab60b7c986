"""One thing that happened, as filters see it."""

from collections.abc import Iterator
from functools import lru_cache

from filters import key
from filters.entities import NO_ENTITIES, Entities
from filters.grid import Box, place_keys, point_keys
from filters.key import Key, person
from filters.said import NOTHING_SAID, Said
from filters.tokens import fold, in_order

BIOS = 1024
"""How many bios are remembered with their words and keys: who posts once posts again."""

LONG_BIO = 500
"""The most characters of a bio that is remembered: longer ones are no user's, but a rule may be tried with one."""

_NONE: frozenset[str] = frozenset()

MEDIA_FLAGS = {"image": "has:images", "video": "has:video_link", "gif": "has:video_link"}
"""What else than ``has:media`` is said of a status by its kinds of media."""


class Event:
    """The one view of an event; whoever makes it decides what filters may look at. Not to be changed.

    ``kind`` is the kind of event and ``author`` the id of who did it. ``people`` are the user ids that ``follow``
    looks at, with ``author``, ``reply_to`` and ``reposted`` always among them: rules find these by the same keys.
    ``status_id`` is that of the status concerned. ``text`` is what ``track`` looks at, with its ``entities``, whose
    indices count code points of ``text``. ``lang`` is a BCP 47 tag, None for undetermined.
    ``point`` is (lon, lat) and ``box`` a place as (west, south, east, north), both in degrees and both None where
    ``locations`` must not match. ``sampled`` is False for what ``sample`` never delivers, ``public`` False for what
    neither it nor ``firehose`` does. ``share`` is for :mod:`filters.sample`, which keeps its hash there.

    The rest is there for statuses, as far as it is known. ``login`` is the author's, ``reply_to`` and
    ``reply_to_login`` are whom it answers, ``reposted`` and ``reposted_login`` whose status it repeats without a word
    of its own. ``forms`` are of ``reply``, ``repost`` and ``quote``, ``media`` of ``image``, ``video``, ``gif`` and
    ``audio``. ``conversation`` is the id of the status that began the thread. ``place_name`` and ``place_country`` (ISO
    3166-1 alpha-2) are as written. ``followers``, ``following`` and ``posts`` count what the author had when it was
    posted, ``bio`` is what they said of themselves then. ``quoted`` is what the status that it quotes says.

    What filters derive from these is computed at the first look and kept.
    """

    __slots__ = (
        "_keys", "_plain_keys", "_squares", "author", "bio", "box", "conversation", "followers", "following", "forms",
        "kind", "lang", "login", "media", "people", "place_country", "place_name", "point", "posts", "public", "quoted",
        "reply_to", "reply_to_login", "reposted", "reposted_login", "said", "sampled", "share", "status_id",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        *,
        author: str | None = None,
        people: frozenset[str] = _NONE,
        status_id: str | None = None,
        text: str = "",
        entities: Entities = NO_ENTITIES,
        lang: str | None = None,
        point: tuple[float, float] | None = None,
        box: Box | None = None,
        sampled: bool = True,
        public: bool = True,
        login: str | None = None,
        reply_to: str | None = None,
        reply_to_login: str | None = None,
        reposted: str | None = None,
        reposted_login: str | None = None,
        forms: frozenset[str] = _NONE,
        media: frozenset[str] = _NONE,
        conversation: str | None = None,
        place_name: str | None = None,
        place_country: str | None = None,
        followers: int | None = None,
        following: int | None = None,
        posts: int | None = None,
        bio: str = "",
        quoted_text: str = "",
        quoted_entities: Entities = NO_ENTITIES,
    ) -> None:
        self.kind = kind
        self.author = author
        self.people = people
        self.status_id = status_id
        self.said = Said(text, entities) if text else NOTHING_SAID
        self.lang = lang
        self.point = point
        self.box = box
        self.sampled = sampled
        self.public = public
        self.login = login
        self.reply_to = reply_to
        self.reply_to_login = reply_to_login
        self.reposted = reposted
        self.reposted_login = reposted_login
        self.forms = forms
        self.media = media
        self.conversation = conversation
        self.place_name = place_name
        self.place_country = place_country
        self.followers = followers
        self.following = following
        self.posts = posts
        self.bio = bio
        self.quoted = Said(quoted_text, quoted_entities) if quoted_text else NOTHING_SAID
        self.share: int | None = None
        self._squares: frozenset[Key] | None = None
        self._plain_keys: frozenset[Key] | None = None
        self._keys: frozenset[Key] | None = None

    def __repr__(self) -> str:
        return f"<Event {self.kind} of {self.author}: {self.text!r}>"

    @property
    def text(self) -> str:
        """What ``track`` looks at."""
        return self.said.text

    @property
    def entities(self) -> Entities:
        """Those of the text."""
        return self.said.entities

    @property
    def terms(self) -> frozenset[str]:
        """All words and entities by which the text is found."""
        return self.said.terms

    @property
    def located(self) -> bool:
        """Whether it says where it was posted."""
        return self.point is not None or self.box is not None or self.place_name is not None

    @property
    def plain_keys(self) -> frozenset[Key]:
        """The keys that nearly every filter goes by: terms and people."""
        if self._plain_keys is None:
            keys = self.terms
            if self.people:
                keys = keys.union(map(person, self.people))
            self._plain_keys = keys
        return self._plain_keys

    @property
    def squares(self) -> frozenset[Key]:
        """The squares of the map where it happened: around its point, or else its place."""
        if self._squares is None:
            place = () if self.box is None else place_keys(self.box)
            self._squares = frozenset(place if self.point is None else point_keys(*self.point))
        return self._squares

    @property
    def keys(self) -> frozenset[Key]:
        """All keys by which a filter can find this event; only rules go by the extra ones."""
        if self._keys is None:
            self._keys = self.plain_keys.union(self._extra_keys())
        return self._keys

    def flags(self) -> Iterator[str]:
        """What rules ask of a status by ``is:`` and ``has:``, as they write it."""
        yield from ("is:" + form for form in self.forms)
        entities = self.entities
        if entities.hashtags:
            yield "has:hashtags"
        if entities.cashtags:
            yield "has:cashtags"
        if entities.urls:
            yield "has:links"
        if entities.mentions:
            yield "has:mentions"
        if self.media:
            yield "has:media"
            yield from {MEDIA_FLAGS[kind] for kind in self.media if kind in MEDIA_FLAGS}
        if self.located:
            yield "has:geo"

    def _extra_keys(self) -> Iterator[Key]:
        for name in (self.login, self.reply_to_login, self.reposted_login):
            if name is not None:
                yield key.login(fold(name))
        yield from self.squares
        if self.conversation is not None:
            yield key.conversation(self.conversation)
        if self.place_name is not None:
            yield key.place(fold(self.place_name))
        if self.place_country is not None:
            yield key.country(self.place_country.lower())
        yield from key.languages(self.lang)
        yield from map(key.flag, self.flags())
        if self.bio:
            yield from _bio_keys(self.bio)
        if self.quoted is not NOTHING_SAID:
            yield from map(key.quoted, self.quoted.terms)


def bio_words(bio: str) -> tuple[str, ...]:
    """The folded words of a bio in their order."""
    return _read(bio)[0]


def _bio_keys(bio: str) -> frozenset[Key]:
    return _read(bio)[1]


def _read(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    return _remembered(bio) if len(bio) <= LONG_BIO else _remembered.__wrapped__(bio)


@lru_cache(BIOS)
def _remembered(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    """The words of a bio, and the keys by which they are found."""
    words = tuple(in_order(fold(bio)))
    return words, frozenset(map(key.bio, words))
