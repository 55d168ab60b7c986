"""A subscription matches if one of its bases matches and all narrowing filters match."""

from typing import Any, ClassVar

import pytest

from filters.base import Filter, FilterFailure
from filters.error import ParameterError
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import user_key
from filters.location import Location
from filters.narrowing import KINDS, Kinds, Language
from filters.registry import Registry
from filters.rule import Rules
from filters.sample import Firehose, Sample
from filters.subscription import ALWAYS_INDEXED, Subscription, parse_subscription
from filters.track import Track
from tests.filters.plugin import Plugin, install
from tests.filters.rules.test_rule import Shouts
from tests.filters.texts import post

TRACK = Track.parse("tea,milk")
BOX = Location.parse("-74,40,-73,41")
POSTS = Kinds.parse("post,delete")


class Scoped(Plugin):
    name = "scoped"
    scopes: ClassVar[Any] = ("admin",)

    def matches(self, event: Event) -> bool:
        return True


def test_equal_subscriptions_are_equal_in_any_order() -> None:
    one = Subscription([TRACK, BOX], [POSTS, Language.parse("en,de")])
    other = Subscription([BOX, Track.parse("Milk, tea")], [Language.parse("DE,en"), Kinds.parse("delete,post")])
    assert one == other
    assert hash(one) == hash(other)
    assert one.canonical_form == other.canonical_form


def test_a_different_part_is_a_different_subscription() -> None:
    keys = {
        Subscription([TRACK]).canonical_form,
        Subscription([TRACK], [POSTS]).canonical_form,
        Subscription([TRACK, BOX], [POSTS]).canonical_form,
        Subscription([BOX], [POSTS]).canonical_form,
        Subscription([BOX], [Kinds.parse("post")]).canonical_form,
    }
    assert len(keys) == 5


def test_keys_are_those_of_all_bases() -> None:
    assert Subscription([TRACK, Follow.parse("7")]).candidate_keys() == frozenset({"tea", "milk", user_key("7")})
    assert Subscription([TRACK, Sample.parse("1")]).candidate_keys() is None


def test_scopes_kinds_and_independence_of_the_viewer() -> None:
    firehose = Subscription([Firehose()], [POSTS])
    assert (firehose.required_scopes, firehose.viewer_independent, firehose.uses_me) == (
        frozenset({"firehose"}),
        True,
        False,
    )
    assert firehose.kinds == {"post", "delete"}
    mine = Subscription([TRACK, Follow.parse("@me")])
    assert (mine.required_scopes, mine.viewer_independent, mine.uses_me) == (frozenset(), False, True)
    assert mine.kinds == set(KINDS)
    assert Subscription([Sample.parse("1")]).viewer_independent


@pytest.mark.parametrize("parts", [([Scoped()], []), ([TRACK], [Scoped()]), ([Scoped(), Firehose()], [])])
def test_the_scopes_of_a_plug_in_may_be_any_collection(parts: tuple[list[Filter], list[Filter]]) -> None:
    assert "admin" in Subscription(*parts).required_scopes


def test_only_the_failed_part_is_disabled(registry: Registry) -> None:
    rules = Rules.parse_with("tea\nmilk", registry)
    asked = Subscription([rules, BOX], [POSTS])
    events = [post("tea"), post("milk"), post("tea", point=(-73.5, 40.5))]
    for failed, matches in (
        (FilterFailure(rules, RuntimeError(), "r1"), [False, True, True]),
        (FilterFailure(rules, RuntimeError()), [False, False, True]),
        (FilterFailure(POSTS, RuntimeError()), [False, False, False]),
    ):
        assert [asked.without_failed(failed).matches(event) for event in events] == matches


def test_a_failure_names_the_rule(registry: Registry) -> None:
    install(registry, Shouts)
    rules = Rules.parse_with("tea\nmilk shouts:boom", registry)
    asked, explained = Subscription([BOX, rules]), Subscription([BOX, rules], explain=True)
    for ask in (asked.matches, asked.matched_items, explained.matched_items):
        with pytest.raises(FilterFailure) as failure:
            ask(post("milk"))
        assert (failure.value.filter, failure.value.rule_id) == (rules, "r2")


def test_bases_without_keys_are_listed_unless_alone(registry: Registry) -> None:
    install(registry, Shouts)
    assert Subscription([TRACK, Rules.parse_with("tea\nshouts:yes", registry)]).unindexed_bases == ("rule",)
    assert Subscription([TRACK, BOX]).unindexed_bases == Subscription([Firehose()]).unindexed_bases == ()


@pytest.mark.parametrize("kind", sorted(ALWAYS_INDEXED, key=repr))
def test_a_filter_that_always_has_index_terms_is_not_asked_for_them_when_it_is_parsed(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, kind: type[Filter]
) -> None:
    """The index asks for them when the stream joins, and to compute them may take milliseconds."""
    values = {"track": "tea,cup of,don't", "follow": "1,@me", "locations": "-74,40,-73,41"}
    monkeypatch.setattr(kind, "index_terms", lambda _: pytest.fail("asked"))
    assert parse_subscription({kind.name: values[kind.name]}, registry).unindexed_bases == ()


@pytest.mark.parametrize("kind", sorted(ALWAYS_INDEXED, key=repr))
@pytest.mark.parametrize("value", ["", "tea", "don't", "\ufe0f", "@me", "1", "-180,-90,180,90"])
def test_filters_that_always_have_index_terms_have_them(kind: type[Filter], value: str) -> None:
    try:
        parsed = kind.parse(value)
    except ParameterError:
        return
    assert parsed.index_terms() is not None


def test_rules_with_very_many_keys_are_listed_as_unindexed(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules.parse_with("tea OR milk", registry)
    few = Subscription([rules])
    assert few.unindexed_bases == ()
    monkeypatch.setattr("filters.rule.MAX_CLAUSES", 1)  # so that keys are counted: fewer clauses have fewer keys
    monkeypatch.setattr("filters.rule.MAX_KEYS", 3)  # each word has two, one of them for what is quoted
    assert Subscription([rules]).unindexed_bases == ("rule",)
    assert few.unindexed_bases == (), "it was looked at once"


def test_changed_subscriptions_keep_their_options(registry: Registry) -> None:
    rules = Rules.parse_with("tea", registry)
    asked = Subscription([rules, Follow.parse("@me")], explain=True, viewer_independent=True)
    changed = (
        asked.with_following({"8"}),
        asked.replace_base(rules),
        asked.without_failed(FilterFailure(rules, RuntimeError())),
    )
    assert [(one.explain, one.viewer_independent) for one in changed] == [(True, True)] * 3
    assert asked != Subscription(asked.bases, viewer_independent=True)


def test_two_kinds_filters_narrow_to_their_intersection() -> None:
    assert Subscription([TRACK], [POSTS, Kinds.parse("post,like")]).kinds == {"post"}
