"""A text with its entities, as filters look for words in it."""

from collections.abc import Iterable, Iterator

from filters import unspaced
from filters.entities import NO_ENTITIES, Entities, Url, shown, without_entities
from filters.tokens import fold, in_order, parts, words


class Said:
    """What ``text`` says; the indices of ``entities`` count its code points. All is computed at the first look.

    Whoever asks whether a bare term stands in it asks :meth:`has`, never :attr:`terms`: a term may be found that
    is no key by itself.
    """

    __slots__ = ("_runs", "_sequence", "_terms", "_words", "entities", "text")

    def __init__(self, text: str, entities: Entities = NO_ENTITIES) -> None:
        self.text = text
        self.entities = entities
        self._words: frozenset[str] | None = None
        self._terms: frozenset[str] | None = None
        self._sequence: tuple[str, ...] | None = None
        self._runs: str | None = None

    def has(self, term: str) -> bool:
        """Whether a folded term, bare or with the sign of an entity, is found in it."""
        return term in self.terms or (not term.isascii() and unspaced.is_long(term) and term in self.runs)

    @property
    def words(self) -> frozenset[str]:
        """The words of the text outside its entities, and each link as a whole and in its parts; folded."""
        if self._words is None:
            found = words(fold(self._words_alone()))
            for url in self.entities.urls:
                for form in _forms(url):
                    found.update(_link_words(form))
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
                if not "".join(tags).isascii():
                    terms = terms.union(unspaced.grams(_runs_of(tags)))
            if mentions := self.mentions:
                terms = terms.union(mentions, ["@" + login for login in mentions])
            if cashtags := self.cashtags:
                terms = terms.union(["$" + tag for tag in cashtags])
            self._terms = terms
        return self._terms

    @property
    def sequence(self) -> tuple[str, ...]:
        """The folded words of the whole text in their order, cut at every mark: what a phrase is looked for in."""
        if self._sequence is None:
            self._sequence = tuple(in_order(fold(self.text)))
        return self._sequence

    @property
    def runs(self) -> str:
        """The runs of text, hashtags and links in scripts without blanks, with a blank between any two."""
        if self._runs is None:
            links = (fold(one) for url in self.entities.urls for one in _forms(url))
            self._runs = " ".join(_runs_of((fold(self._words_alone()), *self.tags, *links)))
        return self._runs

    def _words_alone(self) -> str:
        """The text without its entities: what is left of ``@a's`` is ``s``, never ``a's``."""
        return self.text if self.entities is NO_ENTITIES else without_entities(self.text, self.entities)


NOTHING_SAID = Said("")
"""No text at all."""


def _runs_of(texts: Iterable[str]) -> Iterator[str]:
    return (run for text in texts for run in unspaced.runs(text))


def _forms(url: Url) -> Iterator[str]:
    yield url.expanded_url
    if not url.display_url.endswith("…"):  # a shortened link would yield half words
        yield url.display_url


def _link_words(url: str) -> Iterator[str]:
    whole = fold(shown(url))
    yield whole
    yield from parts(whole)
