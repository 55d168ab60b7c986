"""``kinds`` narrows by the kind of event."""

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.kind import KINDS, Kinds


def test_kinds_take_what_they_name() -> None:
    """One of the kinds suffices; order and repetition do not matter."""
    kinds = Kinds.parse("post, like")
    assert [kind for kind in KINDS if kinds.matches(Event(kind))] == ["post", "like"]
    assert kinds == Kinds.parse("like,post,like")


def test_all_kinds_may_be_asked_for() -> None:
    """Every kind that streams know, once each."""
    assert Kinds.parse(",".join(KINDS)).kinds == set(KINDS)


@pytest.mark.parametrize("value", ["", "post,", "hello", "heartbeat", "message", "Post", "posts"])
def test_kinds_that_streams_do_not_have(value: str) -> None:
    """Control messages come unasked and personal ones elsewhere, so neither can be asked for."""
    with pytest.raises(ParameterError) as refusal:
        Kinds.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "kinds")
