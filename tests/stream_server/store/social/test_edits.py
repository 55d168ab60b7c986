"""Edits of statuses: the values, the sets in which a status stands, notifications, and the entry on the log."""

import json
from typing import Any

import msgspec
import pytest

from stream_server.errors import BadRequest, Forbidden, NotFound
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START, format_iso_time
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from stream_server.wire.objects import Location, Media, Place
from tests.stream_server.store.people import People, footprint, new_key

DAY_MS = 86_400_000

PAGE = PageRequest(count=50)

CHANGES: dict[str, Any] = {
    "location": Location(-0.1275, 51.50722),
    "place": Place('Lon,"place":don', "GB"),
    "lang": "fr",
    "media": [Media("https://example.org/a,.png", "image")],
    "meta": {"group": 'a","group":null', "media": [], "meta": {"group": "1"}},
}


async def edit(store: Store, uid: str, status: str, key: IdempotencyKey | None = None, **changes: Any) -> Any:
    return json.loads(await store.statuses.edit(uid, status, changes, key or new_key(), DAY_MS))


async def entries(store: Store) -> list[Entry]:
    return await store.log.read(LOG_START, 1000)


def ids(page: Page) -> list[str]:
    return [each["id"] for each in json.loads(b"[%b]" % page.body)]


@pytest.mark.parametrize("member", sorted(CHANGES))
async def test_one_member_changes_and_the_others_stay(store: Store, people: People, member: str) -> None:
    ann = await people.user("Ann")
    for given in ({}, CHANGES | {"lang": "de", "location": Location(1.0, 2.0), "place": Place("x"), "media": []}):
        made = await people.status(ann, "tea #tea", **given)
        edited = await edit(store, ann, made["id"], **{member: CHANGES[member]})
        entry = (await entries(store))[-1]
        wanted = json.loads(msgspec.json.encode(CHANGES[member]))
        if edited == made:  # this member had the value already
            assert made[member] == wanted
            continue
        assert edited == made | {member: wanted, "edits": 1, "edited": format_iso_time(entry.position.ms)}
        assert json.loads(await store.statuses.get(ann, made["id"])) == edited


async def test_null_clears_a_member(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "tea", **CHANGES)
    edited = await edit(store, ann, made["id"], location=None, place=None, media=[], meta=None)
    assert [edited[name] for name in ("location", "place", "media", "meta")] == [None, None, [], None]
    assert edited["lang"] == "fr"


async def test_the_entry_has_the_new_version_and_for_filters_the_old_one(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "tea #tea", meta={"a": 1})
    edited = await edit(store, ann, made["id"], message="coffee #cup")
    entry = (await entries(store))[-1]
    assert (entry.kind, entry.audience, json.loads(entry.wire)) == ("edit", "public", {"status": edited})
    new, old = entry.versions()
    assert (new.event.text, new.is_removal) == ("coffee #cup", False)
    assert (old.event.text, old.is_removal) == ("tea #tea", True)
    assert json.loads(old.wire) == {"left": {"id": made["id"], "uid": ann}}
    assert (old.event.followers, old.event.meta, old.event.kind) == (0, b'{"a":1}', "edit")


async def test_a_new_message_has_its_own_tags_and_mentions(store: Store, people: People, raw: Any) -> None:
    ann, bob, cay, dan = [await people.user(name) for name in ("Ann", "Bob", "Cay", "Dan")]
    made = await people.status(ann, "tea @bob @cay #one #two")
    edited = await edit(store, ann, made["id"], message="milk @cay @dan #two #three")
    assert [one.get("id") for one in edited["entities"]["mentions"]] == [cay, dan]
    timelines = store.timelines
    told = {tag: ids(await timelines.read_tag(ann, tag, PAGE)) for tag in ("one", "two", "three")}
    assert told == {"one": [], "two": [made["id"]], "three": [made["id"]]}
    told = {uid: ids(await timelines.read_mentions(uid, PAGE)) for uid in (bob, cay, dan)}
    assert told == {bob: [], cay: [made["id"]], dan: [made["id"]]}
    kinds = [(entry.kind, entry.audience) for entry in await entries(store)]
    assert kinds == [
        ("post", "public"), ("notification", f"users:{bob},{cay}"),
        ("edit", "public"), ("notification", f"users:{dan}"),
    ]  # fmt: skip
    names = [raw.zrange(f"{{core}}:notices:{uid}", 0, -1) for uid in (bob, cay, dan)]
    assert names == [[], [f"mention:{ann}:{made['id']}".encode()], [f"mention:{ann}:{made['id']}".encode()]]
    await store.statuses.delete(ann, made["id"], new_key())
    assert [raw.exists(f"{{core}}:{key}") for key in ("tag:two", "tag:three", f"mentions:{dan}")] == [0, 0, 0]


async def test_who_may_not_see_the_author_is_not_notified_of_a_new_mention(store: Store, people: People) -> None:
    ann, bob = await people.user("Ann"), await people.user("Bob")
    made = await people.status(ann, "tea")
    await store.mutes.mute(bob, ann, new_key())
    before = len(await entries(store))
    await edit(store, ann, made["id"], message="tea @bob")
    assert [entry.kind for entry in (await entries(store))[before:]] == ["edit"]


async def test_a_delete_has_each_version_for_filters(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "one")
    for text in ("two", "three"):
        await edit(store, ann, made["id"], message=text)
    await store.statuses.delete(ann, made["id"], new_key())
    entry = (await entries(store))[-1]
    assert [version.event.text for version in entry.versions()] == ["three", "one", "two"]
    assert {version.wire for version in entry.versions()} == {entry.wire}
    assert all(version.is_removal for version in entry.versions())


async def test_many_large_versions_are_not_kept_but_the_first_and_the_last_are(
    store: Store, people: People, raw: Any
) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "tea", meta={"text": "x" * 4000})
    for number in range(6):
        await edit(store, ann, made["id"], message=f"tea {number}")
    kept = raw.hget(f"{{core}}:status:{made['id']}", "versions").split(b"\1")[:-1]
    assert [json.loads(each)["message"] for each in kept] == ["tea", "tea 4"]


async def test_an_edit_that_changes_nothing_makes_no_entry(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "tea", **CHANGES)
    before = footprint(raw)
    assert await edit(store, ann, made["id"], message="tea", **CHANGES) == made
    assert await edit(store, ann, made["id"]) == made
    assert footprint(raw) == before


async def test_a_repeated_request_edits_once(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    made = await people.status(ann, "tea")
    key = new_key()
    first = await edit(store, ann, made["id"], key, message="coffee")
    await edit(store, ann, made["id"], message="milk")
    before = len(await entries(store))
    assert await edit(store, ann, made["id"], key, message="coffee") == first
    assert len(await entries(store)) == before
    assert json.loads(await store.statuses.get(ann, made["id"]))["message"] == "milk"


async def test_only_the_author_edits_and_only_in_time(store: Store, people: People, raw: Any) -> None:
    ann, bob, cay = [await people.user(name) for name in ("Ann", "Bob", "Cay")]
    made = await people.status(ann, "tea")
    await store.blocks.block(ann, cay, new_key())
    before = footprint(raw)
    with pytest.raises(Forbidden) as refused:
        await edit(store, bob, made["id"], message="milk")
    assert refused.value.error_code == "not_yours"
    with pytest.raises(NotFound):
        await edit(store, cay, made["id"], message="milk")
    with pytest.raises(NotFound):
        await edit(store, ann, "1", message="milk")
    with pytest.raises(Forbidden) as refused:
        await store.statuses.edit(ann, made["id"], {"message": "milk"}, new_key(), -1)
    assert refused.value.error_code == "too_late"
    assert footprint(raw) == before


async def test_a_plain_repost_is_not_edited_and_a_quote_shows_the_present_original(
    store: Store, people: People
) -> None:
    ann, bob = await people.user("Ann"), await people.user("Bob")
    original = await people.status(ann, "tea")
    repost = await people.status(bob, "", origin=original["id"])
    quote = await people.status(bob, "look", origin=original["id"])
    with pytest.raises(BadRequest) as refused:
        await edit(store, bob, repost["id"], message="mine", meta={"a": 1})
    assert refused.value.param == "origin"
    new = await edit(store, ann, original["id"], message="coffee")
    edited = await edit(store, bob, quote["id"], message="look here")
    assert edited["original"]["message"] == "coffee"
    assert edited["original"]["edited"] == new["edited"]
    assert edited == json.loads(await store.statuses.get(bob, quote["id"])) | {"reposts": 0}


async def test_an_edit_in_a_group_goes_to_its_members_and_needs_the_right_to_post(store: Store, people: People) -> None:
    ann, bob = await people.user("Ann"), await people.user("Bob")
    group = json.loads(await store.groups.create(ann, "g", "public", "", new_key()))["id"]
    await store.groups.join(bob, group, new_key())
    made = await people.status(bob, "tea #tea @ann", group=group)
    edited = await edit(store, bob, made["id"], message="milk #milk @ann")
    entry = (await entries(store))[-1]
    assert (entry.kind, entry.audience, edited["group"]) == ("edit", f"group:{group}", group)
    assert ids(await store.timelines.read_tag(bob, "milk", PAGE)) == []
    await store.groups.leave(bob, group, new_key())
    with pytest.raises(Forbidden):
        await edit(store, bob, made["id"], message="water")


async def test_an_edit_after_a_protection_reaches_whom_the_old_version_could(store: Store, people: People) -> None:
    ann = await people.user("Ann")
    await store.users.update(ann, {"protected": True}, new_key())
    made = await people.status(ann, "tea")
    await edit(store, ann, made["id"], message="milk")
    assert (await entries(store))[-1].audience == f"followers:{ann}"
    await store.users.update(ann, {"protected": False}, new_key())
    await store.users.update(ann, {"protected": True}, new_key())
    await edit(store, ann, made["id"], message="water")
    assert (await entries(store))[-1].audience == "public"


async def test_readers_of_the_log_find_the_last_edit_of_a_status(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("Ann")
    first, second = await people.status(ann, "one"), await people.status(ann, "two")
    for text in ("three", "four"):
        await edit(store, ann, first["id"], message=text)
    found = await store.log.find_edits([first["id"], second["id"]])
    assert {each: entry.event.text for each, entry in found.items()} == {first["id"]: "four"}
    entry = (await entries(store))[0]
    shown = json.loads(entry.as_edited(found).wire)["status"]
    assert (shown["message"], shown["edits"], entry.as_edited(found).event.text) == ("four", 2, "four")
    assert entry.as_edited({}) is entry
    await edit(store, ann, second["id"], message="five")
    raw.xtrim("{core}:log", maxlen=1, approximate=False)
    await store.retention.trim(RetentionLimits(0, 0))
    assert raw.zrange("{core}:edited", 0, -1) == [second["id"].encode()]
