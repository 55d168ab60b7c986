"""The fields of ``meta``: their names, their limits, and when they are read."""

import json

import pytest

from filters import event as event_module
from filters.event import Event
from filters.meta_fields import MetaField, read_meta_fields
from filters.registry import Registry
from filters.subscription import parse_subscription
from filters.subscription_index import SubscriptionIndex
from tests.filters.texts import post


def fields(meta: object) -> list[tuple[str, object]]:
    return [(field.name, field.value) for field in read_meta_fields(json.dumps(meta).encode())]


def test_the_scalar_leaves_are_fields_in_order() -> None:
    meta: dict[str, object] = {"B": {"x": 1, "y": ["É", [2.5, {"z": True}]]}, "a": None, "b.x": "", "e": {}, "f": []}
    assert fields(meta) == [("b.x", 1), ("b.y", "é"), ("b.y", 2.5), ("b.y.z", "true"), ("b.x", "")]


def test_a_member_without_a_name_is_a_part_of_the_name() -> None:
    assert fields({"": {"site": "a"}, "b": {"": 1}}) == [(".site", "a"), ("b.", 1)]


def test_there_are_32_fields_and_a_longer_one_is_passed_over() -> None:
    assert len(fields({"a": list(range(40))})) == 32
    assert fields({"a": ["é" * 65, "é" * 64, "x" * 129, 10**128], "b" * 129: 1, "c": 1}) == [("a", "é" * 64), ("c", 1)]
    assert fields({"long": ["x" * 129] * 40, "c": 1}) == [("c", 1)]


def test_different_fields_have_different_keys() -> None:
    metas: tuple[dict[str, object], ...] = (
        {"a": "bc"},
        {"ab": "c"},
        {"a:b": "c"},
        {"a": "b:c"},
        {"a": 1},
        {"a": "1"},
        {"a": 1.5},
        {"a": "1.5"},
        {"a1": ""},
    )
    keys = [field.key for meta in metas for field in read_meta_fields(json.dumps(meta).encode())]
    assert len(set(keys)) == len(metas)
    assert not {key for key in keys if key in post("\x1dt1:abc \x1dn1:a1").index_keys}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was read of ``meta`` during the test."""
    read: list[bytes] = []

    def noted(meta: bytes) -> list[MetaField]:
        read.append(meta)
        return read_meta_fields(meta)

    monkeypatch.setattr(event_module, "read_meta_fields", noted)
    return read


def _match(index: SubscriptionIndex[str], meta: bytes) -> list[str]:
    return sorted(index.match(Event("post", author="1", author_login="ada", text="tea", meta=meta)))


def test_meta_is_read_only_if_a_rule_asks_for_a_field(registry: Registry, read: list[bytes]) -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    for name, parameters in (("word", {"track": "tea"}), ("rule", {"rule": "from:ada"})):
        index.add(name, parse_subscription(parameters, registry))
    assert _match(index, b'{"room":7}') == ["rule", "word"]
    assert read == []
    index.add("flags", parse_subscription({"rule": "tea -is:repost -has:links (lang:en OR lang:und)"}, registry))
    index.add("many", parse_subscription({"rule": "\n".join(f"tea -milk{nth}" for nth in range(5))}, registry))
    assert _match(index, b'{"room":7}') == ["flags", "many", "rule", "word"]
    assert read == []
    rooms = "meta.room:7\ntea has:meta.room", "\n".join(f"meta.room:{nth}" for nth in range(4, 9))
    for rule in rooms:
        index.add("room", parse_subscription({"rule": rule}, registry))
        assert _match(index, b'{"room":7}') == ["flags", "many", "room", "rule", "word"]
        assert _match(index, b"null") == ["flags", "many", "rule", "word"]
        assert read.pop() == b'{"room":7}'
        index.remove("room")
        assert _match(index, b'{"room":7}') == ["flags", "many", "rule", "word"]
        assert read == []
