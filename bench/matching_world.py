"""The synthetic data of the matching benchmark: words by Zipf's law, posts, and the filters of clients."""

from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import Any, TypeAlias

from filters.base import Filter
from filters.event import Event
from filters.follow import Follow
from filters.location import Location
from filters.narrowing import Kinds
from filters.rule import Rules
from filters.subscription import Subscription
from filters.track import Track

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
"""Letters of the words."""

WORDS = 50_000
"""Size of the vocabulary. The n-th word is n times rarer than the first (Zipf's law with exponent 1)."""

COMMON = 300
"""Number of the most common words. They make up more than half of all text, and few clients would track them."""

PHRASES = 10
"""Number of phrases of a ``track``, of one to three words each."""

PEOPLE = 20
"""Number of ids of a ``follow``."""

IDS = 100_000
"""Number of authors. All post equally often."""

COMMUNITY = 1_000
"""Number of clients of a community, if there are communities."""

POSTS = (Kinds.parse("post,delete"),)
"""The kinds of events that a stream delivers by default."""

Facts: TypeAlias = dict[str, Any]
"""The arguments from which an :class:`Event` is built."""

WEIGHTS = tuple(accumulate(1 / rank for rank in range(1, WORDS + 1)))
"""Cumulative weights of the words."""


@dataclass(frozen=True)
class World:
    """The posts and filters of a benchmark. ``seed`` alone decides every random draw.

    Attributes:
        seed: Seed of all random draws.
        common: Whether clients also track the most common words.
        communities: Number of communities. Each one has its own words, authors and part of each map square, so that
            more
            clients do not mean more matches for an event.
    """

    seed: int
    common: bool = False
    communities: int = 1

    def phrases(self, clients: int) -> list[list[str]]:
        """Return the phrases that each client tracks."""
        random = Random(f"phrases {self.seed}")
        return [[self._phrase(random, self._home(client)) for _ in range(PHRASES)] for client in range(clients)]

    def tracks(self, clients: int) -> list[Filter]:
        """Return one ``track`` filter for each client."""
        return [Track.parse(",".join(phrases)) for phrases in self.phrases(clients)]

    def boxes(self, clients: int) -> list[Filter]:
        """Return one box for each client, 0.1 to 10 degrees wide and high, anywhere."""
        random = Random(f"boxes {self.seed}")
        shrunk = self.communities**0.5
        return [Location([_box(random, shrunk)]) for _ in range(clients)]

    def follows(self, clients: int) -> list[Filter]:
        """Return one ``follow`` filter for each client, with random authors of its community."""
        random = Random(f"follows {self.seed}")
        return [
            Follow([str(self._home(client) * IDS + random.randrange(IDS)) for _ in range(PEOPLE)])
            for client in range(clients)
        ]

    def rules(self, clients: int) -> list[Filter]:
        """Return one rule for each client, in forms that people write."""
        random = Random(f"rules {self.seed}")
        return [self._rule(random, self._home(client)) for client in range(clients)]

    def mix(self, clients: int) -> list[Filter]:
        """Return filters of all kinds, shuffled: 30 % follow, 40 % track, 10 % boxes, 20 % rules."""
        tenth = clients // 10
        made = [*self.follows(3 * tenth), *self.tracks(4 * tenth), *self.boxes(tenth), *self.rules(2 * tenth)]
        Random(f"mix {self.seed}").shuffle(made)
        return made

    def events(self, count: int, *, located: float = 0.1, silent: bool = False) -> list[Facts]:
        """Return posts with authors. A share ``located`` of them has a point. ``silent`` posts have no text."""
        random = Random(f"events {self.seed}")
        found = []
        for _ in range(count):
            home = random.randrange(self.communities)
            author = str(home * IDS + random.randrange(IDS))
            point = (random.uniform(-180, 180), random.uniform(-90, 90)) if random.random() < located else None
            text = "" if silent else self._text(random, home)
            facts = {"lang": random.choice(("en", "de", None)), "followers": int(random.paretovariate(0.7))}
            found.append({"author": author, "user_ids": frozenset((author,)), "text": text, "point": point, **facts})
        return found

    def _home(self, client: int) -> int:
        return client % self.communities

    def _text(self, random: Random, home: int) -> str:
        drawn = random.choices(self.words(home), cum_weights=WEIGHTS, k=random.randint(8, 24))
        return " ".join(drawn)

    def _phrase(self, random: Random, home: int) -> str:
        count = random.choices((1, 2, 3), (6, 3, 1))[0]
        return " ".join(self._word(random, home) for _ in range(count))

    def _rule(self, random: Random, home: int) -> Filter:
        one, two, person = self._word(random, home), self._word(random, home), home * IDS + random.randrange(IDS)
        shapes = (
            f"{one} -{two}",
            f'"{one} {two}"',
            f"({one} OR {two}) lang:en",
            f"from:{person} {one}",
            f"{one} followers_count:100..",
        )
        return Rules.parse(random.choice(shapes))

    def _word(self, random: Random, home: int) -> str:
        floor = 0.0 if self.common else WEIGHTS[COMMON - 1]
        return self.words(home)[bisect(WEIGHTS, random.uniform(floor, WEIGHTS[-1] - 1e-9))]

    def words(self, home: int) -> tuple[str, ...]:
        """Return the words of a community, the most common first."""
        return _words() if self.communities == 1 else _words_of(home)


def subscribed(filters: list[Filter]) -> list[Subscription]:
    """Return one subscription for each filter, with the kinds of events that a stream delivers by default."""
    return [Subscription([asked], POSTS) for asked in filters]


def made(facts: Facts) -> Event:
    """Build an event without cached results."""
    return Event("post", **facts)


@cache
def _words() -> tuple[str, ...]:
    """Return random words, in which common words are short, as in real languages."""
    random, found = Random("words"), dict[str, None]()
    while len(found) < WORDS:
        length = max(2, round(random.gauss(2.5 + len(found).bit_length() / 3, 1.2)))
        found["".join(random.choices(LETTERS, k=length))] = None
    return tuple(found)


@cache
def _words_of(home: int) -> tuple[str, ...]:
    return tuple(f"{word}{home}" for word in _words())


def _box(random: Random, shrunk: float) -> tuple[float, float, float, float]:
    west, south = random.uniform(-180, 170), random.uniform(-90, 80)
    return west, south, west + random.uniform(0.1, 10) / shrunk, south + random.uniform(0.1, 10) / shrunk
