"""The contract test of filters: every built-in filter passes, and every breach fails."""

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import pytest

from filters.base import Filter, MatchedItem, Role
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import IndexTerms, Key
from filters.narrowing import KINDS
from filters.registry import Registry
from filters.testing import check_filter, example_events

VALUES: dict[str, tuple[list[str], list[str]]] = {
    "track": (
        ["hello", "hello world,touché", "#tag,@alice,$twtr", "example.com/a_b?c=d", "😍"],
        ["", "a,,b", "x" * 61],
    ),
    "follow": (["1", "1,2,3", "@me", "@me,9"], ["", "x", "01"]),
    "locations": (
        ["-74,40,-73,41", "179,-90,-179,90", "-180,-90,180,90", "170,-15,-175,-14"],
        ["", "1,2,3", "0,1,1,0"],
    ),
    "sample": (["100", "50", "0.000001"], ["", "0", "101", "nan"]),
    "firehose": (["true"], ["", "false"]),
    "partition": (["1/1", "2/3", "64/64"], ["", "0/1", "2/1"]),
    "language": (["en", "pt", "und", "en,de"], ["", "*"]),
    "kinds": (["post", "post,delete", ",".join(KINDS)], ["", "hello"]),
    "rule": (
        [
            *("hello", "hello world OR #tag", "news:from:1 -is:reply", "@alice\ncash:$twtr", '"hello world" lang:en'),
            *("😍", 'url:"example.com/a_b"', "touché sample:50", "from:2 kinds:post", "到着"),
        ],
        ["", "hello\n", "(hello", "has:media", "-hello", "hello form:1", "hello fromm:1", "a" * 1025, "hello\n" * 100],
    ),
    "rules": (["saved"], ["", "true", "hello"]),
}


def test_every_built_in_filter_is_tried(registry: Registry) -> None:
    assert set(registry.names()) == set(VALUES), "VALUES has one row for each built-in filter"


@pytest.mark.parametrize("name", VALUES)
def test_the_built_in_filters_keep_the_contract(registry: Registry, name: str) -> None:
    good, bad = VALUES[name]
    check_filter(registry.get(name), good, bad)


@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"rules"}))
def test_the_examples_try_every_filter(registry: Registry, name: str) -> None:
    parsed = [registry.get(name).parse(value) for value in VALUES[name][0]]
    outcomes = {one.matches(event) for one in parsed for event in example_events()}
    assert outcomes == {True, False}


class Good(Filter):
    """Posts with the value in their text. The breaches below are copies of this filter."""

    name: ClassVar[str] = "good"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Keeps the contract."

    def __init__(self, value: str) -> None:
        self.value = value

    @classmethod
    def parse(cls, value: str) -> Self:
        if not value.isalpha():
            raise ParameterError("letters", param=cls.name)
        return cls(value)

    @property
    def canonical_form(self) -> Hashable:
        return self.value

    def matches(self, event: Event) -> bool:
        return self.value in event.text


def _key_of_its_own(_: Filter) -> Hashable:
    return object()


def _takes_all(cls: type[Good], value: str) -> Good:
    return cls(value)


def _raises(cls: type[Good], value: str) -> Good:
    if value.isalpha() and len(value) < 10:
        return cls(value)
    raise KeyError(value)


def _blames_another(cls: type[Good], value: str) -> Good:
    if value.isalpha():
        return cls(value)
    raise ParameterError("no", param="other")


def _odd_code(cls: type[Good], value: str) -> Good:
    if value.isalpha():
        return cls(value)
    raise ParameterError("no", param="good", code="teapot")


def _forgetful(self: Any, event: Event) -> bool:
    self.asked = not getattr(self, "asked", False)
    return bool(self.asked)


def _wrong_keys(_: Filter) -> frozenset[Key]:
    return frozenset({"nowhere"})


def _hello(_: Filter) -> frozenset[Key]:
    return frozenset({"hello"})


def _everywhere(_: Filter) -> IndexTerms:
    return IndexTerms([frozenset({"hello"})], boxes=[(-180.0, -90.0, 180.0, 90.0)])


def _nowhere(_: Filter) -> IndexTerms:
    return IndexTerms((), boxes=[(0.0, 0.0, 0.1, 0.1)])


def _never(_: Filter, __: Event) -> bool:
    return False


def _changing(self: Any) -> frozenset[Key]:
    self.asked = getattr(self, "asked", 0) + 1
    return frozenset({"hello", str(self.asked)})


def _changing_leads(self: Any) -> IndexTerms:
    return IndexTerms((), [frozenset({key}) for key in _changing(self)])


def _fails(_: Filter, __: Event) -> list[MatchedItem]:
    raise ZeroDivisionError


def _says(said: Any) -> Any:
    return lambda _, event: said if "hello" in event.text else []


BREAKS: list[tuple[str, dict[str, Any]]] = [
    ("not a valid parameter name", {"name": "Not a name"}),
    ("name is reserved", {"name": "since"}),
    ("name is reserved", {"name": "from"}),
    ("role is 'other'", {"role": "other"}),
    ("help is empty", {"help": " "}),
    ("scopes are not strings", {"scopes": frozenset({1})}),
    ("requires itself", {"requires": frozenset({"good"})}),
    ("must refuse", {"parse": classmethod(_takes_all)}),
    ("KeyError", {"parse": classmethod(_raises)}),
    ("names the parameter 'other'", {"parse": classmethod(_blames_another)}),
    ("unknown code 'teapot'", {"parse": classmethod(_odd_code)}),
    ("unequal filters", {"canonical_form": property(_key_of_its_own)}),
    ("unequal hashes", {"__hash__": object.__hash__}),
    ("neither True nor False", {"matches": lambda _, event: event.text.count("hello")}),
    ("gives different answers", {"matches": _forgetful}),
    ("none of its keys", {"candidate_keys": _wrong_keys}),
    ("lies in one of its boxes", {"index_terms": _everywhere}),
    ("none of its keys and index terms", {"index_terms": _nowhere}),
    ("none of its keys and index terms", {"index_terms": lambda _: IndexTerms([frozenset({"hello", "world"})])}),
    ("one of its exact clauses", {"index_terms": lambda _: IndexTerms([frozenset({"hello"})]), "matches": _never}),
    ("keys must be a set of strings", {"candidate_keys": lambda _: ["hello"]}),
    ("keys must be a set of strings", {"candidate_keys": lambda _: frozenset({"hello", 7})}),
    ("gives different index terms", {"candidate_keys": _changing}),
    ("gives different index terms", {"index_terms": _changing_leads}),
    ("index terms that the index cannot hold: index_terms\\(\\) must return", {"index_terms": lambda _: 7}),
    ("cannot hold: a box must be", {"index_terms": lambda _: IndexTerms((), boxes=[(0, 0, float("nan"), 1)])}),
    ("raised ZeroDivisionError", {"explain": _fails}),
    ("raised ZeroDivisionError", {"matched_items": _fails}),
    ("is None, not a list", {"explain": _says(None)}),
    ("is None, not a list", {"matched_items": _says(None)}),
    ("an item that is not a dict", {"explain": _says(["hello"])}),
    ("is not JSON", {"explain": _says([{"filter": "good", "why": object()}])}),
    ("is not JSON", {"matched_items": _says([{"share": float("inf")}])}),
    ("without the member filter", {"explain": _says([{"why": "hello"}])}),
    ("its reasons disagree", {"explain": _says([])}),
]


def test_a_correct_filter_passes() -> None:
    check_filter(Good, ["hello"], ["", "5"])


@pytest.mark.parametrize(("complaint", "members"), BREAKS)
def test_each_breach_of_the_contract_fails(complaint: str, members: dict[str, Any]) -> None:
    broken: type[Filter] = type("Broken", (Good,), members)
    with pytest.raises((AssertionError, KeyError), match=complaint if complaint != "KeyError" else None):
        check_filter(broken, ["hello"], ["", "5"])


def test_given_events_are_tried() -> None:
    with pytest.raises(AssertionError, match="none of its keys"):
        check_filter(
            type("Broken", (Good,), {"candidate_keys": _wrong_keys}), ["odd"], events=[Event("post", text="oddly")]
        )
    check_filter(type("Broken", (Good,), {"candidate_keys": _wrong_keys}), ["odd"])
