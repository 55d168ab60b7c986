"""The event as filters see it."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache

from filters import index_keys
from filters.analyzed_text import EMPTY_TEXT, AnalyzedText
from filters.entities import NO_ENTITIES, Entities
from filters.index_keys import Box, Key, event_box_keys, event_point_keys
from filters.meta_fields import MetaField, read_meta_fields
from filters.tokens import compounds, fold
from filters.word_sequence import WordSequence

MAX_CACHED_BIOS = 1024  # number of bios whose words and keys are cached, because an author often posts again

MAX_CACHED_BIO_CHARS = 500
"""Maximum length in code points of a cached bio. No user has a longer bio, but a rule may be tried with one."""
_EMPTY: frozenset[str] = frozenset()
NO_META = b"null"
ENTITY_FLAGS = ("has:mentions", "has:hashtags", "has:cashtags", "has:links")  # in the order of Entities

MEDIA_FLAGS = {"image": "has:images", "video": "has:video_link", "gif": "has:video_link"}
"""The ``has:`` property that a status has for each kind of its media, in addition to ``has:media``."""


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """One event, as filters see it. Immutable. If a fact is unknown or missing, its attribute is None or empty.

    Values that filters derive from an event are computed when they are first needed, and then kept.

    Attributes:
        kind: Kind of event, such as ``post``.
        author: Id of the user who caused the event.
        user_ids: Ids that ``follow`` compares. They include ``author``, ``reply_to`` and ``reposted_author``, because
            rules find these users by the same index keys.
        text: The text that ``track`` searches.
        lang: BCP 47 tag of the language, or None if it is undetermined.
        point: Longitude and latitude in degrees. Also None for a repost, because ``locations`` must not match it.
        box: The place as west, south, east, north in degrees. Also None for a repost.
        is_sampled: False for events that ``sample`` never delivers.
        is_public: False for events that neither ``sample`` nor ``firehose`` delivers.
        reply_to: Id of the user whose status this status answers.
        reposted_author: Id of the author of the status that this status reposts without words of its own.
        forms: Subset of ``reply``, ``repost`` and ``quote``.
        media: Subset of ``image``, ``video``, ``gif`` and ``audio``.
        conversation: Id of the first status of the thread.
        place_country: ISO 3166-1 alpha-2 code of the country, as written by the author.
        followers: Number of the author's followers when the status was posted.
        following: Number of users whom the author followed when the status was posted.
        posts: Number of the author's statuses when the status was posted.
        bio: Bio of the author when the status was posted.
        meta: The JSON that the author added, of a repost that of the original. It is decoded for `meta_fields` only.
        sample_position: Cache of :func:`filters.sample.sample_position`.
    """

    kind: str
    _: KW_ONLY
    author: str | None = None
    user_ids: frozenset[str] = _EMPTY
    status_id: str | None = None
    text: str = ""
    entities: Entities = NO_ENTITIES
    lang: str | None = None
    point: tuple[float, float] | None = None
    box: Box | None = None
    is_sampled: bool = True
    is_public: bool = True
    author_login: str | None = None
    reply_to: str | None = None
    reply_to_login: str | None = None
    reposted_author: str | None = None
    reposted_author_login: str | None = None
    forms: frozenset[str] = _EMPTY
    media: frozenset[str] = _EMPTY
    conversation: str | None = None
    place_name: str | None = None
    place_country: str | None = None
    followers: int | None = None
    following: int | None = None
    posts: int | None = None
    bio: str = ""
    meta: bytes = NO_META
    quoted_text: str = ""
    quoted_entities: Entities = NO_ENTITIES
    analyzed_text: AnalyzedText = field(init=False)
    analyzed_quote: AnalyzedText = field(init=False)
    sample_position: int | None = field(default=None, init=False)
    _square_keys: frozenset[Key] | None = field(default=None, init=False)
    _common_keys: frozenset[Key] | None = field(default=None, init=False)
    _rule_keys: frozenset[Key] | None = field(default=None, init=False)
    _meta_fields: list[MetaField] | None = field(default=None, init=False)
    _index_keys: frozenset[Key] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.analyzed_text = AnalyzedText(self.text, self.entities) if self.text else EMPTY_TEXT
        self.analyzed_quote = AnalyzedText(self.quoted_text, self.quoted_entities) if self.quoted_text else EMPTY_TEXT

    def __repr__(self) -> str:
        return f"<Event {self.kind} of {self.author}: {self.text!r}>"

    @property
    def terms(self) -> frozenset[str]:
        """The terms by which ``track`` finds the event: words and entities of its text."""
        return self.analyzed_text.terms

    @property
    def common_keys(self) -> frozenset[Key]:
        """The index keys that most filters use: words, compounds and entities of the text, keys of ``user_ids``."""
        if self._common_keys is None:
            text = self.analyzed_text
            self._common_keys = text.terms.union(compounds(text.folded), self.user_keys)
        return self._common_keys

    @property
    def user_keys(self) -> frozenset[Key]:
        """The index keys of ``user_ids``."""
        return frozenset(map(index_keys.USER.__add__, self.user_ids))

    @property
    def square_keys(self) -> frozenset[Key]:
        """Index keys of the squares of the map that hold the event's point or, without a point, touch its place."""
        if self._square_keys is None:
            place = () if self.box is None else event_box_keys(self.box)
            self._square_keys = frozenset(place if self.point is None else event_point_keys(*self.point))
        return self._square_keys

    @property
    def rule_keys(self) -> frozenset[Key]:
        """The index keys of the event without those of ``meta``."""
        if self._rule_keys is None:
            self._rule_keys = self.common_keys.union(self._make_rule_keys())
        return self._rule_keys

    @property
    def meta_fields(self) -> list[MetaField]:
        """The fields of ``meta`` that rules can find."""
        if self._meta_fields is None:
            self._meta_fields = [] if self.meta == NO_META else read_meta_fields(self.meta)
        return self._meta_fields

    @property
    def index_keys(self) -> frozenset[Key]:
        """All index keys of the event. By these keys the index finds the filters that may match the event."""
        if self._index_keys is None:
            added = self.meta_fields
            self._index_keys = self.rule_keys.union([each.key for each in added]) if added else self.rule_keys
        return self._index_keys

    def flags(self) -> Iterator[str]:
        """Return each ``is:`` and ``has:`` operator of rules that matches this event, such as ``has:links``."""
        yield from ("is:" + form for form in self.forms)
        yield from (flag for flag, found in zip(ENTITY_FLAGS, self.entities, strict=True) if found)
        if self.media:
            yield "has:media"
            yield from {MEDIA_FLAGS[kind] for kind in self.media if kind in MEDIA_FLAGS}
        if self.point is not None or self.box is not None or self.place_name is not None:
            yield "has:geo"

    def _make_rule_keys(self) -> Iterator[Key]:
        for name in (self.author_login, self.reply_to_login, self.reposted_author_login):
            if name is not None:
                yield index_keys.LOGIN + fold(name)
        yield from self.square_keys
        if self.conversation is not None:
            yield index_keys.CONVERSATION + self.conversation
        if self.place_name is not None:
            yield index_keys.PLACE + fold(self.place_name)
        if self.place_country is not None:
            yield index_keys.COUNTRY + self.place_country.lower()
        yield from index_keys.language_keys(self.lang)
        yield from map(index_keys.FLAG.__add__, self.flags())
        if self.bio:
            yield from _analyze_bio(self.bio)[1]
        if self.analyzed_quote is not EMPTY_TEXT:
            yield from (index_keys.QUOTED + term for term in self.analyzed_quote.terms)


def bio_words(bio: str) -> WordSequence:
    """Return the words of a user's bio in order."""
    return _analyze_bio(bio)[0]


def _analyze_bio(bio: str) -> tuple[WordSequence, frozenset[Key]]:
    return _analyze_bio_cached(bio) if len(bio) <= MAX_CACHED_BIO_CHARS else _analyze_bio_cached.__wrapped__(bio)


@lru_cache(MAX_CACHED_BIOS)
def _analyze_bio_cached(bio: str) -> tuple[WordSequence, frozenset[Key]]:
    sequence = WordSequence.of(bio)
    return sequence, frozenset(index_keys.BIO + word for word in sequence.words)
