"""Detects the language of a text whose author gives none.

The library CLD2, which Chrome used, decides by groups of four letters and by words. It takes about 10 µs per text of a
few words and needs no model. The result is ``und`` if CLD2 is not sure, and always if CLD2 is not installed
(``stream-server fetch`` installs it). ``downloads/native.py`` lists the platforms that have it.

CLD2 is part of the wheels of ``pycld2``, inside an extension module built for one version of Python. CLD2's own
functions do not use Python, so ``ctypes`` can call them from every version. The names below are the C++ names that
compilers generate (Itanium ABI). The wheel is pinned by its hash, so the names cannot change unnoticed.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from filters.entities import Entities, blank_entities
from filters.index_keys import UNDETERMINED
from filters.tables import RENAMED
from stream_server.downloads import native

LanguageDetector: TypeAlias = Callable[[str, Entities], str]
"""A function from a text and its entities to a BCP 47 tag."""

MIN_SCORE = 500
"""Least score (CLD2's normalised score) of a best guess for a text that is too short for a reliable answer."""

MIN_LETTERS, MIN_WORDS = 10, 2
"""Least numbers of letters and of words for a best guess. A single word could be in any language."""

IGNORED_TAGS = frozenset({"ia", "ie", "la", "tlh", "un", "vo", "zzp"})
"""Constructed or dead languages. CLD2 takes short texts in other languages for these."""

_DETECT = "_ZN4CLD233ExtDetectLanguageSummaryCheckUTF8EPKcibPKNS_8CLDHintsEiPNS_8LanguageEPiPd{}S7_PbS7_"
"""Name of the function that detects languages; one parameter's type is inserted."""

_VECTORS = "PSt6vectorINS_11ResultChunkESaISA_EE", "PNSt3__16vectorINS_11ResultChunkENS9_9allocatorISB_EEEE"
"""The names of GCC and of Clang for the type of one parameter, which is always NULL here."""

_CODE = "_ZN4CLD212LanguageCodeENS_8LanguageE"
"""Name of the function that returns the code of a language."""

_BEST_EFFORT = 0x4000
"""Flag that makes CLD2 return its best guess instead of ``un``."""

_PLAIN_TEXT = False
"""Whether the text is plain; with false, CLD2 skips what looks like HTML, as its Python package does."""


class Guess(NamedTuple):
    """CLD2's answer for a text: whether CLD2 is sure, the language's code (``un`` if unknown), and its score."""

    reliable: bool
    code: str
    score: float


class _Output(ctypes.Structure):
    """The result that CLD2 writes: three languages, their percentages and scores, and two sizes of the text.

    ``found`` is the bytes of text found, ``valid`` the number of valid bytes.
    """

    _fields_ = (
        ("languages", ctypes.c_int * 3), ("percent", ctypes.c_int * 3), ("scores", ctypes.c_double * 3),
        ("found", ctypes.c_int), ("valid", ctypes.c_int), ("reliable", ctypes.c_bool),
    )  # fmt: skip


Detect: TypeAlias = Callable[[str, bool], Guess | None]
"""A function from a text and whether a best guess is wanted to the answer; None for text with invalid characters."""


def load_cld2(path: Path) -> Detect | None:
    """Return CLD2's function that detects languages, from the library file ``path``. None if it cannot be loaded."""
    try:
        cld2 = ctypes.CDLL(str(path))
    except OSError:
        return None
    detect = next(filter(None, (_function(cld2, _DETECT.format(name)) for name in _VECTORS)), None)
    code = _function(cld2, _CODE)
    return None if detect is None or code is None else _bound(detect, code)


def _function(cld2: ctypes.CDLL, name: str) -> "ctypes._NamedFuncPointer | None":
    try:
        return cld2[name]
    except AttributeError:
        return None


def _bound(detect: "ctypes._NamedFuncPointer", code: "ctypes._NamedFuncPointer") -> Detect:
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    # Inputs: the text, its length, whether it is plain, hints, flags. Outputs: those of `_Output`, and chunks (NULL).
    detect.argtypes = (ctypes.c_char_p, integer, ctypes.c_bool, pointer, integer, *[pointer] * 7)
    detect.restype = integer
    code.argtypes, code.restype = (integer,), ctypes.c_char_p
    names = ("languages", "percent", "scores", "found", "reliable", "valid")
    offsets = [getattr(_Output, name).offset for name in names]

    def answer(text: str, best: bool) -> Guess | None:  # noqa: FBT001 - a hot path; keyword calls cost time
        data, output = text.encode("utf-8", "surrogatepass"), _Output()
        languages, percent, scores, *others = [ctypes.byref(output, offset) for offset in offsets]
        flags = _BEST_EFFORT if best else 0
        detect(data, len(data), _PLAIN_TEXT, None, flags, languages, percent, scores, None, *others)
        if output.valid < len(data):
            return None
        return Guess(output.reliable, code(output.languages[0]).decode(), output.scores[0])

    return answer


@cache
def library() -> Detect | None:
    """Return CLD2's function that detects languages, loaded at the first call. None if CLD2 is not installed."""
    return load_cld2(native.path(native.CLD2))


def detect_language(text: str, entities: Entities) -> str:
    """Return the BCP 47 tag of the language of ``text``, ``und`` if unclear. Links, mentions and tags do not count."""
    plain_text = (blank_entities(text, entities) if any(entities) else text).strip()
    detect = library()
    guess = detect(plain_text, False) if detect is not None and plain_text else None
    if detect is None or guess is None:  # or the text has invalid characters, such as U+FFFE
        return UNDETERMINED
    tag = guess.code if guess.reliable and guess.code != "un" else _guessed_tag(detect, plain_text)
    return UNDETERMINED if tag in IGNORED_TAGS or tag.startswith("xx-") else RENAMED.get(tag, tag)


def detect_nothing(text: str, entities: Entities) -> str:  # noqa: ARG001 - the signature of a detector
    """Return ``und`` for every text: the detector of a server with ``--detect-language off``."""
    return UNDETERMINED


def _guessed_tag(detect: Detect, plain_text: str) -> str:
    """Return CLD2's best guess. Return ``un`` (unknown) for few letters, for one word, or for a low score."""
    if len(plain_text.split()) < MIN_WORDS or sum(map(str.isalpha, plain_text)) < MIN_LETTERS:
        return "un"
    guess = detect(plain_text, True)
    return guess.code if guess is not None and guess.reliable and guess.score >= MIN_SCORE else "un"
