"""Statuses whose hashes are kept in a shorter form: each is shown, answered, reposted and deleted as any other."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.events.position import LOG_START
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.social.ingest import Ingested
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from stream_server.wire.objects import Location, Media, Place
from tests.stream_server.store.people import People, new_key, open_store

CONTROL_BYTES = {*range(32)}


@pytest.fixture
async def packed(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, size_limits=SizeLimits(packed_statuses=True)) as made:
        yield made


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


async def _last_body(store: Store) -> Any:
    return json.loads((await store.log.read(LOG_START, 100))[-1].body)


async def test_packed_statuses_are_shown_as_they_were_posted(
    store: Store, packed: Store, people: People, raw: Any
) -> None:
    """Both forms are made and read beside each other."""
    ann, bob = await people.users(2)
    answered = (await people.status(bob, "first"))["id"]
    group = json.loads(await store.groups.create(ann, "club", "public", "", new_key()))["id"]
    for draft in _drafts(answered, group):
        made = await packed.statuses.create(ann, draft, new_key())
        status = json.loads(made)
        kept = raw.hgetall("{core}:status:" + status["id"])
        assert set(kept[b"head"]) & CONTROL_BYTES
        assert len(kept[b"head"]) < len(made) * 0.8
        for reader in (store, packed):
            assert await reader.statuses.get(ann, status["id"]) == made
        usual = json.loads(await store.statuses.create(ann, draft, new_key()))
        same = {"id", "posted", "conversation", "original"} if draft.in_reply_to is None else {"id", "posted"}
        assert {name: usual[name] for name in usual if name not in same} == {
            name: status[name] for name in status if name not in same
        }
        await _compare_deletes(packed, store, ann, (status["id"], usual["id"]))


async def _compare_deletes(packed: Store, store: Store, author: str, statuses: tuple[str, str]) -> None:
    """The entry of a delete carries the JSON and the facts of its post, in either form and by either server."""
    bodies = [json.loads(entry.body) for entry in await store.log.read(LOG_START, 200)]
    entries = {body["wire"]["status"]["id"]: body for body in bodies if "status" in body["wire"]}
    for deleting, status in zip((store, packed), statuses, strict=True):
        posted = entries[status]
        await deleting.statuses.delete(author, status, new_key())
        facts = (await _last_body(store))["facts"]
        assert facts["status"] == posted["wire"]["status"]
        assert facts["author"].items() <= posted["facts"]["author"].items()


async def test_packed_statuses_are_liked_reposted_and_answered(store: Store, packed: Store, people: People) -> None:
    ann, bob = await people.users(2)
    own = People(packed)
    first = await own.status(ann, "first")
    for server in (store, packed):
        await server.likes.like(bob, first["id"], new_key())
    repost = await people.status(bob, "", origin=first["id"])
    assert repost["original"] == first | {"likes": 1, "reposts": 1}
    answer = await own.status(bob, "yes", in_reply_to=first["id"])
    assert (answer["conversation"], answer["in_reply_to_uid"]) == (first["id"], ann)
    assert await store.repair.run(fix=False) == []


async def test_a_status_of_another_site_is_packed_with_its_foreign_id(packed: Store, raw: Any) -> None:
    await packed.ingest.write([packed.ingest.user("a", "", {})])
    (posted,), timelines = await packed.ingest.write([packed.ingest.post("p", "a", StatusDraft(message="hi"), 1000)])
    await timelines
    assert isinstance(posted, Ingested)
    uid = raw.hget("{core}:status:" + posted.id, "uid").decode()
    status = json.loads(await packed.statuses.get(uid, posted.id))
    assert (status["foreign_id"], status["posted"]) == ("p", "1970-01-01T00:00:01.000Z")
    (_,), timelines = await packed.ingest.write([packed.ingest.delete("p")])
    await timelines
    body = await _last_body(packed)
    assert (body["wire"]["status"]["foreign_id"], body["facts"]["status"]["message"]) == ("p", "hi")
