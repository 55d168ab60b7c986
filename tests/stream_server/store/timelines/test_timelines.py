"""Each timeline: its statuses, their order, and its viewers."""

import json
from collections.abc import Awaitable, Callable

import pytest

from stream_server.errors import BadRequest, InvalidCursor
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids

Read = Callable[[PageRequest], Awaitable[Page]]


def _id(made: bytes) -> str:
    return str(json.loads(made)["id"])


class Scene:
    """Ada, an author whom Bob follows, and all timelines with her statuses."""

    def __init__(self, store: Store, people: People) -> None:
        self.store, self.people = store, people
        self.ids: list[str] = []

    async def fill(self) -> None:
        """Five statuses that are in every timeline, and one of another author that is in none."""
        self.ada, self.bob, self.carl = await self.people.users(3)
        await self.store.follows.follow(self.bob, self.ada, new_key())
        self.list = _id(await self.store.lists.create(self.bob, "friends", "", False, new_key()))
        await self.store.lists.add_member(self.bob, self.list, self.ada, new_key())
        self.root = (await self.people.status(self.carl, "the root"))["id"]
        for number in range(5):
            made = await self.people.status(self.ada, f"@u1 #Tag {number}", in_reply_to=self.root)
            self.ids.append(made["id"])
            await self.store.likes.like(self.carl, made["id"], new_key())
            await self.store.favorites.add(self.bob, made["id"], new_key())

    def reads(self, viewer: str) -> dict[str, Read]:
        timelines = self.store.timelines
        return {
            "profile": lambda page: timelines.read_profile(viewer, self.ada, page),
            "list": lambda page: timelines.read_list(viewer, self.list, page),
            "tag": lambda page: timelines.read_tag(viewer, "#TAG", page),
            "replies": lambda page: timelines.read_replies(viewer, self.root, page),
            "liked": lambda page: timelines.read_liked(viewer, self.carl, page),
        }

    def own(self) -> dict[str, Read]:
        timelines = self.store.timelines
        return {
            "home": lambda page: timelines.read_home(self.bob, page),
            "mentions": lambda page: timelines.read_mentions(self.bob, page),
            "favorites": lambda page: timelines.read_favorites(self.bob, page),
        }


@pytest.fixture
async def scene(store: Store, people: People) -> Scene:
    made = Scene(store, people)
    await made.fill()
    return made


async def test_every_timeline_is_paged_by_cursor_and_by_number(scene: Scene) -> None:
    newest, cursors = list(reversed(scene.ids)), {}
    for name, read in (scene.reads(scene.bob) | scene.own()).items():
        first = await read(PageRequest(count=2))
        second = await read(PageRequest(count=2, before=first.next))
        third = await read(PageRequest(count=2, before=second.next))
        assert [ids(first), ids(second), ids(third)] == [newest[:2], newest[2:4], newest[4:]], name
        assert (first.prev, third.next) == (None, None), name
        assert ids(await read(PageRequest(count=2, after=second.prev))) == newest[:2], name
        assert ids(await read(PageRequest(count=2, page=2))) == newest[2:4], name
        assert ids(await read(PageRequest(count=2, page=9))) == [], name
        cursors[name] = first.next
    for name, read in (scene.reads(scene.bob) | scene.own()).items():
        for other, cursor in cursors.items():
            if other != name:
                with pytest.raises(InvalidCursor):
                    await read(PageRequest(before=cursor))


async def test_cursors_of_time_and_of_importance_differ(scene: Scene) -> None:
    cursor = (await scene.store.timelines.read_home(scene.bob, PageRequest(count=1))).next
    with pytest.raises(InvalidCursor):
        await scene.store.timelines.read_home_by_importance(scene.bob, PageRequest(before=cursor))


@pytest.mark.parametrize("tag", ["", "#", "123", "two words", "a-b", "##tag", "@ada", "a\n"])
async def test_an_invalid_hashtag_is_refused(store: Store, tag: str) -> None:
    with pytest.raises(BadRequest) as refused:
        await store.timelines.read_tag("1", tag, PageRequest())
    assert refused.value.param == "tag"
