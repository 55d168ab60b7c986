"""What filters make of every code point: a digest that must be the same on all versions of Python.

`python -m tests.filters.all_code_points` prints the digests, with any version that the server supports.
"""

import sys
from collections.abc import Iterator
from hashlib import sha256

from filters.entities import extract_entities
from filters.tokens import fold, tokens, words, words_in_order

PLANES = (0, 1, 2, 3, 14)
"""The planes of Unicode, of 65,536 code points each, that have characters other than those for private use."""

BLOCK = 256  # code points that share a text, because a text for each would take minutes

DIGESTS = {
    0: "3b28928ba6281ab4",
    1: "293ae632d56f2b20",
    2: "c3b89286ba546231",
    3: "e9ae6957f90b45f7",
    14: "9f2c0fb4c16d94e3",
}
"""The digest of each plane, as 16 hexadecimal digits."""


def digest(plane: int) -> str:
    """Return the digest of all that filters find in texts with each code point of a plane."""
    told = sha256()
    for start in range(plane << 16, plane + 1 << 16, BLOCK):
        characters = [chr(code) for code in range(start, start + BLOCK) if not 0xD800 <= code < 0xE000]
        for fact in _facts(characters):
            told.update(ascii(fact).encode())  # `repr` escapes what this Python does not know
    return told.hexdigest()[:16]


def _facts(characters: list[str]) -> Iterator[object]:
    """Yield what is found of each character: between letters and marks, alone, and at the edges of entities."""
    inside = fold(" ".join(f"a{one}\u0323\u0301b" for one in characters))
    yield inside
    yield words_in_order(inside)
    yield sorted(words(inside))
    alone = fold(" ".join(characters))
    yield list(tokens(alone))
    yield alone.split()
    yield extract_entities(" ".join(f"#a{one} #{one} {one}#a $a{one} {one}$a @a{one} {one}a.co" for one in characters))


if __name__ == "__main__":
    for each in PLANES:
        sys.stdout.write(f'    {each}: "{digest(each)}",\n')
