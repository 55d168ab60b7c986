"""What a client accepts is read once, for media types, codings and pages."""

import pytest

from stream_server.web.http.qualities import MAX_LIST_CHARS, parse_qualities


@pytest.mark.parametrize(
    ("field", "qualities"),
    [
        ("", {}),
        (",, ;q=1", {}),
        ("gzip", {"gzip": 1.0}),
        ("GZIP ; Q=0.3, br", {"gzip": 0.3, "br": 1.0}),
        ("text/html;level=1;q=0.5", {"text/html": 0.5}),
        ("a;q = 0.25", {"a": 0.25}),
        ("a;q=x, b;q=-1, c;q=, d;q=1e3, e;q", {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0}),
        ("a;q=7", {"a": 1.0}),
        ("a;q=0.12345", {"a": 0.12345}),
    ],
)
def test_each_name_has_its_quality(field: str, qualities: dict[str, float]) -> None:
    """RFC 9110, section 12.4.2, and what clients write that do not know it."""
    assert parse_qualities(field) == qualities


def test_a_long_list_is_read_to_its_limit() -> None:
    assert "late" not in parse_qualities("x," * MAX_LIST_CHARS + "late")
