"""The event as filters see it."""

from collections.abc import Iterator
from functools import lru_cache

from filters import index_keys
from filters.analyzed_text import EMPTY_TEXT, AnalyzedText
from filters.entities import NO_ENTITIES, Entities
from filters.grid import Box, event_box_keys, event_point_keys
from filters.index_keys import Key, user_key
from filters.tokens import fold, words_in_order

MAX_CACHED_BIOS = 1024
"""Number of bios whose words and keys are cached, because an author often posts again."""

MAX_CACHED_BIO_CHARS = 500
"""Maximum length in code points of a cached bio. No user has a longer bio, but a rule may be tried with one."""

_EMPTY: frozenset[str] = frozenset()

MEDIA_FLAGS = {"image": "has:images", "video": "has:video_link", "gif": "has:video_link"}
"""The ``has:`` property that a status has for each kind of its media, in addition to ``has:media``."""


class Event:
    """One event, as filters see it. Immutable. Attributes of unknown or missing facts are None or empty.

    Values that filters derive from an event are computed when they are first needed, and then kept.

    Attributes:
        kind: Kind of event, such as ``post``.
        author: Id of the user who did it.
        user_ids: Ids that ``follow`` looks at. They include ``author``, ``reply_to`` and ``reposted_author``, because
            rules find these users by the same index keys.
        status_id: Id of the status concerned.
        analyzed_text: The text that ``track`` looks at, with its entities.
        lang: BCP 47 tag of the language, or None if it is undetermined.
        point: Longitude and latitude in degrees. Also None where ``locations`` must not match.
        box: The place as west, south, east, north in degrees. Also None where ``locations`` must not match.
        is_sampled: False for events that ``sample`` never delivers.
        is_public: False for events that neither ``sample`` nor ``firehose`` delivers.
        author_login: Login of the author.
        reply_to: Id of the user whose status this status answers.
        reply_to_login: Login of that user.
        reposted_author: Id of the author of the status that this status reposts without words of its own.
        reposted_author_login: Login of that author.
        forms: Subset of ``reply``, ``repost`` and ``quote``.
        media: Subset of ``image``, ``video``, ``gif`` and ``audio``.
        conversation: Id of the first status of the thread.
        place_name: Name of the place, as written by the author.
        place_country: ISO 3166-1 alpha-2 code of the country, as written by the author.
        followers: Number of followers of the author when the status was posted.
        following: Number of users whom the author followed when the status was posted.
        posts: Number of statuses of the author when the status was posted.
        bio: Bio of the author when the status was posted.
        analyzed_quote: The text of the quoted status, with its entities.
        sample_position: Cache of :func:`filters.sample.sample_position`.
    """

    __slots__ = (
        "_common_keys", "_index_keys", "_square_keys", "analyzed_quote", "analyzed_text", "author", "author_login",
        "bio", "box", "conversation", "followers", "following", "forms", "is_public", "is_sampled", "kind", "lang",
        "media", "place_country", "place_name", "point", "posts", "reply_to", "reply_to_login", "reposted_author",
        "reposted_author_login", "sample_position", "status_id", "user_ids",
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
        """The text that ``track`` looks at."""
        return self.analyzed_text.text

    @property
    def entities(self) -> Entities:
        """The entities of the text. Their indices count its code points."""
        return self.analyzed_text.entities

    @property
    def terms(self) -> frozenset[str]:
        """All words and entities by which ``track`` finds the text."""
        return self.analyzed_text.terms

    @property
    def has_location(self) -> bool:
        """Whether the event has a point, a box or the name of a place."""
        return self.point is not None or self.box is not None or self.place_name is not None

    @property
    def common_keys(self) -> frozenset[Key]:
        """The index keys that most filters use: the terms and the users."""
        if self._common_keys is None:
            keys = self.terms
            if self.user_ids:
                keys = keys.union(map(user_key, self.user_ids))
            self._common_keys = keys
        return self._common_keys

    @property
    def square_keys(self) -> frozenset[Key]:
        """The keys of the map squares of the event: those of its point, or else those of its box."""
        if self._square_keys is None:
            place = () if self.box is None else event_box_keys(self.box)
            self._square_keys = frozenset(place if self.point is None else event_point_keys(*self.point))
        return self._square_keys

    @property
    def index_keys(self) -> frozenset[Key]:
        """All index keys by which a filter can find this event: the common keys and those that only rules use."""
        if self._index_keys is None:
            self._index_keys = self.common_keys.union(self._make_rule_keys())
        return self._index_keys

    def flags(self) -> Iterator[str]:
        """Return the properties that rules ask for with ``is:`` and ``has:``, as rules write them."""
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
    """Return the folded words of a bio in their order."""
    return _analyze_bio(bio)[0]


def _bio_keys(bio: str) -> frozenset[Key]:
    return _analyze_bio(bio)[1]


def _analyze_bio(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    return _analyze_bio_cached(bio) if len(bio) <= MAX_CACHED_BIO_CHARS else _analyze_bio_cached.__wrapped__(bio)


@lru_cache(MAX_CACHED_BIOS)
def _analyze_bio_cached(bio: str) -> tuple[tuple[str, ...], frozenset[Key]]:
    """Return the words of a bio and their index keys."""
    words = tuple(words_in_order(fold(bio)))
    return words, frozenset(map(index_keys.bio_key, words))
