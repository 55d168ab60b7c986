"""One thing that happened, as filters see it."""

from collections.abc import Iterator

from filters.entities import NO_ENTITIES, Entities, shown
from filters.grid import Box, place_keys, point_keys
from filters.key import Key, person
from filters.tokens import fold, parts, words

_NONE: frozenset[str] = frozenset()


class Event:
    """The one view of an event; whoever makes it decides what filters may look at. Not to be changed.

    ``kind`` is the kind of event and ``author`` the id of who did it. ``people`` are the user ids that ``follow``
    looks at. ``status_id`` is that of the status concerned. ``text`` is what ``track`` looks at, with its
    ``entities``, whose indices count code points of ``text``. ``lang`` is a BCP 47 tag, None for undetermined.
    ``point`` is (lon, lat) and ``box`` a place as (west, south, east, north), both in degrees and both None where
    ``locations`` must not match. ``sampled`` is False for what ``sample`` never delivers, ``public`` False for what
    neither it nor ``firehose`` does. ``share`` is for :mod:`filters.sample`, which keeps its hash there.

    What filters derive from these is computed at the first look and kept.
    """

    __slots__ = (
        "_keys",
        "_terms",
        "_words",
        "author",
        "box",
        "entities",
        "kind",
        "lang",
        "people",
        "point",
        "public",
        "sampled",
        "share",
        "status_id",
        "text",
    )

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
    ) -> None:
        self.kind = kind
        self.author = author
        self.people = people
        self.status_id = status_id
        self.text = text
        self.entities = entities
        self.lang = lang
        self.point = point
        self.box = box
        self.sampled = sampled
        self.public = public
        self._words: frozenset[str] | None = None
        self._terms: frozenset[str] | None = None
        self._keys: frozenset[Key] | None = None
        self.share: int | None = None

    def __repr__(self) -> str:
        return f"<Event {self.kind} of {self.author}: {self.text!r}>"

    @property
    def words(self) -> frozenset[str]:
        """The words of the text outside its entities, and each link as a whole and in its parts; folded."""
        if self._words is None:
            found = words(fold(self._plain_text()))
            for url in self.entities.urls:
                found.update(_link_words(url.expanded_url))
                if not url.display_url.endswith("…"):  # a shortened link would yield half words
                    found.update(_link_words(url.display_url))
            self._words = frozenset(found)
        return self._words

    @property
    def tags(self) -> frozenset[str]:
        """The hashtags, folded, without their sign."""
        return frozenset(fold(tag.text) for tag in self.entities.hashtags)

    @property
    def mentions(self) -> frozenset[str]:
        """The logins that are mentioned, folded, without their sign."""
        return frozenset(fold(mention.login) for mention in self.entities.mentions)

    @property
    def cashtags(self) -> frozenset[str]:
        """The cashtags, folded, without their sign."""
        return frozenset(fold(tag.text) for tag in self.entities.cashtags)

    @property
    def terms(self) -> frozenset[str]:
        """All that ``track`` finds: words, hashtags and mentions with and without their sign, cashtags with it."""
        if self._terms is None:
            terms = self.words
            if tags := self.tags:
                terms = terms.union(tags, ["#" + tag for tag in tags])
            if mentions := self.mentions:
                terms = terms.union(mentions, ["@" + login for login in mentions])
            if cashtags := self.cashtags:
                terms = terms.union(["$" + tag for tag in cashtags])
            self._terms = terms
        return self._terms

    @property
    def keys(self) -> frozenset[Key]:
        """All keys by which a filter can find this event."""
        if self._keys is None:
            keys = self.terms
            if self.people:
                keys = keys.union(map(person, self.people))
            if self.point is not None:
                keys = keys.union(point_keys(*self.point))
            elif self.box is not None:
                keys = keys.union(place_keys(self.box))
            self._keys = keys
        return self._keys

    def _plain_text(self) -> str:
        """The text with a blank in the place of each entity: what is left of ``@a's`` is ``s``, never ``a's``."""
        entities = self.entities
        if entities is NO_ENTITIES:
            return self.text
        taken = [entity.indices for family in entities for entity in family]
        if not taken:
            return self.text
        return " ".join(self._between(sorted(taken)))

    def _between(self, taken: list[tuple[int, int]]) -> Iterator[str]:
        at = 0
        for start, end in taken:
            yield self.text[at:start]
            at = max(at, end)
        yield self.text[at:]


def _link_words(url: str) -> Iterator[str]:
    whole = fold(shown(url))
    yield whole
    yield from parts(whole)
