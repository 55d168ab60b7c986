"""Detecting the language of a text whose author gives none.

CLD2, which Chrome used, decides by groups of four letters and by words. It takes about 10 µs per text of a few words
and needs no model. The result is ``und`` for a text of which CLD2 is not sure, and for every text if CLD2 is not
installed (``stream-server fetch``). ``downloads/native.py`` lists the platforms that have it.
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
"""A function from a text and its entities to a BCP 47 tag."""

MIN_SCORE = 500
"""Least score (CLD2's normalised score) of a best guess for a text that is too short for a reliable answer."""

MIN_LETTERS, MIN_WORDS = 10, 2
"""Least numbers of letters and of words for a best guess. A single word could be in any language."""

REPLACED_TAGS = {"iw": "he", "jw": "jv"}
"""Outdated tags that CLD2 still uses, with their replacements."""

IGNORED_TAGS = frozenset({"ia", "ie", "la", "tlh", "un", "vo", "zzp"})
"""Constructed or dead languages. CLD2 takes short texts in other languages for these."""


@cache
def library() -> Detect | None:
    """Return CLD2, loaded at the first call; None if it is not installed."""
    return cld2.load(native.path(native.CLD2))


def detect_language(text: str, entities: Entities) -> str:
    """Return the BCP 47 tag of the language of ``text``, or ``und`` if it is unclear.

    Links, mentions and tags do not count.
    """
    plain_text = blank_entities(text, entities).strip()
    detect = library()
    if detect is None or not plain_text:
        return UNDETERMINED
    tag = _reliable_tag(detect, plain_text) or _guessed_tag(detect, plain_text)
    return UNDETERMINED if tag in IGNORED_TAGS or tag.startswith("xx-") else REPLACED_TAGS.get(tag, tag)


def detect_nothing(text: str, entities: Entities) -> str:  # noqa: ARG001 - the signature of a detector
    """Return ``und`` for every text: the detector of a server with ``--detect-language off``."""
    return UNDETERMINED


def _reliable_tag(detect: Detect, plain_text: str) -> str:
    """Return CLD2's reliable answer; ``un`` for text with invalid characters, empty if CLD2 is not sure."""
    guess = detect(plain_text, False)
    if guess is None:  # the text has invalid characters, such as U+FFFE
        return "un"
    return guess.code if guess.reliable and guess.code != "un" else ""


def _guessed_tag(detect: Detect, plain_text: str) -> str:
    """Return CLD2's best guess for a text too short for a reliable answer; ``un`` if the guess is not good enough."""
    if len(plain_text.split()) < MIN_WORDS or sum(map(str.isalpha, plain_text)) < MIN_LETTERS:
        return "un"
    guess = detect(plain_text, True)
    return guess.code if guess is not None and guess.reliable and guess.score >= MIN_SCORE else "un"
