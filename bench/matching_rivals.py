"""Other methods to find the clients of an event: filters in turn, plain dictionaries, an Aho-Corasick automaton.

Each method is a function from the facts of an event to the clients that match, each client once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from math import floor

import ahocorasick

from bench.matching_world import Facts, World, made, subscribed
from filters.base import Filter
from filters.subscription_index import SubscriptionIndex

Matcher = Callable[[Facts], Collection[int]]
Phrases = list[list[str]]


def by_index(filters: list[Filter]) -> Matcher:
    """Match with this project's index."""
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for client, subscription in enumerate(subscribed(filters)):
        index.add(client, subscription)
    return lambda facts: index.match(made(facts))


def one_by_one(filters: list[Filter]) -> Matcher:
    """Match by testing every filter on every event."""
    subscriptions = list(enumerate(subscribed(filters)))

    def match(facts: Facts) -> set[int]:
        event = made(facts)
        return {client for client, subscription in subscriptions if subscription.matches(event)}

    return match


class _Phrases:
    """Clients by the words that they track: single words, and phrases under their rarest word."""

    def __init__(self, world: World, phrases: Phrases) -> None:
        ranks = {word: rank for home in range(world.communities) for rank, word in enumerate(world.words(home))}
        self.single: dict[str, set[int]] = defaultdict(set)
        self.several: dict[str, list[tuple[frozenset[str], int]]] = defaultdict(list)
        for client, tracked in enumerate(phrases):
            for words in map(frozenset, map(str.split, tracked)):
                if len(words) == 1:
                    self.single[min(words)].add(client)
                else:
                    self.several[max(words, key=ranks.__getitem__)].append((words, client))

    def find(self, words: set[str]) -> set[int]:
        """Return the clients that match a set of words."""
        found: set[int] = set()
        for word in words:
            if word in self.single:
                found |= self.single[word]
            if word in self.several:
                found.update(client for needed, client in self.several[word] if needed <= words)
        return found


def inverted_dictionary(world: World, phrases: Phrases) -> Matcher:
    """Match with a dictionary from each word to its clients.

    Phrases stand under their rarest word; texts split at blanks.
    """
    clients = _Phrases(world, phrases)
    return lambda facts: clients.find(set(facts["text"].lower().split()))


def automaton(world: World, phrases: Phrases) -> Matcher:
    """Find the words of the text with pyahocorasick, then match like the dictionary."""
    clients = _Phrases(world, phrases)
    words = ahocorasick.Automaton()
    for tracked in phrases:
        for word in " ".join(tracked).split():
            words.add_word(f" {word} ", word)
    words.make_automaton()
    return lambda facts: clients.find({word for _, word in words.iter(f" {facts['text'].lower()} ")})


def grid(filters: list[Filter]) -> Matcher:
    """Match with a dictionary from each square of one degree to the boxes that touch it."""
    squares: dict[tuple[int, int], list[tuple[float, float, float, float, int]]] = defaultdict(list)
    for client, asked in enumerate(filters):
        for west, south, east, north in asked.boxes:  # type: ignore[attr-defined]  # all are Locations
            for x in range(floor(west), floor(east) + 1):
                for y in range(floor(south), floor(north) + 1):
                    squares[x, y].append((west, south, east, north, client))

    def match(facts: Facts) -> set[int]:
        lon, lat = facts["point"]
        near = squares.get((floor(lon), floor(lat)), ())
        return {client for west, south, east, north, client in near if west <= lon <= east and south <= lat <= north}

    return match
