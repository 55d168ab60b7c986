"""The posts of ``serve --demo``. Each example of the README and the guide finds one within half a minute."""

import random
from collections.abc import Iterator
from itertools import count, cycle, islice
from typing import Any

LOGINS = ("bob", "cyd", "eli", "fay")
"""Users who keep posting. Ada follows the first two, so her home timeline gets new posts."""

_OPENINGS = ("Good morning", "Small win today", "Note to self", "Just saw", "Anyone else", "Finally", "Overheard")

_SUBJECTS = (
    "coffee on the terrace", "a train that left on time", "the redis log, read from end to end",
    "green tea in the garden", "sourdough that did rise", "rain over the harbour", "espresso at the station",
    "a bug that was a feature after all", "東京タワー in the fog",
)  # fmt: skip

_TAGS = ("#coffee", "#trains", "#redis", "#baking", "#matcha", "#weather", "#python", "#tea")

_PLACES = (
    ("Monterey", -121.89, 36.60), ("Lisbon", -9.14, 38.72), ("New York", -73.85, 40.76), ("Kyoto", 135.77, 35.01),
    ("Nairobi", 36.82, -1.29),
)  # fmt: skip
"""Name, longitude and latitude."""


def demo_posts(chance: random.Random, login: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON bodies of posts without end. Some have a location, and some mention ``login``.

    The parts of the sentences come in turn, so that each word and each place occurs in every ten posts. Their numbers
    have no common divisor, so the sentences differ.
    """
    openings, subjects, tags, places = (_from_anywhere(chance, each) for each in (_OPENINGS, _SUBJECTS, _TAGS, _PLACES))
    for n in count():
        mention = f"@{login} " if n % 5 == 0 else ""
        body = {"message": f"{mention}{next(openings)}: {next(subjects)} {next(tags)}", "lang": "en"}
        yield body | (_located(chance, *next(places)) if n % 2 == 0 else {})


def _from_anywhere(chance: random.Random, parts: tuple[Any, ...]) -> Iterator[Any]:
    return islice(cycle(parts), chance.randrange(len(parts)), None)


def _located(chance: random.Random, name: str, lon: float, lat: float) -> dict[str, Any]:
    """Return the members of a post from a point near the place."""
    point = {"lon": round(lon + chance.uniform(-0.1, 0.1), 4), "lat": round(lat, 4)}
    return {"location": point, "place": {"name": name}}
