"""Equal texts share one object, but no text that a client chose is kept for long."""

from stream_server.web.shared_text import shared


def copies_of(text: str) -> tuple[str, str, str]:
    first, second, third = (text.encode().decode() for _ in range(3))
    assert first is not second is not third
    return first, second, third


def test_equal_texts_share_one_object_until_many_others_came() -> None:
    first, second, third = copies_of("track=coffee")
    assert shared(first) is shared(second) is first
    for number in range(5000):
        shared(f"track=nobody{number}")
    assert shared(third) is third
