"""The language of a text whose author does not say it.

CLD2 (the detector that Chrome had) tells it from groups of four letters and from words: in about 10 µs, without a model
to load, for texts of a few words on. A text that CLD2 is not sure of is ``und``. So is every text where CLD2 was not
fetched (``stream-server fetch``); ``downloads/native.py`` says for which machines there is one.
"""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from filters.entities import Entities, blank_entities
from filters.language import UNDETERMINED
from stream_server.downloads import native
from stream_server.events import cld2
from stream_server.events.cld2 import Detect

LanguageDetector: TypeAlias = Callable[[str, Entities], str]
"""From a text and its entities to a BCP 47 tag."""

SCORE = 500
"""Of a text that is too short to be sure of, the best guess must fit so well: CLD2's normalised score."""

LETTERS, WORDS = 10, 2
"""…and it must have so many of each; of a single word anything can be guessed."""

NEWER = {"iw": "he", "jw": "jv"}
"""Tags that were replaced, as CLD2 still has them."""

NOBODYS = frozenset({"ia", "ie", "la", "tlh", "un", "vo", "zzp"})
"""Made up, or spoken no more: short texts of others are taken for these."""


@cache
def library() -> Detect | None:
    """CLD2, loaded at the first use; None where it was not fetched."""
    return cld2.load(native.path(native.CLD2))


def detect_language(text: str, entities: Entities) -> str:
    """The BCP 47 tag of the language of ``text``, ``und`` where that cannot be told; links, mentions and tags aside."""
    said = blank_entities(text, entities).strip()
    detect = library()
    if detect is None or not said:
        return UNDETERMINED
    tag = _sure(detect, said) or _guessed(detect, said)
    return UNDETERMINED if tag in NOBODYS or tag.startswith("xx-") else NEWER.get(tag, tag)


def detect_nothing(text: str, entities: Entities) -> str:  # noqa: ARG001 - a detector's signature
    """Of every text that its language is not known."""
    return UNDETERMINED


def _sure(detect: Detect, said: str) -> str:
    guess = detect(said, False)
    if guess is None:  # it has characters that are no text, such as U+FFFE
        return "un"
    return guess.code if guess.reliable and guess.code != "un" else ""


def _guessed(detect: Detect, said: str) -> str:
    """The best guess, for a text that is too short to be sure of."""
    if len(said.split()) < WORDS or sum(map(str.isalpha, said)) < LETTERS:
        return "un"
    guess = detect(said, True)
    return guess.code if guess is not None and guess.reliable and guess.score >= SCORE else "un"
