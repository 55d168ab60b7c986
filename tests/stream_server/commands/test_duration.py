"""Durations as people write them."""

import pytest

from stream_server.commands.token import parse_duration


@pytest.mark.parametrize(
    ("text", "span"), [("90", 90), ("1s", 1), ("15m", 900), ("1h", 3600), ("30d", 2_592_000), (" 2h ", 7200)]
)
def test_durations_with_and_without_a_unit(text: str, span: int) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5h", "h", "1w", "1h30m", "٣", "999999999999d", "1e3"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|between"):
        parse_duration(text)
