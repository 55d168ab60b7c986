"""A text with its entities, and the words and terms by which filters find it."""

import re
from collections.abc import Iterable, Iterator

from filters import unspaced_scripts
from filters.entities import NO_ENTITIES, Entities, Url, blank_entities, to_display_url
from filters.tokens import fold, words, words_cut_at_marks, words_in_order


class AnalyzedText:
    """A text with its entities. The object computes its words and terms when they are first needed.

    To test for a term, call :meth:`contains_term` instead of looking into :attr:`terms`. That set does not have the
    long terms in scripts without spaces, such as Chinese; the method finds these too.
    """

    __slots__ = (
        "_joined_links", "_joined_words", "_link_words", "_terms", "_unspaced_runs", "_word_sequence", "_words",
        "entities", "text",
    )  # fmt: skip

    def __init__(self, text: str, entities: Entities = NO_ENTITIES) -> None:
        self.text = text
        self.entities = entities
        self._words: frozenset[str] | None = None
        self._terms: frozenset[str] | None = None
        self._word_sequence: tuple[str, ...] | None = None
        self._joined_words: str | None = None
        self._link_words: tuple[tuple[str, ...], ...] | None = None
        self._joined_links: str | None = None
        self._unspaced_runs: str | None = None

    def contains_term(self, term: str) -> bool:
        """Whether the text has this case-folded term: a word, or an entity with its sign (``#x``, ``@x``, ``$x``)."""
        return term in self.terms or (
            not term.isascii() and unspaced_scripts.needs_substring_search(term) and term in self.unspaced_runs
        )

    @property
    def words(self) -> frozenset[str]:
        """The case-folded words outside entities. For each link: the link without protocol, and the words in it."""
        if self._words is None:
            found = words(fold(self._text_without_entities()))
            for url in self.entities.urls:
                for form in _url_forms(url):
                    found.update(_url_words(form))
            self._words = frozenset(found)
        return self._words

    @property
    def hashtags(self) -> frozenset[str]:
        """The hashtags of the text, case-folded and without ``#``."""
        return frozenset(fold(tag.text) for tag in self.entities.hashtags)

    @property
    def mentions(self) -> frozenset[str]:
        """The logins that the text mentions, case-folded and without ``@``."""
        return frozenset(fold(mention.login) for mention in self.entities.mentions)

    @property
    def cashtags(self) -> frozenset[str]:
        """The cashtags of the text, case-folded and without ``$``."""
        return frozenset(fold(tag.text) for tag in self.entities.cashtags)

    @property
    def terms(self) -> frozenset[str]:
        """The terms that ``track`` finds: words, hashtags and mentions with and without sign, cashtags with sign."""
        if self._terms is None:
            terms = self.words
            if tags := self.hashtags:
                terms = terms.union(tags, ["#" + tag for tag in tags])
                if not "".join(tags).isascii():
                    terms = terms.union(unspaced_scripts.grams(_runs_of(tags)))
            if mentions := self.mentions:
                terms = terms.union(mentions, ["@" + login for login in mentions])
            if cashtags := self.cashtags:
                terms = terms.union(["$" + tag for tag in cashtags])
            self._terms = terms
        return self._terms

    @property
    def word_sequence(self) -> tuple[str, ...]:
        """The case-folded words of the text in order, split at all punctuation. Rules search phrases in it."""
        if self._word_sequence is None:
            self._word_sequence = tuple(words_in_order(fold(self.text)))
        return self._word_sequence

    @property
    def joined_words(self) -> str:
        """The words of :attr:`word_sequence` as :func:`join_words` joins them."""
        if self._joined_words is None:
            self._joined_words = join_words(self.word_sequence)
        return self._joined_words

    @property
    def link_words(self) -> tuple[tuple[str, ...], ...]:
        """For each link, its words in order, joined by :func:`join_words`: one text for each form of the link."""
        if self._link_words is None:
            self._link_words = tuple(
                tuple(join_words(words_of_link(form)) for form in _url_forms(url)) for url in self.entities.urls
            )
        return self._link_words

    @property
    def joined_links(self) -> str:
        """All texts of :attr:`link_words` as one string, so that one search is enough for all links."""
        if self._joined_links is None:
            self._joined_links = "\n".join(form for forms in self.link_words for form in forms)
        return self._joined_links

    @property
    def unspaced_runs(self) -> str:
        """The words that have a character of a script without spaces (such as Chinese), also in hashtags and links."""
        if self._unspaced_runs is None:
            links = (fold(form) for url in self.entities.urls for form in _url_forms(url))
            self._unspaced_runs = " ".join(_runs_of((fold(self._text_without_entities()), *self.hashtags, *links)))
        return self._unspaced_runs

    def _text_without_entities(self) -> str:
        """Return the text with each entity replaced by spaces. ``@a's``, for example, leaves only the word ``s``."""
        return self.text if self.entities is NO_ENTITIES else blank_entities(self.text, self.entities)


_WORD = re.compile(r"\w")

EMPTY_TEXT = AnalyzedText("")
"""The empty text. Events without a text share this object."""


def join_words(sequence: Iterable[str]) -> str:
    """Join words so that a text contains a phrase if and only if its joined words contain the phrase's joined words.

    Searching a string takes a fraction of the time of comparing lists of words, also for a text made to be slow.
    """
    return f" {' '.join(sequence)} "


def words_of_link(link: str) -> list[str]:
    """Return the words of a link in order, without emoji and without the protocol."""
    return [word for word in words_in_order(fold(to_display_url(link))) if _WORD.match(word)]


def _runs_of(texts: Iterable[str]) -> Iterator[str]:
    return (run for text in texts for run in unspaced_scripts.find_runs(text))


def _url_forms(url: Url) -> Iterator[str]:
    yield url.expanded_url
    if not url.display_url.endswith("…"):  # a display form that is cut off would yield parts of words
        yield url.display_url


def _url_words(url: str) -> Iterator[str]:
    folded = fold(to_display_url(url))
    yield folded
    yield from words_cut_at_marks(folded)
