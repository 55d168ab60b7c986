"""The oracle of the crowd benchmark: it expects for each client exactly the posts that the client's filter matches."""

import random
from typing import Any
from urllib.parse import parse_qsl

from bench import mix
from filters.base import Filter
from filters.follow import Follow
from filters.location import Location
from filters.registry import installed_registry
from filters.rule import Rules
from filters.sample import Firehose, Sample
from filters.track import Track
from tests.filters.texts import post

AUTHORS = [str(7000 + number) for number in range(mix.AUTHORS)]


def asked(number: int) -> Filter:
    ((name, value),) = parse_qsl(mix.asker(number).query(number, AUTHORS))
    plain = (Track, Follow, Location, Sample, Firehose)
    makers: dict[str, type[Any]] = {one.name: one for one in plain}
    made: Filter = Rules.parse_with(value, installed_registry()) if name == "rule" else makers[name].parse(value)
    return made


def test_the_expected_posts_are_those_that_match() -> None:
    """Of 800 posts, each of 600 clients of all kinds is due exactly those that its filter matches."""
    chance, oracle, posted = random.Random(1), mix.Oracle(), []
    for number in range(800):
        draft = mix.draft(number, loud=number % 20 == 0, chance=chance)
        status_id = str(2**40 + number * 4096)
        oracle.posted(draft, status_id)
        place = (draft.place["lon"], draft.place["lat"])
        author = AUTHORS[draft.author]
        event = post(draft.message, author=author, user_ids=frozenset({author}), status_id=status_id, point=place)
        posted.append((draft.number, event))
    kinds = set()
    for number in range(600):
        wanted = asked(number)
        matched = [which for which, event in posted if wanted.matches(event)]
        assert oracle.due(mix.asker(number)) == (len(matched), sum(which * which for which in matched)), wanted
        kinds.add((mix.asker(number).kind, bool(matched)))
    assert {kind for kind, some in kinds if some} == {"firehose", "sample", "track", "follow", "rule", "locations"}


def test_missing_wrong_and_additional_posts_are_found() -> None:
    """The oracle notices a missing post, a wrong post and an additional post."""
    oracle, everything = mix.Oracle(), mix.Asker("firehose", 0)
    for number in (1, 2, 3):
        oracle.posted(mix.draft(number, loud=False, chance=random.Random(number)), str(number))
    for received, told in (((3, 14), (0, 0)), ((2, 13), (1, 1)), ((3, 21), (0, 1)), ((4, 15), (0, 1))):
        assert mix.shortfall([everything], [received], oracle) == told
