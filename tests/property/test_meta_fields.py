"""Rules on the fields of ``meta`` find what a plain search through the decoded JSON finds, by the index too."""

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from filters.event import Event
from filters.registry import installed_registry
from filters.rule import Rules
from filters.subscription import parse_subscription
from filters.subscription_index import SubscriptionIndex
from tests import reference_meta
from tests.property.statuses import META_NAMES, META_VALUES

pytestmark = pytest.mark.timeout(3600)  # for the long form

NAMES = tuple(name for name in META_NAMES if len(name) < 100)
NUMBERS = ("-1", "0", "1", "1.1", "1.10", "7", "7.0", "7.25", "10000000000000000", "0.0000001", "00", "007", "1e3")
TEXTS = ("blog", "BLOG", "tea", "cafÉ", "a b", "a  b", "true", "False", "null", "1..2", "é" * 64, "x" * 128)


class Asked(NamedTuple):
    """A rule, and what it means for the leaves of a ``meta``."""

    text: str
    is_true_of: Callable[[list[reference_meta.Leaf]], bool]


def random_meta(source: random.Random) -> dict[str, Any]:
    """Return the members of an object, often with lists, objects and too many leaves."""

    def value(depth: int) -> Any:
        chance = source.random()
        if depth < 3 and chance < 0.15:
            return [value(depth + 1) for _ in range(source.randrange(12))]
        if depth < 3 and chance < 0.3:
            return {source.choice(META_NAMES): value(depth + 1) for _ in range(source.randrange(4))}
        if chance < 0.5:
            return source.choice((source.randrange(-2, 9), source.randrange(-8, 36) / 4))
        return source.choice(META_VALUES)

    return {source.choice(META_NAMES): value(0) for _ in range(source.randrange(6))}


def random_rule(source: random.Random) -> Asked:
    """Return an operator for a field, with a name of one or two steps; beside a word if it cannot stand alone."""
    name = ".".join(source.sample(NAMES, source.choice((1, 1, 1, 2))))
    quoted = '"' + name.replace('"', '\\"') + '"'
    kind = source.choice(("equal", "equal", "range", "has"))
    if kind == "has":
        return Asked(f'tea has:"meta.{quoted[1:]}', lambda found: reference_meta.has(found, name))
    if kind == "equal":
        value = source.choice((*NUMBERS, *TEXTS))
        return Asked(f'meta.{quoted}:"{value}"', lambda found: reference_meta.equals(found, name, value))
    low, high = sorted(source.choices([text for text in NUMBERS if text not in ("00", "007", "1e3")], k=2), key=float)
    wanted = source.choice((f"{low}..", f"..{high}", f"{low}..{high}"))
    return Asked(f"tea meta.{quoted}:{wanted}", lambda found: reference_meta.within(found, name, wanted))


def test_ten_million_pairs_agree_with_a_plain_search(full: bool) -> None:  # noqa: FBT001 - a fixture
    source = random.Random(20_261_129)
    registry = installed_registry()
    found_some = 0
    for _ in range(1_000 if full else 3):
        asked = [random_rule(source) for _ in range(100)]
        index: SubscriptionIndex[int] = SubscriptionIndex()
        for nth, rule in enumerate(asked):
            index.add(nth, parse_subscription({"rule": rule.text}, registry))
        rules = Rules.parse("\n".join(rule.text for rule in asked))
        for _ in range(100):
            meta = random_meta(source)
            event = Event("post", author="1", user_ids=frozenset("1"), text="tea", meta=json.dumps(meta).encode())
            leaves = reference_meta.leaves(meta)
            expected = [nth for nth, rule in enumerate(asked) if rule.is_true_of(leaves)]
            assert sorted(index.match(event)) == expected, (meta, [asked[nth].text for nth in expected])
            assert [int(named.id[1:]) - 1 for named in rules.matching_rules(event)] == expected
            found_some += len(expected)
    assert found_some > 100
