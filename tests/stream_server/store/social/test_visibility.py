"""A status that is hidden from a user is unknown to each action of this user."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, NotFound
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import dump, group, protect, suspend

Action = Callable[[Store, str, str], Awaitable[Any]]

ACTIONS: dict[str, Action] = {
    "get": lambda s, who, status: s.statuses.get(who, status),
    "like": lambda s, who, status: s.likes.like(who, status, new_key()),
    "unlike": lambda s, who, status: s.likes.unlike(who, status, new_key()),
    "has liked": lambda s, who, status: s.likes.has_liked(who, status),
    "who likes": lambda s, who, status: s.likes.list_likers(who, status, PageRequest()),
    "keep": lambda s, who, status: s.favorites.add(who, status, new_key()),
    "drop": lambda s, who, status: s.favorites.remove(who, status, new_key()),
    "has kept": lambda s, who, status: s.favorites.is_favorite(who, status),
    "comment": lambda s, who, status: s.comments.create(who, status, "x", new_key()),
    "comments": lambda s, who, status: s.comments.list_comments(who, status, PageRequest()),
    "reply": lambda s, who, status: People(s).status(who, "x", in_reply_to=status),
    "repost": lambda s, who, status: People(s).status(who, "", origin=status),
    "quote": lambda s, who, status: People(s).status(who, "x", origin=status),
    "reposts": lambda s, who, status: s.timelines.read_reposts(who, status, PageRequest()),
    "replies": lambda s, who, status: s.timelines.read_replies(who, status, PageRequest()),
    "conversation": lambda s, who, status: s.timelines.read_conversation(who, status, PageRequest()),
    "delete": lambda s, who, status: s.statuses.delete(who, status, new_key()),
}
"""Every action on one status by its id."""

PARAMS = {"reply": "in_reply_to", "repost": "origin", "quote": "origin"}

HIDDEN = ["the protected", "the blocking", "the blocked", "the suspended", "a private group", "the deleted"]


async def hidden_status(kind: str, store: Store, author: str, viewer: str) -> tuple[str, str]:
    """A status of the author that is hidden from the viewer for this reason, and a comment on it."""
    is_group = kind == "a private group"
    gid = await group(store, "private", author) if is_group else None
    status = str((await People(store).status(author, group=gid))["id"])
    made = await store.comments.create(author if is_group else viewer, status, "x", new_key())
    if kind == "the protected":
        await protect(store, author)
    elif kind == "the blocking":
        await store.blocks.block(author, viewer, new_key())
    elif kind == "the blocked":
        await store.blocks.block(viewer, author, new_key())
    elif kind == "the suspended":
        await suspend(store, viewer, author)
    elif kind == "the deleted":
        await store.statuses.delete(author, status, new_key())
    return status, json.loads(made)["id"]


@pytest.mark.parametrize("kind", HIDDEN)
async def test_each_action_answers_for_a_hidden_status_as_for_an_unknown_one(
    store: Store, people: People, raw: "redis.Redis", kind: str
) -> None:
    author, viewer = await people.users(2)
    status, comment = await hidden_status(kind, store, author, viewer)
    before = dump(raw)
    for name, action in ACTIONS.items():
        refusals = []
        for asked in (status, "1"):
            with pytest.raises(NotFound) as refusal:
                await action(store, viewer, asked)
            refusals.append(refusal.value.body())
            assert refusal.value.param == PARAMS.get(name), name
            assert refusal.value.message == "unknown status", name
        assert refusals[0] == refusals[1], name
    for hidden in (comment, "1"):
        with pytest.raises(NotFound) as refusal:
            await store.comments.get(viewer, hidden)
        assert (refusal.value.message, refusal.value.param) == ("unknown comment", None)
    assert await store.statuses.get_many(viewer, [status, "1"]) == []
    assert dump(raw) == before


async def test_each_action_works_on_a_visible_status(store: Store, people: People) -> None:
    author, viewer = await people.users(2)
    status = (await people.status(author))["id"]
    for name, action in ACTIONS.items():
        if name == "delete":
            with pytest.raises(ApiError) as refusal:
                await action(store, viewer, status)
            assert refusal.value.error_code == "not_yours"
        else:
            await action(store, viewer, status)
