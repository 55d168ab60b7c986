"""The crowd: what each client requests, what is posted, and what each client must receive.

The expected result follows from the requests and the posts, without asking the server. A quiet post has one of many
topics, authors and map squares. A loud post matches every client except those with a sample.
"""

import random
from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

from filters.sample import SAMPLE_HASH_KEY, Sample, stable_hash

TOPICS = 1000
"""Number of topics."""

AUTHORS = 300
"""Number of users who post."""

SQUARES = 1000
"""Number of map squares in which posts lie."""

FIREHOSES = 10
"""Number of firehose clients, whatever the number of clients."""

LOUD_AUTHOR = 0
"""Number of the author of all loud posts."""

LOUD_WORD = "everyone"
"""Word that all loud posts contain."""

LOUD_SQUARE = SQUARES
"""Number of the square in which all loud posts lie."""

KINDS = ("sample", *["track"] * 9, *["follow"] * 6, *["rule"] * 2, *["locations"] * 2)
"""Filters of the other clients, in turn: 5 % sample, 45 % track, 30 % follow, 10 % a rule, 10 % locations."""

SAMPLE_PERCENT = "1"
"""Percentage of the sample clients."""

Due = tuple[int, int]
"""The number of posts, and the sum of the squares of their numbers. Sets of posts with equal pairs count as equal."""


class Asker(NamedTuple):
    """The request of one client: a kind of filter, and which topic, author or square."""

    kind: str
    which: int

    def query(self, number: int, authors: list[str]) -> str:
        """Return the stream parameters of client ``number``.

        Most contain a part of its own, so that clients do not share filters.
        """
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
    """A post that is not sent yet. A ``loud`` post has a special author, word and square."""

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
        """The middle of the post's square."""
        west, south = corner(self.square)
        return {"lon": west + 0.5, "lat": south + 0.5}


class Oracle:
    """Knows which posts were acknowledged, and so what each kind of client must receive."""

    def __init__(self) -> None:
        self.posts = 0
        self._due: dict[Asker, Due] = defaultdict(lambda: (0, 0))
        self._loud: Due = (0, 0)
        self._sample = Sample(Decimal(SAMPLE_PERCENT))

    def posted(self, draft: Draft, status_id: str) -> None:
        """Record that the server answered 201 to the draft."""
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
        """Return what a client must receive that was connected from the beginning."""
        count, squares = self._due[asker]
        if asker.kind in {"firehose", "sample"}:
            return count, squares
        return count + self._loud[0], squares + self._loud[1]

    def _add(self, asker: Asker, number: int, *, loud: bool = False) -> None:
        if not loud:  # a loud post counts once, for all clients
            self._due[asker] = _more(self._due[asker], number)


class Shortfall(NamedTuple):
    """Number of posts that all clients together miss, and number of clients whose posts differ from what is due."""

    missing: int
    wrong: int


def shortfall(askers: Iterable[Asker], received: Iterable[Due], oracle: Oracle) -> Shortfall:
    """Compare what the clients received with what is due."""
    missing = wrong = 0
    for asker, had in zip(askers, received, strict=True):
        due = oracle.due(asker)
        missing += max(0, due[0] - had[0])
        wrong += had != due
    return Shortfall(missing, wrong)


def asker(number: int) -> Asker:
    """Return the request of client ``number``."""
    if number < FIREHOSES:
        return Asker("firehose", 0)
    kind, turn = KINDS[number % len(KINDS)], number // len(KINDS)
    if kind == "sample":
        return Asker(kind, 0)
    if kind == "follow":
        return Asker(kind, 1 + turn % (AUTHORS - 1))
    return Asker(kind, (turn * 7 + number) % (SQUARES if kind == "locations" else TOPICS))


def draft(number: int, *, loud: bool, chance: random.Random) -> Draft:
    """Create post ``number``."""
    author = LOUD_AUTHOR if loud else chance.randrange(1, AUTHORS)
    square = LOUD_SQUARE if loud else chance.randrange(SQUARES)
    return Draft(number, chance.randrange(TOPICS), author, square, loud)


def body(of: Draft, t_ns: int) -> dict[str, Any]:
    """Return the request body. Its ``meta`` holds the time of sending in nanoseconds, and the post's number."""
    return {"message": of.message, "location": of.place, "meta": {"t": t_ns, "k": of.number}}


def topic(number: int) -> str:
    """Return one of the words that posts are about."""
    return f"topic{number}"


def corner(square: int) -> tuple[float, float]:
    """Return the south-west corner of a square of one degree. Squares do not touch."""
    return -150.0 + 2 * (square % 50), -45.0 + 2 * (square // 50)


def box(square: int) -> str:
    """Return a square in the format of ``locations``."""
    west, south = corner(square)
    return f"{west:g},{south:g},{west + 1:g},{south + 1:g}"


def _nowhere(number: int) -> str:
    """Return a box for one client in which no post lies."""
    west, south = 100 + number % 500 / 10, -50 + number // 500
    return f"{west:g},{south},{west + 0.05:g},{south + 0.05:g}"


def _more(due: Due, number: int) -> Due:
    return due[0] + 1, due[1] + number * number
