"""The beginnings by which people are found: a login, a name, and a name from each of its words on."""

from filters.tokens import fold_name

MAX_BEGINNINGS = 5
"""Most words of a name that a search may begin with."""

MAX_BEGINNING_CHARS = 40
"""Most characters of one beginning that are compared."""


def beginnings_of(name: str) -> str:
    """Return the folded name from each of its first words on, one a line: what a search for the user may begin with."""
    words = fold_name(name).split(" ")
    rests = (" ".join(words[at:])[:MAX_BEGINNING_CHARS] for at in range(min(len(words), MAX_BEGINNINGS)))
    return "\n".join(dict.fromkeys(rests))
