"""Real statuses as the log would hold them, and made ones. Facts that the data lacks are invented."""

import json
import random
from functools import cache
from itertools import pairwise
from typing import Any

from tests.end_to_end.sample_texts import AIRLINES, made_draft
from tests.property.statuses import Posted, entities
from tests.public_data import public_file

SOUTH_SEA = ((178.5, -17.8), (-179.9, -16.9), (-171.8, -13.8), (179.9, -18.1))
BOXES = (
    [139.6, 35.5, 139.9, 35.8],
    [178.9, -19.0, -179.0, -16.0],
    [170.0, -50.0, 179.0, -30.0],
    [-180.0, -90.0, 180.0, 90.0],
    [139.0, 35.0, 139.6, 35.5],
)
CITIES = ("Tokyo", "Fiji", "New Zealand", "Earth", "Kanagawa")
HOMES = ("Boston, MA", "new york, NY", "USA", None)
MADE = 300
MEDIA = ("image", "video", "gif", "audio")


@cache
def full_statuses() -> list[Posted]:
    """A hundred statuses of Twitter's API, oldest first, with invented locations."""
    theirs = json.loads(public_file("twitter.json").read_text())["statuses"][::-1]
    return [_of_status(status, number) for number, status in enumerate(theirs)]


def _of_status(theirs: dict[str, Any], number: int) -> Posted:
    status = _plain(theirs) | _somewhere(number)
    if "retweeted_status" in theirs:
        original = _plain(theirs["retweeted_status"]) | _somewhere(number)
        status |= {"message": "", "entities": entities(""), "origin": original["id"], "original": original}
        status |= {"media": [], "lang": original["lang"]}
    facts = {"author": _author(theirs["user"]), "reply_to_login": theirs["in_reply_to_screen_name"]}
    return Posted(status, facts)


def _plain(theirs: dict[str, Any]) -> dict[str, Any]:
    answered = theirs["in_reply_to_status_id_str"]
    return {
        "id": theirs["id_str"],
        "uid": theirs["user"]["id_str"],
        "login": theirs["user"]["screen_name"],
        "message": theirs["text"],
        "entities": _entities(theirs["entities"]),
        "lang": theirs["lang"],
        "in_reply_to": answered,
        "in_reply_to_uid": theirs["in_reply_to_user_id_str"] if answered else None,
        "origin": None,
        "media": [{"url": one["media_url"], "type": "image"} for one in theirs["entities"].get("media", ())],
        "conversation": answered or theirs["id_str"],
    }


def _entities(theirs: dict[str, Any]) -> dict[str, Any]:
    """The entities that Twitter found. Pictures are links too."""
    names = ("url", "display_url", "expanded_url", "indices")
    links = sorted((*theirs["urls"], *theirs.get("media", ())), key=lambda one: list(one["indices"]))
    return {
        "mentions": [
            {"login": one["screen_name"], "id": one["id_str"], "indices": one["indices"]}
            for one in theirs["user_mentions"]
        ],
        "hashtags": theirs["hashtags"],
        "cashtags": theirs["symbols"],
        "urls": [{name: one[name] for name in names} for one in links],
    }


def _author(user: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": user["id_str"],
        "login": user["screen_name"],
        "bio": user["description"],
        "followers": user["followers_count"],
        "following": user["friends_count"],
        "posts": user["statuses_count"],
    }


def _somewhere(number: int) -> dict[str, Any]:
    """A point, a place, both or neither, often near the date line."""
    lon, lat = SOUTH_SEA[number % 4] if number % 3 else (139.7 + number / 500, 35.6)
    place = {
        "name": CITIES[number % 5],
        "country": ("JP", "FJ", "NZ", None, "jp")[number % 5],
        "box": BOXES[number % 5],
    }
    return {
        "location": {"lon": lon, "lat": lat} if number % 4 < 2 else None,
        "place": place if number % 8 > 1 else None,
    }


@cache
def tweets() -> list[Posted]:
    """Ten thousand real texts, with invented replies, quotes, reposts and authors."""
    return _posted([json.loads(line) for line in public_file("tweets.jsonl").read_text().splitlines()])


@cache
def made() -> list[Posted]:
    """Some hundred made texts, as for tweets."""
    chance = random.Random(38)
    drafts = [made_draft(chance) for _ in range(MADE)]
    return _posted([
        {
            "author": author, "message": body["message"], "place": chance.choice(HOMES),
            "location": [*body["location"].values()] if "location" in body else None,
        }
        for author, body in drafts
    ])  # fmt: skip


def _posted(theirs: list[dict[str, Any]]) -> list[Posted]:
    logins = dict.fromkeys([*AIRLINES, *(one["author"] for one in theirs)])
    people = {login: str(uid) for uid, login in enumerate(logins, start=1)}
    plain = [_of_tweet(one, number, people) for number, one in enumerate(theirs, start=1)]
    return [_embedding(new, old, number) for number, (old, new) in enumerate(pairwise([plain[0], *plain]))]


def _of_tweet(theirs: dict[str, Any], number: int, people: dict[str, str]) -> Posted:
    message = theirs["message"]
    answered = next((name for name in AIRLINES if message.startswith(f"@{name} ")), None) if number % 3 else None
    status = {
        "id": str(number * 4096),
        "uid": people[theirs["author"]],
        "login": theirs["author"],
        "message": message,
        "entities": entities(message),
        "lang": ("en", "en-GB", "de", "und", "ja")[number % 5],
        "location": theirs["location"] and dict(zip(("lon", "lat"), theirs["location"], strict=True)),
        "place": _place(theirs["place"]),
        "in_reply_to": answered and str(number * 4096 + 1),
        "in_reply_to_uid": answered and people[answered],
        "origin": None,
        "media": [{"url": "https://a.co/m", "type": MEDIA[number % 4]}] if number % 7 == 0 else [],
        "conversation": str(number // 10 * 40960),
    }
    author = {"id": status["uid"], "login": theirs["author"], "bio": theirs["place"] or message[:60]}
    author |= {"followers": len(message) * 10, "following": number % 500, "posts": number}
    return Posted(status, {"author": author, "reply_to_login": answered} if number % 9 else {})


def _place(name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    return {"name": name} | ({"country": "US"} if name[-4:-2] == ", " else {})


def _embedding(new: Posted, old: Posted, number: int) -> Posted:
    """Make every tenth status a quote of the one before it, and every eleventh a repost."""
    if number % 10 == 9:
        return Posted(new.status | {"origin": old.status["id"], "original": old.status}, new.facts)
    if number % 11 == 10:
        shown = {"origin": old.status["id"], "original": old.status, "lang": old.status["lang"]}
        return Posted(new.status | shown | {"message": "", "entities": entities(""), "media": []}, new.facts)
    return new
