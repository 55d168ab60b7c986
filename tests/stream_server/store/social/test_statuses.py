"""Statuses: created, read and deleted, each with its log entry in the same step."""

import dataclasses
import json
import re
import time
from typing import Any

import pytest
import redis

from filters.event import Event
from stream_server.errors import NotFound
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, created_ms, format_iso_time
from stream_server.store.social.statuses import (
    MAX_TAG_TIMELINES,
    StatusDraft,
)
from stream_server.store.store import Store
from stream_server.wire.objects import Location, Media, Place
from tests.stream_server.store.people import People, footprint, new_key

FULL: dict[str, Any] = {
    "location": Location(-0.1275, 51.50722),
    "place": Place("London", "GB", (-0.5, 51.25, 0.25, 51.75)),
    "lang": "en-GB",
    "media": [Media("https://example.org/a.png", "image")],
    "meta": {"a": [1, {"b": None}], "é": "\u2028"},
}


async def test_a_status_has_all_its_fields(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    bob = await people.user("Bob")
    message = 'hi @BOB and @nobody, "quoted" \\ #tag\n\té 👩‍👩‍👧 \u2028'
    made = await people.status(ann, message, **FULL)
    assert made | {"id": "", "posted": "", "entities": {}} == {
        "id": "", "uid": ann, "login": "Ann", "message": message, "posted": "",
        "location": {"lon": -0.1275, "lat": 51.50722},
        "place": {"name": "London", "country": "GB", "box": [-0.5, 51.25, 0.25, 51.75]},
        "lang": "en-GB", "entities": {}, "in_reply_to": None, "in_reply_to_uid": None, "origin": None,
        "media": [{"url": "https://example.org/a.png", "type": "image"}], "meta": FULL["meta"],
        "group": None, "conversation": made["id"],
        "likes": 0, "comments": 0, "reposts": 0,
    }  # fmt: skip
    first, second = made["entities"]["mentions"]
    assert (first["login"].lower(), first["id"]) == ("bob", bob)
    assert second["login"] == "nobody"
    assert "id" not in second
    assert [tag["text"] for tag in made["entities"]["hashtags"]] == ["tag"]


async def test_answer_log_entry_and_read_are_the_same_bytes(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    for draft in (StatusDraft(message="plain"), StatusDraft(message="full", **FULL)):
        made = await store.statuses.create(ann, draft, new_key())
        entry = (await store.log.read(LOG_START, 10))[-1]
        status_id = json.loads(made)["id"]
        assert entry.body.startswith(b'{"wire":{"status":%b},"facts":{"author":' % made)
        assert (entry.kind, entry.audience) == ("post", "public")
        assert await store.statuses.get(ann, status_id) == made
        assert status_id == str(entry.position.status_number)
        assert json.loads(made)["posted"] == format_iso_time(entry.position.ms)


async def test_the_hash_has_the_values_of_the_status_and_no_words_twice(people: People, raw: Any) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "héllo", **FULL)
    kept = raw.hgetall(f"{{core}}:status:{made['id']}")
    assert isinstance(kept, dict)
    login, message, posted = re.split(rb"[\0-\x1f]", kept[b"row"])[:3]
    assert (login, json.loads(message), posted.decode()) == (b"Ann", "héllo", made["posted"])
    assert (kept[b"uid"], kept[b"audience"]) == (ann.encode(), b"public")
    assert [name for name, value in kept.items() if "héllo".encode() in value] == [b"row"]
    assert raw.zrange(f"{{core}}:profile:{ann}", 0, -1) == [made["id"].encode()]
    assert raw.zscore(f"{{core}}:profile:{ann}", made["id"]) == int(made["id"])


def _drafts(answered: str, group: str) -> list[StatusDraft]:
    """Drafts that together have each member once with and once without a value."""
    return [
        StatusDraft(message="plain"),
        StatusDraft(message="control \x01\x06\x1f characters, \\1 and \u0000 are escaped", lang="de"),
        StatusDraft(message="#tag @u1 $CASH https://example.org/x", location=Location(1.5, 2.25)),
        StatusDraft(message="placed", place=Place("Rome", "it"), meta={"a": [1, {"b": "\x02"}]}),
        StatusDraft(message="media", media=[Media("https://example.org/a.png", "image/png")]),
        StatusDraft(message="an answer", in_reply_to=answered),
        StatusDraft(message="a quote", origin=answered),
        StatusDraft(origin=answered),
        StatusDraft(message="inside", group=group),
    ]


async def test_each_status_is_read_as_it_was_posted_and_its_delete_has_its_facts(
    store: Store, people: People, raw: Any
) -> None:
    """The script and the process make the same JSON of a row. A usual value takes no byte of it."""
    ann, bob = await people.users(2)
    answered = (await people.status(bob, "first"))["id"]
    group = json.loads(await store.groups.create(ann, "club", "public", "", new_key()))["id"]
    for draft in _drafts(answered, group):
        made = await store.statuses.create(ann, draft, new_key())
        posts = [entry for entry in await store.log.read(LOG_START, 200) if entry.kind == "post"]
        posted = json.loads(posts[-1].body)
        status = json.loads(made)
        assert await store.statuses.get(ann, status["id"]) == made
        kept = raw.hget("{core}:status:" + status["id"], "row")
        assert kept is not None
        assert b'"hashtags":[]' not in kept
        await store.statuses.delete(ann, status["id"], new_key())
        facts = json.loads((await store.log.read(LOG_START, 200))[-1].body)["facts"]
        assert facts["status"] == posted["wire"]["status"] == status
        assert facts["author"].items() <= posted["facts"]["author"].items()


async def test_unknown_authors_parents_and_originals_are_refused_by_name(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("Ann")
    first = await people.status(ann, "first")
    repost = await people.status(ann, "", origin=first["id"])
    await store.statuses.delete(ann, first["id"], new_key())
    before = footprint(raw)
    cases = [
        ("1", {}, None),
        (ann, {"in_reply_to": "1"}, "in_reply_to"),
        (ann, {"in_reply_to": first["id"]}, "in_reply_to"),
        (ann, {"origin": "1"}, "origin"),
        (ann, {"origin": first["id"]}, "origin"),
        (ann, {"origin": repost["id"]}, "origin"),
    ]
    for uid, more, param in cases:
        with pytest.raises(NotFound) as refusal:
            await people.status(uid, "x", **more)
        assert refusal.value.param == param
    assert footprint(raw) == before


def _matched(entry: Entry) -> dict[str, Any]:
    """All by which filters match an entry, but its kind."""
    names = [field.name for field in dataclasses.fields(Event) if field.init and field.name != "kind"]
    return {name: getattr(entry.event, name) for name in names}


async def _entry(store: Store, kind: str, status_id: str) -> Entry:
    found = [each for each in await store.log.read(LOG_START, 50) if each.kind == kind]
    (entry,) = [each for each in found if json.loads(each.wire)["status"]["id"] == status_id]
    return entry


@pytest.mark.parametrize("bio", ["", 'says "bio", \\ and ,"url":"x" 100%s', "plain"])
async def test_a_delete_is_matched_like_its_post(store: Store, people: People, bio: str) -> None:
    ann, bob = await people.users(2)
    await store.users.update(ann, {"bio": bio or None, "url": "https://example.org"}, new_key())
    await store.follows.follow(bob, ann, new_key())
    first = await people.status(ann, "first @u1 #x", **FULL)
    made = [first, await people.status(ann, "@u1 an answer", in_reply_to=first["id"])]
    made += [await people.status(ann, words, origin=first["id"]) for words in ("", "a quote")]
    await store.users.update(ann, {"bio": "another", "name": "Another"}, new_key())
    for status in made:
        await store.statuses.delete(ann, status["id"], new_key())
        posted, deleted = [await _entry(store, kind, status["id"]) for kind in ("post", "delete")]
        assert _matched(deleted) == _matched(posted)
        assert (deleted.event.bio, deleted.event.followers, deleted.audience) == (bio, 1, posted.audience)


async def test_a_repost_outlives_its_original(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    first = await people.status(ann, "first", **FULL)
    repost = await people.status(bob, "", origin=first["id"])
    await store.statuses.delete(ann, first["id"], new_key())
    shown = json.loads(await store.statuses.get(ann, repost["id"]))
    assert shown == repost | {"original": None}
    await store.statuses.delete(bob, repost["id"], new_key())
    entry = (await store.log.read(LOG_START, 10))[-1]
    facts = json.loads(entry.body)["facts"]
    assert facts.pop("status") == repost
    assert {role: who["id"] for role, who in facts.items()} == {"author": bob}
    assert _matched(entry) == _matched(await _entry(store, "post", repost["id"]))
    assert raw.keys("{core}:status:*") == []


async def test_an_entry_has_internal_facts_of_reply_and_original(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    first = await people.status(ann, "first")
    await people.status(bob, "second", in_reply_to=first["id"])
    await people.status(bob, "third", origin=first["id"])
    _, reply, quote = [one for one in await store.log.read(LOG_START, 10) if one.kind == "post"]
    assert reply.facts.author is not None
    assert reply.facts.author.login == "u1"
    assert (reply.facts.reply_to_login, reply.facts.original_author) == ("u0", None)
    assert quote.facts.original_author is not None
    assert (quote.facts.original_author.login, quote.facts.original_author.posts) == ("u0", 1)
    assert b"facts" not in quote.message_json()
    event = reply.event
    assert (event.author_login, event.reply_to, event.reply_to_login, set(event.forms)) == ("u1", ann, "u0", {"reply"})
    shown = quote.event
    assert (set(shown.forms), shown.analyzed_quote.text, shown.followers or 0) == ({"quote"}, "first", 0)


async def test_a_status_stands_in_the_timelines_of_its_first_tags(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann = await people.user("Ann")
    tags = [f"t{number}" for number in range(MAX_TAG_TIMELINES + 20)]
    made = await people.status(ann, " ".join(f"#{tag}" for tag in ["t0", *tags]))
    assert len(made["entities"]["hashtags"]) == len(tags) + 1
    kept = {f"{{core}}:tag:{tag}".encode() for tag in tags[:MAX_TAG_TIMELINES]}
    assert set(raw.keys("{core}:tag:*")) == kept
    await store.statuses.delete(ann, made["id"], new_key())
    assert raw.keys("{core}:tag:*") == []


@pytest.mark.parametrize("ahead_seconds", [-7, 7])
async def test_a_post_has_the_time_of_redis_if_the_clock_of_the_process_differs(
    store: Store, people: People, monkeypatch: pytest.MonkeyPatch, ahead_seconds: int
) -> None:
    (ann,) = await people.users(1)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + ahead_seconds)
    made = await people.status(ann)
    assert made["posted"] == format_iso_time(created_ms(int(made["id"])))
