"""A hundred complete statuses of Twitter, rendered again here: every member that a client may read is present."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stream_server.events.entry_fields import AuthorSnapshot, EntryFacts
from stream_server.web.dialects.v1_status import render_tweet
from tests.filters.data import FOLDER
from tests.stream_server.web.dialects.status_json import status

Json = dict[str, Any]

ELSEWHERE = (
    "metadata",  # of searches, not of streams
    "user.profile_banner_url",  # there for who has one
    "entities.media[].source_status_id",  # pictures have no status that they come from
)
"""What may be missing, and why."""


def theirs() -> list[Json]:
    """Return Twitter's statuses; skip the test if the data is not installed."""
    path = FOLDER.parent / "twitter.json"
    if not path.exists():
        pytest.skip(f"the real statuses are not at {path}")
    statuses: list[Json] = json.loads(path.read_text())["statuses"]
    return statuses


def ours(one: Json) -> Json:
    """Return the same status in the JSON of the native API."""
    entities, shown = one["entities"], one.get("retweeted_status")
    if shown is not None:
        return _plain(one) | {"message": "", "origin": shown["id_str"], "original": ours(shown)}
    people = entities["user_mentions"]
    words = {
        "mentions": [{"login": m["screen_name"], "id": m["id_str"], "indices": m["indices"]} for m in people],
        "hashtags": entities["hashtags"],
        "cashtags": entities["symbols"],
        "urls": entities["urls"],
    }
    media = [{"url": m["media_url"], "type": "image"} for m in entities.get("media", [])]
    return _plain(one) | {"entities": words, "media": media}


def _plain(one: Json) -> Json:
    answered = one["in_reply_to_status_id_str"]
    return status(
        id=one["id_str"], uid=one["user"]["id_str"], login=one["user"]["screen_name"], message=one["text"],
        lang=one["lang"], in_reply_to=answered, in_reply_to_uid=answered and one["in_reply_to_user_id_str"],
        likes=one["favorite_count"], reposts=one["retweet_count"],
    )  # fmt: skip


def author(one: Json) -> AuthorSnapshot:
    """Return the author as the log keeps it."""
    user = one["user"]
    return AuthorSnapshot(
        id=user["id_str"], login=user["screen_name"], name=user["name"], bio=user["description"], url=user["url"],
        place=user["location"], lang=user["lang"], followers=user["followers_count"],
        following=user["friends_count"], posts=user["statuses_count"], protected=user["protected"],
    )  # fmt: skip


def made(one: Json) -> Json:
    """Return the status as the dialect renders it, decoded from its JSON."""
    shown = one.get("retweeted_status")
    facts = EntryFacts(
        author=author(one),
        original_author=None if shown is None else author(shown),
        reply_to_login=one["in_reply_to_screen_name"],
    )
    return render_tweet(ours(one), facts)


def paths(value: object, at: str = "") -> Iterator[tuple[str, type]]:
    """Yield the path and the type of every member of a value, at any depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            path = f"{at}.{name}" if at else name
            yield path, type(inner)
            yield from paths(inner, path)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, f"{at}[]")


def test_nothing_is_missing() -> None:
    """Each member of Twitter's statuses is present, in embedded statuses too."""
    for one in theirs():
        wanted = {path.removeprefix("retweeted_status.") for path, _ in paths(one)}
        missing = sorted(wanted - {path.removeprefix("retweeted_status.") for path, _ in paths(made(one))})
        assert [path for path in missing if not path.startswith(ELSEWHERE)] == []


def test_everything_is_of_its_type() -> None:
    """A number stays a number; null may replace a missing value."""
    nothing = type(None)
    for one in theirs():
        told = dict(paths(made(one)))
        for path, kind in paths(one):
            assert told.get(path, kind) in {kind, nothing} or kind is nothing, path


@pytest.mark.parametrize(
    "name", ["id", "id_str", "text", "lang", "in_reply_to_status_id", "in_reply_to_user_id", "in_reply_to_screen_name"]
)
def test_what_was_told_is_told_again(name: str) -> None:
    """Values that both servers know are equal, except that Twitter truncated long reposts."""
    for one in theirs():
        mine = made(one)
        whole = one[name] if not str(one[name]).endswith("…") else mine[name]
        assert mine[name] == whole


def test_entities_are_where_they_were() -> None:
    """The indices are equal; those of reposts are shifted by the prefix."""
    for one in theirs():
        mine = made(one)["entities"]
        for family in ("hashtags", "symbols", "user_mentions", "urls"):
            there = [entity["indices"] for entity in one["entities"][family]]
            if not one["text"].endswith("…"):
                assert [entity["indices"] for entity in mine[family]] == there, one["id_str"]
