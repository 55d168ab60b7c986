"""The language of a text whose author does not say it.

It is told by CLD2 (the detector of Chrome), which knows letters by fours and words: in about 10 µs, without a model to
load, for texts of a few words on. What it is not sure of is ``und``, and so is everything where it is not installed
(``pyproject.toml`` says where).
"""

from collections.abc import Callable
from typing import TypeAlias

from filters.entities import Entities, without_entities
from filters.language import UNDETERMINED

try:
    import pycld2
except ImportError:  # there is no wheel for this machine
    pycld2 = None

Detector: TypeAlias = Callable[[str, Entities], str]
"""From a text and its entities to a BCP 47 tag."""

SCORE = 500
"""Of a text that is too short to be sure of, the best guess must fit so well: CLD2's normalised score."""

LETTERS, WORDS = 10, 2
"""…and it must have so many of each; of a single word anything can be guessed."""

NEWER = {"iw": "he", "jw": "jv"}
"""Tags that were replaced, as CLD2 still has them."""

NOBODYS = frozenset({"ia", "ie", "la", "tlh", "un", "vo", "zzp"})
"""Made up, or spoken no more: short texts of others are taken for these."""

AVAILABLE: bool = pycld2 is not None


def detected(text: str, entities: Entities) -> str:
    """The BCP 47 tag of the language of ``text``, ``und`` where that cannot be told; links, mentions and tags aside."""
    said = without_entities(text, entities).strip()
    if not AVAILABLE or not said:
        return UNDETERMINED
    try:
        tag = _sure(said) or _guessed(said)
    except pycld2.error:  # it takes no characters that are no text, such as U+FFFE
        return UNDETERMINED
    return UNDETERMINED if tag in NOBODYS or tag.startswith("xx-") else NEWER.get(tag, tag)


def undetermined(text: str, entities: Entities) -> str:  # noqa: ARG001 - a detector's signature
    """Of every text that its language is not known."""
    return UNDETERMINED


def _sure(said: str) -> str:
    reliable, _, (first, *_) = pycld2.detect(said)
    return first[1] if reliable and first[1] != "un" else ""


def _guessed(said: str) -> str:
    """What it is not sure of for want of text."""
    if len(said.split()) < WORDS or sum(map(str.isalpha, said)) < LETTERS:
        return "un"
    reliable, _, (first, *_) = pycld2.detect(said, bestEffort=True)
    return first[1] if reliable and first[3] >= SCORE else "un"
