"""A text with its entities, as filters look for words in it."""

from collections.abc import Iterable, Iterator

from filters import unspaced_scripts
from filters.entities import NO_ENTITIES, Entities, Url, blank_entities, to_display_url
from filters.tokens import fold, words, words_cut_at_marks, words_in_order


class AnalyzedText:
    """What ``text`` says; the indices of ``entities`` count its code points. All is computed at the first look.

    Whoever asks whether a bare term stands in it asks :meth:`contains_term`, never :attr:`terms`: a term may be found that
    is no key by itself.
    """

    __slots__ = ("_terms", "_unspaced_runs", "_word_sequence", "_words", "entities", "text")

    def __init__(self, text: str, entities: Entities = NO_ENTITIES) -> None:
        self.text = text
        self.entities = entities
        self._words: frozenset[str] | None = None
        self._terms: frozenset[str] | None = None
        self._word_sequence: tuple[str, ...] | None = None
        self._unspaced_runs: str | None = None

    def contains_term(self, term: str) -> bool:
        """Whether a folded term, bare or with the sign of an entity, is found in it."""
        return term in self.terms or (
            not term.isascii() and unspaced_scripts.needs_substring_search(term) and term in self.unspaced_runs
        )

    @property
    def words(self) -> frozenset[str]:
        """The words of the text outside its entities, and each link as a whole and in its parts; folded."""
        if self._words is None:
            found = words(fold(self._text_without_entities()))
            for url in self.entities.urls:
                for form in _url_forms(url):
                    found.update(_url_words(form))
            self._words = frozenset(found)
        return self._words

    @property
    def hashtags(self) -> frozenset[str]:
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
        """The folded words of the whole text in their order, cut at every mark: what a phrase is looked for in."""
        if self._word_sequence is None:
            self._word_sequence = tuple(words_in_order(fold(self.text)))
        return self._word_sequence

    @property
    def unspaced_runs(self) -> str:
        """The runs of text, hashtags and links in scripts without blanks, with a blank between any two."""
        if self._unspaced_runs is None:
            links = (fold(one) for url in self.entities.urls for one in _url_forms(url))
            self._unspaced_runs = " ".join(_runs_of((fold(self._text_without_entities()), *self.hashtags, *links)))
        return self._unspaced_runs

    def _text_without_entities(self) -> str:
        """The text without its entities: what is left of ``@a's`` is ``s``, never ``a's``."""
        return self.text if self.entities is NO_ENTITIES else blank_entities(self.text, self.entities)


EMPTY_TEXT = AnalyzedText("")
"""No text at all."""


def _runs_of(texts: Iterable[str]) -> Iterator[str]:
    return (run for text in texts for run in unspaced_scripts.find_runs(text))


def _url_forms(url: Url) -> Iterator[str]:
    yield url.expanded_url
    if not url.display_url.endswith("…"):  # a shortened link would yield half words
        yield url.display_url


def _url_words(url: str) -> Iterator[str]:
    whole = fold(to_display_url(url))
    yield whole
    yield from words_cut_at_marks(whole)
