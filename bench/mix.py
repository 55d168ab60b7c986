"""Who the crowd is: what each client asks for, what is posted, and what each is due of it.

What a client is due is known from how it was asked and how it was posted, without asking the server: quiet posts are
about one of many topics, by one of many authors, in one of many squares; a loud one is for all but the samples.
"""

import random
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

from filters.sample import SAMPLE_HASH_KEY, Sample
from filters.stable_hash import stable_hash

TOPICS = 1000
AUTHORS = 300
SQUARES = 1000

FIREHOSES = 10
"""So many clients hear everything, however many there are."""

LOUD_AUTHOR = 0
LOUD_WORD = "everyone"
LOUD_SQUARE = SQUARES
"""By, with and in which the loud posts are."""

KINDS = ("sample", *["track"] * 9, *["follow"] * 6, *["rule"] * 2, *["locations"] * 2)
"""The others' filters, in turn: 5 % sample, 45 % track, 30 % follow, 10 % a rule, 10 % locations."""

SAMPLE_PERCENT = "1"

Due = tuple[int, int]
"""How many posts, and the sum of the squares of their numbers: two sets with the same pair are the same set."""


class Asker(NamedTuple):
    """What a client asks for: a kind of filter and which topic, author or square."""

    kind: str
    which: int

    def query(self, number: int, authors: list[str]) -> str:
        """The stream's parameters of client ``number``, with something of its own, so that no two share a filter."""
        if self.kind == "firehose":
            return "firehose=true"
        if self.kind == "sample":
            return f"sample={SAMPLE_PERCENT}"
        if self.kind == "track":
            return f"track={quote(f'{topic(self.which)},{LOUD_WORD},nobody{number}says')}"
        if self.kind == "follow":
            return f"follow={authors[self.which]},{authors[LOUD_AUTHOR]},{number + 1}"
        if self.kind == "rule":
            return f"rule={quote(f'{topic(self.which)} OR {LOUD_WORD} OR nobody{number}says')}"
        return f"locations={quote(f'{box(self.which)},{box(LOUD_SQUARE)},{_nowhere(number)}')}"


class Draft(NamedTuple):
    """A post before it is one; a ``loud`` one has its own author, word and square."""

    number: int
    topic: int
    author: int
    square: int
    loud: bool

    @property
    def message(self) -> str:
        """A text of usual length."""
        return (
            f"{topic(self.topic)} is what {LOUD_WORD if self.loud else 'they'} at the gate talked about for flight "
            f"{self.number} last night #delayed http://example.com/flights/{self.number}"
        )

    @property
    def place(self) -> dict[str, float]:
        """The middle of its square."""
        west, south = corner(self.square)
        return {"lon": west + 0.5, "lat": south + 0.5}


class Oracle:
    """What was acknowledged, and so what every kind of client is due."""

    def __init__(self) -> None:
        self.posts = 0
        self._due: dict[Asker, Due] = defaultdict(lambda: (0, 0))
        self._loud: Due = (0, 0)
        self._sample = Sample(Decimal(SAMPLE_PERCENT))

    def posted(self, draft: Draft, status_id: str) -> None:
        """The draft was answered 201."""
        self.posts += 1
        self._add(Asker("firehose", 0), draft.number)
        if self._sample.contains_position(stable_hash(status_id, SAMPLE_HASH_KEY)):
            self._add(Asker("sample", 0), draft.number)
        if draft.loud:
            self._loud = _more(self._loud, draft.number)
        self._add(Asker("track", draft.topic), draft.number, loud=draft.loud)
        self._add(Asker("rule", draft.topic), draft.number, loud=draft.loud)
        self._add(Asker("follow", draft.author), draft.number, loud=draft.loud)
        self._add(Asker("locations", draft.square), draft.number, loud=draft.loud)

    def due(self, asker: Asker) -> Due:
        """All that a client that was there from the beginning is due."""
        count, squares = self._due[asker]
        if asker.kind in {"firehose", "sample"}:
            return count, squares
        return count + self._loud[0], squares + self._loud[1]

    def _add(self, asker: Asker, number: int, *, loud: bool = False) -> None:
        if not loud:  # what is loud is counted once, for all
            self._due[asker] = _more(self._due[asker], number)


class Shortfall(NamedTuple):
    """What all clients together miss, and how many of them have something else than they are due."""

    missing: int
    wrong: int


def shortfall(askers: Iterable[Asker], received: Iterable[Due], oracle: Oracle) -> Shortfall:
    """Compare what the clients have with what they are due."""
    missing = wrong = 0
    for asker, had in zip(askers, received, strict=True):
        due = oracle.due(asker)
        missing += max(0, due[0] - had[0])
        wrong += had != due
    return Shortfall(missing, wrong)


def asker(number: int) -> Asker:
    """What client ``number`` asks for."""
    if number < FIREHOSES:
        return Asker("firehose", 0)
    kind, turn = KINDS[number % len(KINDS)], number // len(KINDS)
    if kind == "sample":
        return Asker(kind, 0)
    if kind == "follow":
        return Asker(kind, 1 + turn % (AUTHORS - 1))
    return Asker(kind, (turn * 7 + number) % (SQUARES if kind == "locations" else TOPICS))


def draft(number: int, *, loud: bool, chance: random.Random) -> Draft:
    """Post ``number``."""
    author = LOUD_AUTHOR if loud else chance.randrange(1, AUTHORS)
    square = LOUD_SQUARE if loud else chance.randrange(SQUARES)
    return Draft(number, chance.randrange(TOPICS), author, square, loud)


def body(of: Draft, t_ns: int) -> dict[str, Any]:
    """The request; ``meta`` has when it was sent and which it is."""
    return {"message": of.message, "location": of.place, "meta": {"t": t_ns, "k": of.number}}


def topic(number: int) -> str:
    """One of the words that posts are about."""
    return f"topic{number}"


def corner(square: int) -> tuple[float, float]:
    """The south-west corner of a square of one degree; no two touch."""
    return -150.0 + 2 * (square % 50), -45.0 + 2 * (square // 50)


def box(square: int) -> str:
    """A square as ``locations`` takes it."""
    west, south = corner(square)
    return f"{west:g},{south:g},{west + 1:g},{south + 1:g}"


def _nowhere(number: int) -> str:
    """A box of a client's own, where nobody posts."""
    west, south = 100 + number % 500 / 10, -50 + number // 500
    return f"{west:g},{south},{west + 0.05:g},{south + 0.05:g}"


def _more(due: Due, number: int) -> Due:
    return due[0] + 1, due[1] + number * number
