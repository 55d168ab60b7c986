"""CLD2, the language detector that Chrome used, called as a C library.

The library is part of the wheels of ``pycld2``, inside an extension module built for one version of Python. Its own
functions do not use Python, so ``ctypes`` can call them from every version with the same results. The names below are
the C++ names that compilers generate (Itanium ABI). The wheel is pinned by its hash (``downloads/native.py``), so the
names cannot change unnoticed.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

_DETECT = "_ZN4CLD233ExtDetectLanguageSummaryCheckUTF8EPKcibPKNS_8CLDHintsEiPNS_8LanguageEPiPd{}S7_PbS7_"
"""Name of the function that detects languages; one parameter's type is inserted."""

_VECTOR = {
    "gcc": "PSt6vectorINS_11ResultChunkESaISA_EE",
    "clang": "PNSt3__16vectorINS_11ResultChunkENS9_9allocatorISB_EEEE",
}
"""The type of the one parameter (always NULL here) whose name differs between compilers."""

_CODE = "_ZN4CLD212LanguageCodeENS_8LanguageE"
"""Name of the function that returns the code of a language."""

_BEST_EFFORT = 0x4000
"""Flag that makes CLD2 return its best guess instead of ``un``."""

_PLAIN_TEXT = False
"""Whether the text is plain; with false, CLD2 skips what looks like HTML, as its Python package does."""


class Guess(NamedTuple):
    """CLD2's answer for one text.

    Attributes:
        reliable: Whether CLD2 is sure.
        code: Language of most of the text; ``un`` for unknown.
        score: How well the text fits the language.
    """

    reliable: bool
    code: str
    score: float


Detect: TypeAlias = Callable[[str, bool], Guess | None]
"""A function from a text and whether a best guess is wanted to the answer; None for text with invalid characters."""


def load(path: Path) -> Detect | None:
    """Return the detector of the library at ``path``; None if this machine cannot load it."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    detect = next(filter(None, (_function(library, _DETECT.format(name)) for name in _VECTOR.values())), None)
    code = _function(library, _CODE)
    return None if detect is None or code is None else _bound(detect, code)


def _function(library: ctypes.CDLL, name: str) -> "ctypes._NamedFuncPointer | None":
    """Return the library's function of that name; None if it does not have it."""
    try:
        return library[name]
    except AttributeError:
        return None


def _bound(detect: "ctypes._NamedFuncPointer", code: "ctypes._NamedFuncPointer") -> Detect:
    """Return the Python function that calls the two functions of the library."""
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    # Inputs: the text, its length, whether it is plain, hints, flags. Outputs: three languages, their percentages and
    # scores, chunks (NULL), the bytes of text found, whether the answer is reliable, the number of valid bytes.
    detect.argtypes = (ctypes.c_char_p, integer, ctypes.c_bool, pointer, integer, *[pointer] * 7)
    detect.restype = integer
    code.argtypes, code.restype = (integer,), ctypes.c_char_p

    def answer(text: str, best: bool) -> Guess | None:  # noqa: FBT001 - a hot path; keyword calls cost time
        """Call the library for one text."""
        data = text.encode("utf-8", "surrogatepass")
        languages, percent, scores = (integer * 3)(), (integer * 3)(), (ctypes.c_double * 3)()
        found, valid, reliable = integer(), integer(), ctypes.c_bool()
        flags = _BEST_EFFORT if best else 0
        detect(
            data, len(data), _PLAIN_TEXT, None, flags, languages, percent, scores, None,
            ctypes.byref(found), ctypes.byref(reliable), ctypes.byref(valid),
        )  # fmt: skip
        if valid.value < len(data):
            return None
        return Guess(reliable.value, code(languages[0]).decode(), scores[0])

    return answer
