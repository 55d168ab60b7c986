"""A text with its entities, the words and terms by which filters find it, and the positions of a term."""

from collections.abc import Iterator

from filters.entities import NO_ENTITIES, Entities, Indices, Url, blank_entities, to_display_url
from filters.folded_text import folded_text
from filters.term_search import SearchedTerm, find_spans, mark_text, searched_term
from filters.tokens import blank_emoji, find_runs, find_starts, fold, is_substring_term, tokens, words
from filters.word_sequence import WordSequence


class AnalyzedText:
    """A text with its entities. The object computes its words and terms when they are first needed.

    To test for a term, call :meth:`contains_term` instead of looking into :attr:`terms`. That set does not have the
    terms for which the text must be searched (:mod:`filters.term_search`); the method finds these too.
    """

    __slots__ = (
        "_folded", "_found", "_link_words", "_link_words_text", "_marked_text", "_terms", "_unspaced_runs",
        "_word_sequence", "entities", "text",
    )  # fmt: skip

    def __init__(self, text: str, entities: Entities = NO_ENTITIES) -> None:
        self.text = text
        self.entities = entities
        self._folded: str | None = None
        self._found: dict[str, bool] = {}
        self._terms: frozenset[str] | None = None
        self._marked_text: str | None = None
        self._unspaced_runs: str | None = None
        self._word_sequence: WordSequence | None = None
        self._link_words: tuple[tuple[WordSequence, ...], ...] | None = None
        self._link_words_text: str | None = None

    def contains_term(self, term: str) -> bool:
        """Whether the text has this case-folded term: words, or an entity with its sign (``#x``, ``@x``, ``$x``)."""
        if term in self.terms:
            return True
        searched = searched_term(term)
        return searched is not None and self.contains_searched(searched)

    def contains_searched(self, searched: SearchedTerm) -> bool:
        """Return whether a search of the text finds the term.

        The result is kept: thousands of filters may ask for it.
        """
        term = searched.term
        found = self._found.get(term)
        if found is None:
            if term in self.terms:  # a whole link
                found = True
            elif not searched.required <= self.terms:
                found = False
            elif not searched.marked:
                found = term in self.unspaced_runs
            else:
                found = next(searched.starts(self.marked_text), None) is not None
            self._found[term] = found
        return found

    @property
    def folded(self) -> str:
        """The case-folded text with spaces in place of entities. ``@a's``, for example, leaves only the word ``s``."""
        if self._folded is None:
            blanked = self.text if self.entities is NO_ENTITIES else blank_entities(self.text, self.entities)
            self._folded = fold(blanked)
        return self._folded

    @property
    def hashtags(self) -> frozenset[str]:
        """The hashtags of the text, case-folded and without ``#``."""
        return frozenset(fold(tag.text) for tag in self.entities.hashtags)

    @property
    def terms(self) -> frozenset[str]:
        """The terms that ``track`` finds, case-folded.

        These are the words outside entities, each link without protocol and the words in it, hashtags and mentions with
        and without their sign, and cashtags with their sign.
        """
        if self._terms is None:
            found = words(self.folded)
            if self.entities is not NO_ENTITIES:  # most texts have none
                for form in self._link_forms():
                    found |= {form, *words(form)}
                for tag in self.hashtags:
                    found |= {tag, "#" + tag, *words(tag)}
                for login in [fold(mention.login) for mention in self.entities.mentions]:
                    found |= {login, "@" + login}
                found.update(["$" + fold(tag.text) for tag in self.entities.cashtags])
            self._terms = frozenset(found)
        return self._terms

    @property
    def marked_text(self) -> str:
        """The text outside entities, prepared for searches by :func:`filters.term_search.mark_text`."""
        if self._marked_text is None:
            self._marked_text = mark_text(self.folded)
        return self._marked_text

    @property
    def unspaced_runs(self) -> str:
        """The words of text, hashtags and links that have a character of a script without spaces, such as Chinese."""
        if self._unspaced_runs is None:
            texts = map(blank_emoji, (self.folded, *self.hashtags, *self._link_forms()))
            self._unspaced_runs = " ".join(run for text in texts for run in find_runs(text))
        return self._unspaced_runs

    @property
    def word_sequence(self) -> WordSequence:
        """The words of the text in order, with those of its entities. Rules search phrases in it."""
        if self._word_sequence is None:
            self._word_sequence = WordSequence.of(self.text, self.entities)
        return self._word_sequence

    @property
    def link_words(self) -> tuple[tuple[WordSequence, ...], ...]:
        """For each link of the text, the words of each form in which it can be found."""
        if self._link_words is None:
            self._link_words = tuple(tuple(map(WordSequence.of_link, _url_forms(url))) for url in self.entities.urls)
        return self._link_words

    def contains_link(self, phrase: WordSequence) -> bool:
        """Return whether a link in this text contains the words of ``phrase`` directly after each other."""
        if self._link_words_text is None:  # one search is enough to pass the texts whose links have none of it
            self._link_words_text = "\n".join(form.text for forms in self.link_words for form in forms)
        if phrase.text not in self._link_words_text:
            return False
        return not phrase.joined or any(form.contains(phrase) for forms in self.link_words for form in forms)

    def _link_forms(self) -> Iterator[str]:
        return (fold(to_display_url(form)) for url in self.entities.urls for form in _url_forms(url))


EMPTY_TEXT = AnalyzedText("")
"""The empty text. Events without a text share this object."""


def _url_forms(url: Url) -> Iterator[str]:
    yield url.expanded_url
    if not url.display_url.endswith("…"):  # a display form that is cut off would yield parts of words
        yield url.display_url


def find_occurrences(analyzed: AnalyzedText, term: str) -> list[Indices]:
    """Return start and end of each occurrence of a case-folded term in the text, in order and in code points.

    The term is a word, or an entity with its sign (``#x``). If an entity contains the term, start and end are those of
    the entity. The result is empty if and only if :meth:`filters.analyzed_text.AnalyzedText.contains_term` is False.
    """
    found = set[Indices]()
    for name, family in analyzed.entities._asdict().items():
        for entity in family:
            alone = entity._replace(indices=(0, 0))  # in an empty text, so that its place takes no time
            if AnalyzedText("", NO_ENTITIES._replace(**{name: (alone,)})).contains_term(term):
                found.add(entity.indices)
    folded = folded_text(blank_entities(analyzed.text, analyzed.entities))
    found.update(folded.original_span(start, end) for start, end in _find_spans(folded.text, term))
    return sorted(found)


def _find_spans(folded: str, term: str) -> Iterator[Indices]:
    searched = searched_term(term)
    if searched is not None:
        yield from find_spans(folded, searched)
    elif is_substring_term(term):
        for start in find_starts(blank_emoji(folded), term):
            yield start, start + len(term)
    else:
        yield from ((start, end) for _, start, end in tokens(folded) if folded[start:end] == term)
