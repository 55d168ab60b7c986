"""Strategies for events and subscriptions: few words, users and places, so that matches are common."""

from typing import Any

from hypothesis import strategies as st

from filters.base import Filter
from filters.entities import extract_entities
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import Box
from filters.location import Location
from filters.narrowing import KINDS, Kinds, Language, Partition
from filters.rule import Rules
from filters.sample import Firehose, Sample
from filters.subscription import Subscription
from filters.track import Track
from tests.property.rules import rules
from tests.property.statuses import posted

WORDS = ["a", "b", "tea", "TEA", "tea's", "o-k", "#tag", "@bob", "$USD", "a.co", "http://www.a.co/b", "ÉTÉ", "😍", "."]
WORDS += ["東京タワーに", "#東京", "C#", "(c#)", "c#b", "x-o-k!", "1\ufe0f\u20e3", "👍🏽", "İ", "東。京", "東京!"]
TERMS = ["a", "b", "tea", "s", "tea's", "o", "#tag", "tag", "@bob", "bob", "$usd", "a.co", "a.co/b", "co", "été", "😍"]
TERMS += ["東京", "タワー", "京タワー", "#東京", "C#", "o-k", "o-k!", "1\ufe0f\u20e3", "1", "👍", "👍🏽"]
TERMS += ["i", "東京!", ":)", "www.a.co", "tea's cup", "c# :)"]
PEOPLE = [str(n) for n in range(6)]
LANGUAGES = ["en", "en-GB", "de", "und", "no", "nb", "nn-NO", "iw", "he"]

# Whole and half degrees, so that edges meet edges; and the ends of the map.
LONGITUDES: st.SearchStrategy[float] = st.one_of(
    st.integers(-180, 180), st.sampled_from([-180, -179.5, -0.5, 0, 0.5, 9.5, 10, 10.5, 179.5, 180])
)
LATITUDES: st.SearchStrategy[float] = st.one_of(
    st.integers(-90, 90), st.sampled_from([-90, -89.5, -0.5, 0, 0.5, 9.5, 10, 10.5, 89.5, 90])
)


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    """A box of any size, also over the date line. Half of them are small and near zero."""
    if draw(st.booleans()):
        x, y = draw(st.integers(-3, 2)), draw(st.integers(-3, 2))
        return float(x), float(y), float(x + 1), float(y + draw(st.integers(1, 3)))
    west, east = draw(st.lists(LONGITUDES, min_size=2, max_size=2, unique=True))
    south, north = sorted(draw(st.lists(LATITUDES, min_size=2, max_size=2, unique=True)))
    return float(west), float(south), float(east), float(north)


def points() -> st.SearchStrategy[tuple[float, float]]:
    """A point, often where boxes are."""
    near = st.tuples(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.sampled_from([-1.0, 0.0, 0.5, 1.0]))
    return st.one_of(near, st.tuples(LONGITUDES.map(float), LATITUDES.map(float)))


def events() -> st.SearchStrategy[Event]:
    return st.one_of(happenings(), posted().map(lambda one: one.event))


@st.composite
def happenings(draw: st.DrawFn) -> Event:
    """An event of any kind with the members that every kind has."""
    text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=6)))
    where: dict[str, Any] = draw(
        st.sampled_from([{}, {"point": points()}, {"box": boxes()}, {"point": points(), "box": boxes()}])
    )
    author = draw(st.sampled_from([None, *PEOPLE]))
    others = draw(st.frozensets(st.sampled_from(PEOPLE), max_size=3))
    return Event(
        draw(st.sampled_from(KINDS)),
        author=author,
        user_ids=others if author is None else others | {author},
        status_id=draw(st.one_of(st.none(), st.integers(1, 200).map(str))),
        text=text,
        entities=extract_entities(text),
        lang=draw(st.sampled_from([None, *LANGUAGES])),
        is_sampled=draw(st.booleans()),
        is_public=draw(st.booleans()),
        **{name: draw(made) for name, made in where.items()},
    )


def tracks() -> st.SearchStrategy[Filter]:
    phrase = st.lists(st.sampled_from(TERMS), min_size=1, max_size=3).map(" ".join)
    return st.lists(phrase, min_size=1, max_size=4).map(",".join).map(Track.parse)


def follows() -> st.SearchStrategy[Filter]:
    """Ids, and sometimes ``@me`` with a following set."""
    people = st.frozensets(st.sampled_from(PEOPLE), max_size=3)
    return st.one_of(
        people.map(Follow),
        st.tuples(people, people).map(lambda two: Follow(two[0], includes_me=True, following=two[1])),
    )


def rule_sets() -> st.SearchStrategy[Filter]:
    tagged = st.tuples(st.sampled_from(["", "", "morning:", "Evening_2:"]), rules()).map("".join)
    return st.lists(tagged, min_size=1, max_size=3).map("\n".join).map(Rules.parse)


def subscriptions() -> st.SearchStrategy[Subscription]:
    """Any valid combination of filters."""
    locations = st.lists(boxes(), min_size=1, max_size=3).map(Location)
    union = st.lists(st.one_of(tracks(), follows(), locations, rule_sets()), min_size=1, max_size=3)
    whole = st.sampled_from(["0.5", "20", "100"]).map(Sample.parse)
    firehose = st.just(Firehose())
    kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6).map(Kinds)
    languages = st.lists(st.sampled_from(LANGUAGES), min_size=1, max_size=2).map(Language)
    narrows = st.lists(st.one_of(kinds, kinds, languages), max_size=2)
    parts = st.integers(1, 3).map(lambda k: Partition(k, 3))
    return st.one_of(
        st.builds(Subscription, union, narrows),
        st.builds(Subscription, union, narrows),
        st.builds(Subscription, st.tuples(rule_sets()), narrows),
        st.builds(Subscription, st.tuples(whole), narrows),
        st.builds(Subscription, st.tuples(firehose), st.tuples(kinds, parts)),
    )
