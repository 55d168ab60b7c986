"""CLD2, the detector of languages that Chrome had, called as a C library.

The library stands in the wheels of ``pycld2``, inside an extension module that was built for one Python each. Its own
functions know nothing of Python, so ``ctypes`` can call them from every version: the same bytes answer the same on
all of them. The names below are the C++ names as compilers write them (Itanium ABI); the wheel is pinned by hash
(``downloads/native.py``), so they cannot change unnoticed.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

_DETECT = "_ZN4CLD233ExtDetectLanguageSummaryCheckUTF8EPKcibPKNS_8CLDHintsEiPNS_8LanguageEPiPd{}S7_PbS7_"

_VECTOR = {
    "gcc": "PSt6vectorINS_11ResultChunkESaISA_EE",
    "clang": "PNSt3__16vectorINS_11ResultChunkENS9_9allocatorISB_EEEE",
}
"""The one parameter (always NULL here) whose type compilers name differently."""

_CODE = "_ZN4CLD212LanguageCodeENS_8LanguageE"

_BEST_EFFORT = 0x4000
"""The flag by which CLD2 answers with its best guess instead of ``un``."""

_PLAIN_TEXT = False
"""CLD2 skips what looks like HTML, as its Python package has it do."""


class Guess(NamedTuple):
    """The language that most of a text is in (``un``: unknown), and how well the text fits it."""

    reliable: bool
    code: str
    score: float


Detect: TypeAlias = Callable[[str, bool], Guess | None]
"""From a text, and whether the best guess is wanted, to the answer; None for a text with codes of no character."""


def load(path: Path) -> Detect | None:
    """The detector in the library at ``path``; None if there is none that this machine can load."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    detect = next(filter(None, (_function(library, _DETECT.format(name)) for name in _VECTOR.values())), None)
    code = _function(library, _CODE)
    return None if detect is None or code is None else _bound(detect, code)


def _function(library: ctypes.CDLL, name: str) -> "ctypes._NamedFuncPointer | None":
    try:
        return library[name]
    except AttributeError:
        return None


def _bound(detect: "ctypes._NamedFuncPointer", code: "ctypes._NamedFuncPointer") -> Detect:
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    # Text, its bytes, plain or HTML, hints, flags; then where to write: three languages, their percentages and scores,
    # chunks (none are wanted), bytes of text found, whether that is reliable, and how many bytes were valid.
    detect.argtypes = (ctypes.c_char_p, integer, ctypes.c_bool, pointer, integer, *[pointer] * 7)
    detect.restype = integer
    code.argtypes, code.restype = (integer,), ctypes.c_char_p

    def answer(text: str, best: bool) -> Guess | None:  # noqa: FBT001 - one call in a hot path, named at both callers
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
