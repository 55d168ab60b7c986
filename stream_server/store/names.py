"""The beginnings by which people are found: a login, a name, and a name from each of its words on.

They are folded alike for the index in Redis and for a search: case, accents and the different forms of a letter do not
matter, and what is neither letter nor digit separates words.
"""

import re
import unicodedata

MAX_BEGINNINGS = 5
"""Most words of a name that a search may begin with."""

MAX_BEGINNING_CHARS = 40
"""Most characters of one beginning that are compared."""

_WORD = re.compile(r"\w+")


def fold_name(text: str) -> str:
    """Return the words of a text with one blank between them, folded. Empty for a text without letters and digits."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    plain = unicodedata.normalize("NFKC", "".join(each for each in letters if not unicodedata.combining(each)))
    return " ".join(_WORD.findall(plain.casefold()))


def beginnings_of(name: str) -> str:
    """Return the folded name from each of its first words on, one a line: what a search for the user may begin with."""
    words = fold_name(name).split(" ")
    rests = (" ".join(words[at:])[:MAX_BEGINNING_CHARS] for at in range(min(len(words), MAX_BEGINNINGS)))
    return "\n".join(dict.fromkeys(rests))
