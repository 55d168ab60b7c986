"""Replies and conversations."""

from typing import Any

import pytest

from stream_server.errors import ApiError
from stream_server.store import keys
from stream_server.store.pagination import ListPosition, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, protect, read_pages


def _mark(name: str) -> str:
    """The part of a cursor that names its list. It is no secret."""
    return ListPosition(0, "0").cursor(name).rpartition("-")[2]


async def thread(store: Store, viewer: str, status: str) -> list[str]:
    return ids(await store.timelines.read_conversation(viewer, status, PageRequest()))


async def test_a_cursor_does_not_reveal_the_conversation_of_a_hidden_reply(store: Store, people: People) -> None:
    ann, bob, eve = await people.users(3)
    await protect(store, ann)
    root = (await people.status(bob))["id"]
    await people.status(bob, "and", in_reply_to=root)
    hidden = (await people.status(ann, "yes", in_reply_to=root))["id"]

    async def refused(status: str, cursor: str) -> type[ApiError]:
        with pytest.raises(ApiError) as refusal:
            await store.timelines.read_conversation(eve, status, PageRequest(before=cursor))
        return refusal.type

    cursor = (await store.timelines.read_conversation(eve, root, PageRequest(count=1))).next
    assert cursor is not None
    assert await refused(hidden, cursor) is await refused("1", cursor)
    place = cursor.rpartition("-")[0]
    made_up = {each: f"{place}-{_mark(keys.key_for('thread', each))}" for each in (hidden, "1")}
    assert await refused(hidden, made_up[hidden]) is await refused("1", made_up["1"])


async def test_a_status_without_answers_is_a_conversation_without_a_set(store: Store, people: People, raw: Any) -> None:
    ann = await people.user("ann")
    root = (await people.status(ann))["id"]
    assert await thread(store, ann, root) == [root]
    assert raw.keys(keys.key_for("thread", "*")) == []
    answer = (await people.status(ann, "yes", in_reply_to=root))["id"]
    assert set(raw.zrange(keys.key_for("thread", root), 0, -1)) == {root.encode(), answer.encode()}
    deeper = (await people.status(ann, "no", in_reply_to=answer))["id"]
    await store.statuses.delete(ann, root, new_key())
    assert await thread(store, ann, deeper) == [answer, deeper]
    for status in (answer, deeper):
        await store.statuses.delete(ann, status, new_key())
    assert raw.keys(keys.key_for("thread", "*")) == []


@pytest.mark.parametrize("answers", [0, 3, 70])
async def test_pages_of_a_conversation_have_its_root_if_the_version_before_answered_it(
    store: Store, people: People, raw: Any, answers: int
) -> None:
    ann = await people.user("ann")
    root = (await people.status(ann))["id"]
    expected = [root, *[(await people.status(ann, "yes", in_reply_to=root))["id"] for _ in range(answers)]]
    raw.zrem(keys.key_for("thread", root), root)  # it adds only its answer
    count = 2 if answers < 70 else 30
    pages = await read_pages(lambda wanted: store.timelines.read_conversation(ann, expected[-1], wanted), count)
    assert [status for page in pages for status in ids(page)] == expected
    for page, previous in zip(pages[1:], pages, strict=False):
        back = await store.timelines.read_conversation(ann, expected[-1], PageRequest(count=count, after=page.prev))
        assert ids(back) == ids(previous)
    by_number = await store.timelines.read_conversation(ann, root, PageRequest(count=1, page=2))
    assert ids(by_number) == expected[1:2]
