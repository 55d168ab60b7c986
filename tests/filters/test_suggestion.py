"""The suggestion for an unknown name."""

import pytest

from filters.suggestion import did_you_mean, suggest

MEMBERS = ("message", "in_reply_to", "origin", "location", "place", "lang", "media", "meta")
FILTERS = ("track", "follow", "locations", "rule", "rules", "language", "kinds", "sample", "since")


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("text", MEMBERS, "message"),
        ("mesage", MEMBERS, "message"),
        ("Message", MEMBERS, "message"),
        ("language", MEMBERS, "lang"),
        ("lang", FILTERS, "language"),
        ("LANG", FILTERS, "language"),
        ("keywords", FILTERS, "track"),
        ("kind", FILTERS, "kinds"),
        ("folow", FILTERS, "follow"),
        ("reply_to", MEMBERS, "in_reply_to"),
        ("since_id", ("before", "after", "count"), "after"),
        ("limit", ("before", "after", "count"), "count"),
        ("zzz", FILTERS, None),
        ("", FILTERS, None),
        ("track" + "x" * 100_000, FILTERS, None),
        ("text", (), None),
    ],
)
def test_the_nearest_known_name_is_suggested(name: str, known: tuple[str, ...], meant: str | None) -> None:
    assert suggest(name, known) == meant
    assert did_you_mean(name, known) == ("" if meant is None else f"; did you mean `{meant}`?")
