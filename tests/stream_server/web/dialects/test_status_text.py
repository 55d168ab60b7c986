"""The text of a status for clients to whom a repost repeats the original's text."""

from stream_server.web.dialects.status_text import place_id


def test_equal_places_have_equal_ids() -> None:
    tea = {"name": "Tea", "country": "GB", "box": [0.0, 1.0, 2.0, 3.0]}
    assert place_id(tea) == place_id(dict(reversed(tea.items())))
    others = [place_id({**tea, name: value}) for name, value in (("name", "tea"), ("country", None), ("box", None))]
    assert len({place_id(tea), *others}) == 4
