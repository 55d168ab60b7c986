"""Spans of time as people write them."""

import pytest

from stream_server.commands.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "span"), [("90", 90), ("1s", 1), ("15m", 900), ("1h", 3600), ("30d", 2_592_000), (" 2h ", 7200)]
)
def test_reads_what_people_write(text: str, span: int) -> None:
    """A bare number is seconds; s, m, h and d are what they look like."""
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5h", "h", "1w", "1h30m", "٣", "999999999999d", "1e3"])
def test_refuses_what_is_no_span(text: str) -> None:
    """Nothing is guessed, and no span is longer than a date can be."""
    with pytest.raises(ValueError, match=r"duration|between"):
        parse_duration(text)
