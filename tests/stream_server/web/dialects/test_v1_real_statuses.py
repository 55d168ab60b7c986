"""Statuses of Twitter and made ones, rendered by this server: every member that a client may read is present."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from stream_server.events.content import AuthorSnapshot, EntryFacts
from stream_server.web.dialects.v1_framing import render_tweet
from tests.public_data import public_file
from tests.stream_server.web.dialects.made_statuses import made_statuses
from tests.stream_server.web.dialects.status_json import status

Json = dict[str, Any]

ELSEWHERE = (
    "metadata",  # of searches, not of streams
    "user.profile_banner_url",  # there for who has one
    "entities.media[].source_status_id",  # pictures have no status that they come from
)
"""What may be missing, and why."""


def twitter_statuses() -> list[Json]:
    """Return a hundred statuses of Twitter; skip the test if the data is not installed."""
    statuses: list[Json] = json.loads(public_file("twitter.json").read_text())["statuses"]
    return statuses


@pytest.fixture(params=[made_statuses, twitter_statuses])
def statuses(request: pytest.FixtureRequest) -> list[Json]:
    found: list[Json] = request.param()
    return found


def native_status(one: Json) -> Json:
    entities, shown = one["entities"], one.get("retweeted_status")
    if shown is not None:
        return _plain(one) | {"message": "", "origin": shown["id_str"], "original": native_status(shown)}
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


def author_snapshot(one: Json) -> AuthorSnapshot:
    user = one["user"]
    return AuthorSnapshot(
        id=user["id_str"], login=user["screen_name"], name=user["name"], bio=user["description"], url=user["url"],
        place=user["location"], lang=user["lang"], followers=user["followers_count"],
        following=user["friends_count"], posts=user["statuses_count"], protected=user["protected"],
    )  # fmt: skip


def rendered(one: Json) -> Json:
    shown = one.get("retweeted_status")
    facts = EntryFacts(
        author=author_snapshot(one),
        original_author=None if shown is None else author_snapshot(shown),
        reply_to_login=one["in_reply_to_screen_name"],
    )
    return render_tweet(native_status(one), facts)


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


def test_every_member_is_present(statuses: list[Json]) -> None:
    for one in statuses:
        wanted = {path.removeprefix("retweeted_status.") for path, _ in paths(one)}
        missing = sorted(wanted - {path.removeprefix("retweeted_status.") for path, _ in paths(rendered(one))})
        assert [path for path in missing if not path.startswith(ELSEWHERE)] == []


def test_every_member_has_its_type_or_null(statuses: list[Json]) -> None:
    nothing = type(None)
    for one in statuses:
        rendered_paths = dict(paths(rendered(one)))
        for path, kind in paths(one):
            assert rendered_paths.get(path, kind) in {kind, nothing} or kind is nothing, path


@pytest.mark.parametrize(
    "name", ["id", "id_str", "text", "lang", "in_reply_to_status_id", "in_reply_to_user_id", "in_reply_to_screen_name"]
)
def test_values_that_both_servers_know_are_equal(statuses: list[Json], name: str) -> None:
    """Except for long reposts, which Twitter truncates."""
    for one in statuses:
        mine = rendered(one)
        whole = one[name] if not str(one[name]).endswith("…") else mine[name]
        assert mine[name] == whole


def test_entities_have_equal_indices(statuses: list[Json]) -> None:
    for one in statuses:
        mine = rendered(one)["entities"]
        for family in ("hashtags", "symbols", "user_mentions", "urls"):
            there = [entity["indices"] for entity in one["entities"][family]]
            if not one["text"].endswith("…"):
                assert [entity["indices"] for entity in mine[family]] == there, one["id_str"]
