"""One thing that happened, as filters see it."""

from collections.abc import Iterator
from functools import lru_cache

from filters import index_keys
from filters.analyzed_text import EMPTY_TEXT, AnalyzedText
from filters.entities import NO_ENTITIES, Entities
from filters.grid import Box, event_box_keys, event_point_keys
from filters.index_keys import Key, user_key
from filters.tokens import fold, words_in_order

MAX_CACHED_BIOS = 1024
"""How many bios are remembered with their words and keys: who posts once posts again."""

MAX_CACHED_BIO_CHARS = 500
"""The most characters of a bio that is remembered: longer ones are no user's, but a rule may be tried with one."""

_EMPTY: frozenset[str] = frozenset()

MEDIA_FLAGS = {"image": "has:images", "video": "has:video_link", "gif": "has:video_link"}
"""What else than ``has:media`` is said of a status by its kinds of media."""


class Event:
    """The one view of an event; whoever makes it decides what filters may look at. Not to be changed.

    ``kind`` is the kind of event and ``author`` the id of who did it. ``user_ids`` are the user ids that ``follow``
    looks at, with ``author``, ``reply_to`` and ``reposted_author`` always among them: rules find these by the same keys.
    ``status_id`` is that of the status concerned. ``text`` is what ``track`` looks at, with its ``entities``, whose
    indices count code points of ``text``. ``lang`` is a BCP 47 tag, None for undetermined.
    ``point`` is (lon, lat) and ``box`` a place as (west, south, east, north), both in degrees and both None where
    ``locations`` must not match. ``is_sampled`` is False for what ``sample`` never delivers, ``is_public`` False for what
    neither it nor ``firehose`` does. ``sample_position`` is for :mod:`filters.sample`, which keeps its hash there.

    The rest is there for statuses, as far as it is known. ``author_login`` is the author's, ``reply_to`` and
    ``reply_to_login`` are whom it answers, ``reposted_author`` and ``reposted_author_login`` whose status it repeats without a word
    of its own. ``forms`` are of ``reply``, ``repost`` and ``quote``, ``media`` of ``image``, ``video``, ``gif`` and
    ``audio``. ``conversation`` is the id of the status that began the thread. ``place_name`` and ``place_country`` (ISO
    3166-1 alpha-2) are as written. ``followers``, ``following`` and ``posts`` count what the author had when it was
    posted, ``bio`` is what they said of themselves then. ``analyzed_quote`` is what the status that it quotes says.

    What filters derive from these is computed at the first look and kept.
    """

    __slots__ = (
        "_common_keys", "_index_keys", "_square_keys", "analyzed_quote", "analyzed_text", "author", "author_login", "bio", "box", "conversation",
        "followers", "following", "forms", "is_public", "is_sampled", "kind", "lang", "media", "place_country", "place_name", "point",
        "posts", "reply_to", "reply_to_login", "reposted_author", "reposted_author_login", "sample_position", "status_id", "user_ids",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        *,
        author: str | None = None,
        user_ids: frozenset[str] = _EMPTY,
        status_id: str | None = None,
        text: str = "",
        entities: Entities = NO_ENTITIES,
        lang: str | None = None,
        point: tuple[float, float] | None = None,
        box: Box | None = None,
        is_sampled: bool = True,
        is_public: bool = True,
        author_login: str | None = None,
        reply_to: str | None = None,
        reply_to_login: str | None = None,
        reposted_author: str | None = None,
        reposted_author_login: str | None = None,
        forms: frozenset[str] = _EMPTY,
        media: frozenset[str] = _EMPTY,
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
        self.user_ids = user_ids
        self.status_id = status_id
        self.analyzed_text = AnalyzedText(text, entities) if text else EMPTY_TEXT
        self.lang = lang
        self.point = point
        self.box = box
        self.is_sampled = is_sampled
        self.is_public = is_public
        self.author_login = author_login
        self.reply_to = reply_to
        self.reply_to_login = reply_to_login
        self.reposted_author = reposted_author
        self.reposted_author_login = reposted_author_login
        self.forms = forms
        self.media = media
        self.conversation = conversation
        self.place_name = place_name
        self.place_country = place_country
        self.followers = followers
        self.following = following
        self.posts = posts
        self.bio = bio
        self.analyzed_quote = AnalyzedText(quoted_text, quoted_entities) if quoted_text else EMPTY_TEXT
        self.sample_position: int | None = None
        self._square_keys: frozenset[Key] | None = None
        self._common_keys: frozenset[Key] | None = None
        self._index_keys: frozenset[Key] | None = None

    def __repr__(self) -> str:
        return f"<Event {self.kind} of {self.author}: {self.text!r}>"

    @property
    def text(self) -> str:
        """What ``track`` looks at."""
        return self.analyzed_text.text

    @property
    def entities(self) -> Entities:
        """Those of the text."""
        return self.analyzed_text.entities

    @property
    def terms(self) -> frozenset[str]:
        """All words and entities by which the text is found."""
        return self.analyzed_text.terms

    @property
    def has_location(self) -> bool:
        """Whether it says where it was posted."""
        return self.point is not None or self.box is not None or self.place_name is not None

    @property
    def common_keys(self) -> frozenset[Key]:
        """The keys that nearly every filter goes by: terms and people."""
        if self._common_keys is None:
            keys = self.terms
            if self.user_ids:
                keys = keys.union(map(user_key, self.user_ids))
            self._common_keys = keys
        return self._common_keys

    @property
    def square_keys(self) -> frozenset[Key]:
        """The squares of the map where it happened: around its point, or else its place."""
        if self._square_keys is None:
            place = () if self.box is None else event_box_keys(self.box)
            self._square_keys = frozenset(place if self.point is None else event_point_keys(*self.point))
        return self._square_keys

    @property
    def index_keys(self) -> frozenset[Key]:
        """All keys by which a filter can find this event; only rules go by the extra ones."""
        if self._index_keys is None:
            self._index_keys = self.common_keys.union(self._make_rule_keys())
        return self._index_keys

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
        if self.has_location:
            yield "has:geo"

    def _make_rule_keys(self) -> Iterator[Key]:
        for name in (self.author_login, self.reply_to_login, self.reposted_author_login):
            if name is not None:
                yield index_keys.login_key(fold(name))
        yield from self.square_keys
        if self.conversation is not None:
            yield index_keys.conversation_key(self.conversation)
        if self.place_name is not None:
            yield index_keys.place_key(fold(self.place_name))
        if self.place_country is not None:
            yield index_keys.country_key(self.place_country.lower())
        yield from index_keys.language_keys(self.lang)
        yield from map(index_keys.flag_key, self.flags())
        if self.bio:
            yield from _bio_keys(self.bio)
        if self.analyzed_quote is not EMPTY_TEXT:
            yield from map(index_keys.quoted_key, self.analyzed_quote.terms)


def bio_words(bio: str) -> tuple[str, ...]:
    """The folded words of a bio in their order."""
    return _analyze_bio(bio)[0]


def _bio_keys(bio: str) -> frozenset[Key]:
    return _analyze_bio(bio)[1]


def _analyze_bio(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    return _analyze_bio_cached(bio) if len(bio) <= MAX_CACHED_BIO_CHARS else _analyze_bio_cached.__wrapped__(bio)


@lru_cache(MAX_CACHED_BIOS)
def _analyze_bio_cached(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    """The words of a bio, and the keys by which they are found."""
    words = tuple(words_in_order(fold(bio)))
    return words, frozenset(map(index_keys.bio_key, words))
