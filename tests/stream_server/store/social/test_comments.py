"""Comments: order, counters, notifications, and who sees them."""

import json
from itertools import zip_longest
from typing import Any

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.events.entry import Entry
from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import (
    befriend,
    ids,
    items_of,
    logged,
    notified,
    protect,
    refusal,
    stored_notifications,
)


async def comment(store: Store, uid: str, status: str, message: str = "well") -> dict[str, Any]:
    made: dict[str, Any] = json.loads(await store.comments.create(uid, status, message, new_key()))
    return made


async def page(store: Store, viewer: str, status: str) -> list[str]:
    return ids(await store.comments.list_comments(viewer, status, PageRequest()))


async def test_a_comment_is_stored_counted_logged_and_notified(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    status = await people.status(ann)
    message = 'Hé, @U0 "quoted" \\ #tag\n\t👩‍👩‍👧 \u2028 https://example.org/x @nobody'
    made = await store.comments.create(bob, status["id"], message, new_key())
    answer = json.loads(made)
    assert answer | {"posted": "", "entities": {}} == {
        "id": answer["id"], "uid": bob, "login": "u1", "status": status["id"], "message": message, "posted": "",
        "entities": {},
    }  # fmt: skip
    first, second = answer["entities"]["mentions"]
    assert (first["login"], first["id"], message[slice(*first["indices"])]) == ("U0", ann, "@U0")
    assert (second["login"], "id" in second) == ("nobody", False)
    assert [tag["text"] for tag in answer["entities"]["hashtags"]] == ["tag"]
    (entry,) = await logged(store, "comment")
    assert (entry.audience, entry.wire) == ("public", {"comment": answer, "status": status | {"comments": 1}})
    assert await store.comments.get(ann, answer["id"]) == made
    assert items_of(await store.comments.list_comments(ann, status["id"], PageRequest())) == [made]
    assert json.loads(await store.statuses.get(ann, status["id"]))["comments"] == 1
    assert await notified(store, ann) == [("comment", bob)]


async def test_comments_are_paged_oldest_first(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    made = [(await comment(store, uid, status))["id"] for uid in (ann, bob, ann, bob, ann)]
    first = await store.comments.list_comments(bob, status, PageRequest(2))
    second = await store.comments.list_comments(bob, status, PageRequest(2, before=first.next))
    third = await store.comments.list_comments(bob, status, PageRequest(2, before=second.next))
    assert [ids(one) for one in (first, second, third)] == [made[:2], made[2:4], made[4:]]
    assert (first.prev, third.next) == (None, None)
    assert ids(await store.comments.list_comments(bob, status, PageRequest(2, after=third.prev))) == made[2:4]


async def test_deleting_a_comment_removes_everything_of_it(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, eve = await people.users(3)
    status = await people.status(ann)
    other = await comment(store, eve, status["id"])
    made = await comment(store, bob, status["id"], "look @u2")
    assert await notified(store, eve) == [("mention", bob)]
    assert stored_notifications(raw, eve) == {f"mention:{bob}:c{made['id']}"}
    await store.comments.delete(bob, made["id"], new_key())
    (entry,) = await logged(store, "uncomment")
    gone = {"id": made["id"], "uid": bob, "status": status["id"], "deleted": True}
    assert entry.wire == {"comment": gone, "status": status | {"comments": 1}}
    last: Any = raw.xrevrange(keys.LOG, count=1)
    assert json.loads(last[0][1][b"e"])["facts"] == {"comment": made}
    assert await page(store, ann, status["id"]) == [other["id"]]
    assert not raw.exists(keys.key_for("comment", made["id"]))
    assert stored_notifications(raw, eve) == set()
    assert stored_notifications(raw, ann) == {f"comment:{eve}:{other['id']}"}
    for asked in (
        store.comments.get(ann, made["id"]),
        store.comments.delete(bob, made["id"], new_key()),
        store.comments.delete(bob, "1", new_key()),
    ):
        with pytest.raises(NotFound):
            await asked


async def test_only_the_authors_of_comment_and_status_delete_a_comment(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    status = (await people.status(ann))["id"]
    made = [(await comment(store, bob, status))["id"] for _ in range(2)]
    assert await refusal(store.comments.delete(eve, made[0], new_key())) == (403, "not_yours", None)
    await protect(store, ann)
    assert await refusal(store.comments.delete(eve, made[0], new_key())) == (404, "not_found", None)
    for uid, said in zip((ann, bob), made, strict=True):
        await store.comments.delete(uid, said, new_key())
    assert await page(store, ann, status) == []


async def test_a_repeated_key_gets_the_same_bytes_after_a_delete_and_a_trim(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    request, later = (IdempotencyKey.from_client(bob, name, b"p") for name in "ab")
    made = await store.comments.create(bob, status, 'é "x"', request)
    assert await store.comments.create(bob, status, 'é "x"', request) == made
    await store.comments.delete(bob, json.loads(made)["id"], new_key())
    assert await store.comments.create(bob, status, 'é "x"', request) == made
    again = await store.comments.create(bob, status, "y", later)
    raw.xtrim(keys.LOG, maxlen=0, approximate=False)
    assert await store.comments.create(bob, status, "y", later) == again


async def test_the_delete_of_a_comment_has_the_audience_of_the_comment(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    openly = await comment(store, bob, status)
    await protect(store, bob)
    closed = await comment(store, bob, status)
    for one in (openly, closed):
        await store.comments.delete(bob, one["id"], new_key())
    audiences = ["public", f"followers:{bob}"]
    for kind in ("comment", "uncomment"):
        assert [entry.audience for entry in await logged(store, kind)] == audiences


async def test_a_removal_is_for_everybody_if_everybody_could_read_what_goes(store: Store, people: People) -> None:
    """A protection that ended has opened what was written under it, even if the next one has begun."""
    ann, bob = await people.users(2)
    public = (await people.status(ann))["id"]
    await protect(store, bob)
    posts = [(await people.status(bob))["id"] for _ in range(2)]
    comments = [(await comment(store, bob, public))["id"] for _ in range(2)]
    await protect(store, bob, on=False)
    await store.statuses.delete(bob, posts[0], new_key())
    await store.comments.delete(bob, comments[0], new_key())
    await protect(store, bob)
    posts.append((await people.status(bob))["id"])
    comments.append((await comment(store, bob, public))["id"])
    for post, said in zip(posts[1:], comments[1:], strict=True):
        await store.statuses.delete(bob, post, new_key())
        await store.comments.delete(bob, said, new_key())
    for kind in ("delete", "uncomment"):
        audiences = [entry.audience for entry in await logged(store, kind)]
        assert audiences == ["public", "public", f"followers:{bob}"], kind


@pytest.mark.parametrize("opened", [0, 1, 2])
async def test_the_delete_of_a_comment_between_protected_users_is_theirs_while_one_is_protected(
    store: Store, people: People, opened: int
) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    await befriend(store, bob, ann)
    for uid in (ann, bob):
        await protect(store, uid)
    said = await comment(store, bob, status)
    for uid in (ann, bob)[:opened]:
        await protect(store, uid, on=False)
    await store.comments.delete(bob, said["id"], new_key())
    made, gone = [(await logged(store, kind))[0].audience for kind in ("comment", "uncomment")]
    assert made == f"users:{bob},{ann}"
    assert gone == ("public" if opened == 2 else made)


TOGETHER: dict[str, tuple[list[tuple[int, bool]], bool]] = {
    "both at once, and again protected": ([(0, False), (1, False), (0, True), (1, True)], True),
    "both at once, and one open later": ([(0, False), (1, False), (0, True), (1, True), (1, False)], True),
    "the one after the other": ([(0, False), (0, True), (1, False), (1, True), (0, False)], False),
}
"""Changes of protection, each of Ann (0) or Bob (1), and whether there was a moment with neither protected."""


@pytest.mark.parametrize(("changes", "were_open"), TOGETHER.values(), ids=TOGETHER)
async def test_the_delete_of_a_comment_that_everybody_could_read_for_a_time_is_for_everybody(
    store: Store, people: People, changes: list[tuple[int, bool]], *, were_open: bool
) -> None:
    ann, bob = await people.users(2)
    status = (await people.status(ann))["id"]
    await befriend(store, bob, ann)
    for uid, is_on in ((ann, True), (ann, False), (bob, True), (ann, True)):  # what was before does not count
        await protect(store, uid, on=is_on)
    said = await comment(store, bob, status)
    for who, is_on in changes:
        await protect(store, (ann, bob)[who], on=is_on)
    await store.comments.delete(bob, said["id"], new_key())
    (gone,) = await logged(store, "uncomment")
    assert gone.audience == ("public" if were_open else f"users:{bob},{ann}")


PARTED: dict[str, tuple[int, list[tuple[int, bool]], bool]] = {
    "the author opens after the commenter has closed": (0, [(1, True), (0, False)], False),
    "the commenter opens after the author has closed": (1, [(0, True), (1, False)], False),
    "both open for a moment": (0, [(0, False), (1, True), (0, True)], True),
    "the commenter was never protected": (0, [(0, False), (0, True)], True),
    "the commenter closes for a while": (0, [(1, True), (1, False)], False),
    "nothing changes": (0, [], False),
}
"""Who is protected when Bob (1) comments a post of Ann (0), changes of protection, and whether both were open then."""


@pytest.mark.parametrize(("closed", "changes", "were_open"), PARTED.values(), ids=PARTED)
async def test_the_delete_of_a_comment_is_for_everybody_only_if_both_its_users_were_open_at_once(
    store: Store, people: People, closed: int, changes: list[tuple[int, bool]], *, were_open: bool
) -> None:
    """Who reads a comment may see its author and the author of its status. The facts tell when the other was open."""
    ann, bob = users = await people.users(2)
    status = (await people.status(ann))["id"]
    await befriend(store, bob, ann)
    await protect(store, users[closed])
    said = await comment(store, bob, status)
    for who, is_on in changes:
        await protect(store, users[who], on=is_on)
    await store.comments.delete(bob, said["id"], new_key())
    gone, ids_of_changes = await removed_and_changed(store, users[1 - closed])
    assert (gone.kind, gone.audience) == ("uncomment", "public" if were_open else f"followers:{users[closed]}")
    open_times = tuple(zip_longest([0, *ids_of_changes[1::2]], ids_of_changes[::2]))
    assert gone.facts.open_times == (None if were_open or not ids_of_changes else open_times)


async def removed_and_changed(store: Store, uid: str) -> tuple[Entry, list[int]]:
    """Return the last entry, and the ids of the changes of a user's protection."""
    entries = await store.log.read(LOG_START, 10_000)
    changes = [entry for entry in entries if entry.kind in ("protect", "unprotect") and entry.event.author == uid]
    return entries[-1], [entry.position.status_number for entry in changes]


@pytest.mark.parametrize("text", ["", "see this"], ids=["repost", "quote"])
async def test_the_delete_of_a_repost_for_followers_tells_when_its_original_was_open(
    store: Store, people: People, text: str
) -> None:
    ann, bob = await people.users(2)
    first = await people.status(ann)
    await protect(store, bob)
    shown = await people.status(bob, text, origin=first["id"])
    for is_on in (True, False, True):
        await protect(store, ann, on=is_on)
    await store.statuses.delete(bob, shown["id"], new_key())
    gone, (closed, opened, closed_again) = await removed_and_changed(store, ann)
    assert (gone.kind, gone.audience) == ("delete", f"followers:{bob}")
    assert gone.facts.open_times == (None if text else ((0, closed), (opened, closed_again)))


async def test_only_the_last_open_times_of_a_user_are_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    for _ in range(60):
        for is_on in (True, False):
            await protect(store, ann, on=is_on)
    kept = raw.hget(f"{{core}}:user:{ann}", "open_times")
    assert isinstance(kept, bytes)
    assert 1000 < len(kept) <= 1400
    assert kept.split(b"-")[0].isdigit()
