"""`kinds` narrows by the kind of event."""

from filters.event import Event
from filters.narrowing import KINDS, Kinds


def test_kinds_match_each_named_kind() -> None:
    kinds = Kinds.parse("post, like")
    assert [kind for kind in KINDS if kinds.matches(Event(kind))] == ["post", "like"]
    assert kinds == Kinds.parse("like,post,like")


def test_all_kinds_may_be_named() -> None:
    assert Kinds.parse(",".join(KINDS)).kinds == set(KINDS)
