"""Each operator matches its documented cases, and the index finds the rule."""

from collections.abc import Mapping
from itertools import permutations, product

import pytest

from filters.entities import Entities, Url
from filters.event import Event
from filters.registry import Registry
from filters.rules.operators import operator_specs
from filters.rules.rule import Rule
from filters.rules.words import ProximityCondition
from filters.word_sequence import WordSequence
from tests.filters.rules.cases import CASES, Case
from tests.filters.texts import post


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule} ~ {case.what}")
def test_an_operator_matches_its_documented_cases(registry: Registry, case: Case) -> None:
    rule = Rule.parse(case.rule, registry)
    assert rule.matches(case.event) is case.matches
    assert rule.explain(case.event).matched is case.matches
    keys, terms = rule.keys(), rule.index_terms
    assert keys is not None
    assert terms is not None
    assert not case.matches or keys & case.event.index_keys
    found = any(clause <= case.event.index_keys for clause in (*terms.exact, *terms.candidates))
    assert found or not case.matches
    assert terms.candidates or found is case.matches


@pytest.mark.parametrize("case", [case for case in CASES if " " not in case.rule], ids=lambda case: case.rule)
def test_a_minus_negates_an_operator(registry: Registry, case: Case) -> None:
    event = case.event
    said = Event(
        **{
            name: getattr(event, name)
            for name in ("kind", "author", "author_login", "user_ids", "status_id", "lang", "point")
        },
        **{
            name: getattr(event, name)
            for name in ("box", "forms", "media", "conversation", "place_name", "bio", "meta")
        },
        **{name: getattr(event, name) for name in ("place_country", "reply_to", "reply_to_login", "reposted_author")},
        reposted_author_login=event.reposted_author_login,
        text=f"{event.text} zebra",
        entities=event.entities,
        quoted_text=event.analyzed_quote.text,
        quoted_entities=event.analyzed_quote.entities,
    )
    assert Rule.parse(f"zebra {case.rule}", registry).matches(said) is case.matches
    assert Rule.parse(f"zebra -{case.rule}", registry).matches(said) is not case.matches


def test_the_table_has_an_example_of_each_operator(registry: Registry) -> None:
    for row in operator_specs():
        rule = Rule.parse(row.example if row.standalone else f"tea {row.example}", registry)
        explained = rule.explain(post("nothing"))
        assert (explained.matched, explained.why != "") == (False, True), row.example


def test_every_operator_is_tried(registry: Registry) -> None:
    tried = " ".join(case.rule for case in CASES)
    names = [name for row in operator_specs() if row.name for name in (row.name, *row.aliases)]
    assert [name for name in names if f"{name}:".replace("NAME", "room") not in tried] == []


def test_names_and_aliases_are_one_operator(registry: Registry) -> None:
    shown = Rule.parse(
        'REPOSTS_OF:Ada OR retweets_of_user:ADA tweets_count:1 posts_count:2.. is:Repost "TEA"', registry
    )
    assert shown.text == 'retweets_of:ada OR retweets_of:ada tweets_count:1 tweets_count:2 is:retweet "tea"'


def test_samples_are_nested(registry: Registry) -> None:
    some, more = (Rule.parse(f"tea sample:{percent}", registry) for percent in ("10", "25.5"))
    posts = [post("tea", status_id=str(nth), is_sampled=False, is_public=False) for nth in range(2_000)]
    small, large = ({event.status_id for event in posts if rule.matches(event)} for rule in (some, more))
    assert small < large
    assert (150 < len(small) < 250, 440 < len(large) < 580) == (True, True)


def test_proximity_agrees_with_its_definition(registry: Registry) -> None:
    rule = Rule.parse('"a b a"~2', registry)
    for words in product("abx", repeat=5):
        choices = permutations(range(5), 3)
        proximity = any(
            [words[at] for at in chosen] == ["a", "b", "a"]
            and max(at - nth for nth, at in enumerate(chosen)) - min(at - nth for nth, at in enumerate(chosen)) <= 2
            for chosen in choices
        )
        assert rule.matches(post(" ".join(words))) is proximity, words


def test_a_shortened_display_of_a_link_has_no_half_words(registry: Registry) -> None:
    url = Url("https://t.co/x", "example.com/nonsen…", "https://example.com/nonsense", (0, 14))
    linked = Event("post", text="https://t.co/x", entities=Entities(urls=(url,)))
    assert [
        Rule.parse(f"url:{part}", registry).matches(linked) for part in ("nonsense", '"com/nonsense"', "nonsen", "co")
    ] == [True, True, False, False]


def test_proximity_skips_words_that_are_never_near(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    taken = ProximityCondition._assign_positions

    def counted(proximity: ProximityCondition, places: Mapping[str, int], start: int) -> int:
        tried.append(start)
        return taken(proximity, places, start)

    monkeypatch.setattr(ProximityCondition, "_assign_positions", counted)
    proximity = ProximityCondition(WordSequence(["a", "b"]), 6)
    assert not proximity.matches(post("a " * 60 + "c " * 9 + "b " * 60))
    assert tried == []
    assert proximity.matches(post("a " * 60 + "c " * 6 + "b " * 60))
    assert len(tried) == 1


def test_a_phrase_runs_into_a_link_as_it_expands(registry: Registry) -> None:
    """Its short form is no text for filters, also where the words of the short form follow."""
    link = Url("https://t.co/x1", "shown.org/tea", "https://example.com/coffee", (4, 19))
    event = post("see https://t.co/x1, t co x1", entities=Entities(urls=(link,)))
    assert Rule.parse('"see example com coffee t"', registry).matches(event)
    assert not Rule.parse('"see t co"', registry).matches(event)
    assert Rule.parse('"see example"', registry).explain(event).indices == ((0, 19),)
