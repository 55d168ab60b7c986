"""The made-up world of the matching benchmark: words as Zipf has them, what people post, and what clients ask for."""

from bisect import bisect
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import Any, TypeAlias

from filters.base import Filter
from filters.event import Event
from filters.follow import Follow
from filters.kind import Kinds
from filters.location import Location
from filters.rule import Rules
from filters.subscription import Subscription
from filters.track import Track

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"

WORDS = 50_000
"""The vocabulary; the n-th word is n times rarer than the first (Zipf's law with exponent 1)."""

COMMON = 300
"""So many words make up more than half of all text; nobody has much use for tracking them."""

PHRASES = 10
"""The phrases of a ``track``, of one to three words each."""

PEOPLE = 20
"""The ids of a ``follow``."""

IDS = 100_000
"""Those who post, all as often."""

COMMUNITY = 1_000
"""The clients of a community, where there are communities."""

POSTS = (Kinds.parse("post,delete"),)

Facts: TypeAlias = dict[str, Any]
"""What an :class:`Event` is made of."""

WEIGHTS = tuple(accumulate(1 / rank for rank in range(1, WORDS + 1)))


@dataclass(frozen=True)
class World:
    """What is posted and asked for; nothing but ``seed`` decides what is drawn.

    ``common`` says whether clients track the most common words too. With more than one of ``communities``, each has
    words, people and a part of each square of the map of its own: more clients then, and as many matches an event.
    """

    seed: int
    common: bool = False
    communities: int = 1

    def phrases(self, clients: int) -> list[list[str]]:
        """What each of so many clients tracks."""
        random = Random(f"phrases {self.seed}")
        return [[self._phrase(random, self._home(client)) for _ in range(PHRASES)] for client in range(clients)]

    def tracks(self, clients: int) -> list[Filter]:
        """The same as filters."""
        return [Track.parse(",".join(phrases)) for phrases in self.phrases(clients)]

    def boxes(self, clients: int) -> list[Filter]:
        """Boxes of 0.1 to 10 degrees a side, anywhere."""
        random = Random(f"boxes {self.seed}")
        shrunk = self.communities**0.5
        return [Location([_box(random, shrunk)]) for _ in range(clients)]

    def follows(self, clients: int) -> list[Filter]:
        """Ids of anybody in the community."""
        random = Random(f"follows {self.seed}")
        return [
            Follow([str(self._home(client) * IDS + random.randrange(IDS)) for _ in range(PEOPLE)])
            for client in range(clients)
        ]

    def rules(self, clients: int) -> list[Filter]:
        """One rule each, of the shapes that people write."""
        random = Random(f"rules {self.seed}")
        return [self._rule(random, self._home(client)) for client in range(clients)]

    def mix(self, clients: int) -> list[Filter]:
        """Clients of all kinds: 30 % follow, 40 % track, 10 % look at boxes, 20 % have a rule."""
        tenth = clients // 10
        made = [*self.follows(3 * tenth), *self.tracks(4 * tenth), *self.boxes(tenth), *self.rules(2 * tenth)]
        Random(f"mix {self.seed}").shuffle(made)
        return made

    def events(self, count: int, *, located: float = 0.1, silent: bool = False) -> list[Facts]:
        """Posts with their authors, a share of them with a point, or ``silent``, with nothing else."""
        random = Random(f"events {self.seed}")
        found = []
        for _ in range(count):
            home = random.randrange(self.communities)
            author = str(home * IDS + random.randrange(IDS))
            point = (random.uniform(-180, 180), random.uniform(-90, 90)) if random.random() < located else None
            text = "" if silent else self._text(random, home)
            facts = {"lang": random.choice(("en", "de", None)), "followers": int(random.paretovariate(0.7))}
            found.append({"author": author, "people": frozenset((author,)), "text": text, "point": point, **facts})
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
        """The words of a community, the commonest first."""
        return _words() if self.communities == 1 else _words_of(home)


def subscribed(filters: list[Filter]) -> list[Subscription]:
    """Each as a client of its own, which gets the kinds of events that a stream gives by default."""
    return [Subscription([asked], POSTS) for asked in filters]


def made(facts: Facts) -> Event:
    """A post that nobody has looked at yet."""
    return Event("post", **facts)


@cache
def _words() -> tuple[str, ...]:
    """Short words are the common ones, as in every language."""
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
