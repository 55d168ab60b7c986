"""Texts to post: real tweets if the data is there, and made texts with cases that are hard for tokenizers."""

import json
import random
import re
from typing import Any, NamedTuple

from tests.public_data import FOLDER

AIRLINES = ("united", "JetBlue", "AmericanAir", "USAirways", "SouthwestAir", "VirginAmerica")

LANGUAGES = ("en", "en-GB", "de", "ja", "zh-Hant")

VOCABULARY = (
    "flight late cancelled customer service thanks hours plane help still can't I'm don\u2019t hold bag gate crew "
    "delayed FLIGHT Flight, service. (bag) rock'n'roll e-mail wi-fi under_score 50% "
    "naïve café cafe\u0301 Straße İstanbul "
    "été 東京 東京に行く ありがとう 北京 서울 हिन्दी שלום مرحبا 😡 👍🏽 👨\u200d👩\u200d👧 … — "
    "¿qué? ¡hola! «non» „ja“ ... !!! + & a+b C# 3.14 "
    "#fail #travel #旅行 #Fail! #été ##double #123 #a_b $TWTR $AAPL. $5 @nobody_here .@united RT @JetBlue: @ # "
    "example.com http://example.com/foobarbaz "
    "https://www.example.com/a?b=c&d=1 sub.example.com/x/y/ HTTP://Example.COM"
)
"""Words, punctuation, scripts without blanks, entities, and texts that resemble entities."""

HOMES = ((-122.4, 37.7), (-73.9, 40.7), (13.4, 52.5), (179.2, -17.5), (-172.1, -13.8), (139.7, 35.7), (0.0, 0.0))


class Draft(NamedTuple):
    """The author and the body of a status to post."""

    author: str
    body: dict[str, Any]


def drafts(count: int | None, *, seed: int = 7) -> list[Draft]:
    """Return ``count`` real statuses (None: all) and some generated ones. Without the data all are generated."""
    chance = random.Random(seed)
    real = _tweets()
    if not real:
        return [made_draft(chance) for _ in range(count or 3000)]
    step = max(1, len(real) // count) if count else 1
    chosen = [_of_tweet(tweet, n) for n, tweet in enumerate(real[::step])]
    return chosen + [made_draft(chance) for _ in range(max(80, len(chosen) // 50))]


def _tweets() -> list[dict[str, Any]]:
    path = FOLDER / "tweets.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _of_tweet(tweet: dict[str, Any], number: int) -> Draft:
    body: dict[str, Any] = {"message": tweet["message"]}
    if tweet["location"] is not None:
        body["location"] = dict(zip(("lon", "lat"), tweet["location"], strict=True))
    if number % 5 == 0:
        body["lang"] = LANGUAGES[number // 5 % len(LANGUAGES)]
    return Draft(_login(tweet["author"]), body)


def _login(author: str) -> str:
    """Return a valid login. Two authors have a blank in their name."""
    return re.sub(r"\W", "_", author, flags=re.ASCII)[:20]


def made_draft(chance: random.Random) -> Draft:
    """Return a status of random words."""
    vocabulary = VOCABULARY.split()
    words = [chance.choice(vocabulary) for _ in range(chance.randint(1, 12))]
    if chance.random() < 0.3:
        words.insert(0, "@" + chance.choice(AIRLINES))
    body: dict[str, Any] = {"message": chance.choice((" ", " ", "\n", "  ")).join(words)}
    if chance.random() < 0.2:
        lon, lat = chance.choice(HOMES)
        body["location"] = {"lon": lon, "lat": lat}
    if chance.random() < 0.4:
        body["lang"] = chance.choice(LANGUAGES)
    return Draft(f"writer{chance.randrange(40)}", body)
