"""Each timeline: what stands in it, in which order, for whom."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from stream_server.errors import BadRequest, InvalidCursor, NotFound
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People
from tests.stream_server.store.queue import fresh

Read = Callable[[PageRequest], Awaitable[Page]]


def _ids(page: Page) -> list[str]:
    return [json.loads(item)["id"] for item in page.items]


def _id(made: bytes) -> str:
    return str(json.loads(made)["id"])


class Place:
    """Ada, who wrote, whom Bob follows, and all the timelines in which it is."""

    def __init__(self, store: Store, people: People) -> None:
        self.store, self.people = store, people
        self.ids: list[str] = []

    async def fill(self) -> None:
        """Five statuses that each are in every timeline, and one of another author in none of them."""
        self.ada, self.bob, self.carl = await self.people.users(3)
        await self.store.follows.follow(self.bob, self.ada, fresh())
        self.list = _id(await self.store.lists.create(self.bob, "friends", "", False, fresh()))
        await self.store.lists.add_member(self.bob, self.list, self.ada, fresh())
        self.root = (await self.people.status(self.carl, "the root"))["id"]
        for number in range(5):
            made = await self.people.status(self.ada, f"@u1 #Tag {number}", in_reply_to=self.root)
            self.ids.append(made["id"])
            await self.store.likes.like(self.carl, made["id"], fresh())
            await self.store.favorites.add(self.bob, made["id"], fresh())

    def reads(self, viewer: str) -> dict[str, Read]:
        """How the viewer reads each of them."""
        timelines = self.store.timelines
        return {
            "profile": lambda piece: timelines.read_profile(viewer, self.ada, piece),
            "list": lambda piece: timelines.read_list(viewer, self.list, piece),
            "tag": lambda piece: timelines.read_tag(viewer, "#TAG", piece),
            "replies": lambda piece: timelines.read_replies(viewer, self.root, piece),
            "liked": lambda piece: timelines.read_liked(viewer, self.carl, piece),
        }

    def own(self) -> dict[str, Read]:
        """How Bob reads what is his alone."""
        timelines = self.store.timelines
        return {
            "home": lambda piece: timelines.read_home(self.bob, piece),
            "mentions": lambda piece: timelines.read_mentions(self.bob, piece),
            "favorites": lambda piece: timelines.read_favorites(self.bob, piece),
        }


@pytest.fixture
async def place(store: Store, people: People) -> Place:
    """The place, filled."""
    made = Place(store, people)
    await made.fill()
    return made


async def test_every_timeline_is_paged_by_cursor_and_by_number(place: Place) -> None:
    """Forwards, backwards and by page, newest first, ends told by null; one cursor is good for one list."""
    newest, cursors = list(reversed(place.ids)), {}
    for name, read in (place.reads(place.bob) | place.own()).items():
        first = await read(PageRequest(count=2))
        second = await read(PageRequest(count=2, before=first.next))
        third = await read(PageRequest(count=2, before=second.next))
        assert [_ids(first), _ids(second), _ids(third)] == [newest[:2], newest[2:4], newest[4:]], name
        assert (first.prev, third.next) == (None, None), name
        assert _ids(await read(PageRequest(count=2, after=second.prev))) == newest[:2], name
        assert _ids(await read(PageRequest(count=2, page=2))) == newest[2:4], name
        assert _ids(await read(PageRequest(count=2, page=9))) == [], name
        cursors[name] = first.next
    for name, read in (place.reads(place.bob) | place.own()).items():
        for other, cursor in cursors.items():
            if other != name:
                with pytest.raises(InvalidCursor):
                    await read(PageRequest(before=cursor))


async def test_the_order_of_importance_has_cursors_of_its_own(place: Place) -> None:
    """One of the home in the order of time is refused."""
    cursor = (await place.store.timelines.read_home(place.bob, PageRequest(count=1))).next
    with pytest.raises(InvalidCursor):
        await place.store.timelines.read_home_by_importance(place.bob, PageRequest(before=cursor))


async def test_a_conversation_is_oldest_first_and_survives_its_root(place: Place) -> None:
    """Root, then replies; of a root that is gone the replies are left, read by any of them."""
    store = place.store
    page = await store.timelines.read_conversation(place.bob, place.ids[2], PageRequest(count=4))
    assert _ids(page) == [place.root, *place.ids[:3]]
    rest = await store.timelines.read_conversation(place.bob, place.ids[2], PageRequest(count=4, before=page.next))
    assert _ids(rest) == place.ids[3:]
    await store.statuses.delete(place.carl, place.root, fresh())
    assert _ids(await store.timelines.read_conversation(place.bob, place.ids[0], PageRequest())) == place.ids
    for read in (store.timelines.read_conversation, store.timelines.read_replies, store.timelines.read_reposts):
        with pytest.raises(NotFound):
            await read(place.bob, place.root, PageRequest())


async def test_reposts_and_quotes_of_a_status(place: Place) -> None:
    """Newest first, those with words and those without."""
    bare = await place.people.status(place.bob, "", origin=place.ids[0])
    quote = await place.people.status(place.carl, "look", origin=place.ids[0])
    page = await place.store.timelines.read_reposts(place.ada, place.ids[0], PageRequest())
    assert _ids(page) == [quote["id"], bare["id"]]


async def test_who_is_muted_comes_only_where_asked_for(place: Place) -> None:
    """Not in home, list, tag, replies or mentions; on the own profile, among likes and favorites still."""
    await place.store.mutes.mute(place.bob, place.ada, fresh())
    found = {
        name: len(_ids(await read(PageRequest()))) for name, read in (place.reads(place.bob) | place.own()).items()
    }
    quiet = {"profile": 5, "liked": 5, "favorites": 5}
    assert found == {"list": 0, "tag": 0, "replies": 0, "home": 0, "mentions": 0} | quiet


async def test_a_protected_author_is_in_no_timeline_of_a_stranger(place: Place, raw: Any) -> None:
    """Followers read on; for others there is nothing, wherever it stands."""
    await place.store.users.update(place.ada, {"protected": True}, fresh())
    stranger = await place.people.user("stranger")
    assert {name: _ids(await read(PageRequest())) for name, read in place.reads(stranger).items()} == {
        "profile": [], "list": [], "tag": [], "replies": [], "liked": []
    }  # fmt: skip
    assert {len(_ids(await read(PageRequest()))) for read in place.reads(place.bob).values()} == {5}


async def test_what_a_protected_user_likes_is_for_followers(place: Place) -> None:
    """The likes of a protected user are told to approved followers only, and so is the list of them."""
    await place.store.users.update(place.carl, {"protected": True}, fresh())
    stranger = await place.people.user("stranger")
    assert _ids(await place.store.timelines.read_liked(stranger, place.carl, PageRequest())) == []
    assert len(_ids(await place.store.timelines.read_liked(place.carl, place.carl, PageRequest()))) == 5


async def test_who_blocks_is_not_there(place: Place) -> None:
    """The profile is not found, and nothing of the author is anywhere."""
    await place.store.blocks.block(place.ada, place.bob, fresh())
    with pytest.raises(NotFound):
        await place.store.timelines.read_profile(place.bob, place.ada, PageRequest())
    reads = place.reads(place.bob) | place.own()
    del reads["profile"]
    assert {name: _ids(await read(PageRequest())) for name, read in reads.items()} == {key: [] for key in reads}


async def test_a_private_list_is_its_owners_alone(place: Place) -> None:
    """For others it is not there, whether it has statuses or not."""
    made = await place.store.lists.create(place.bob, "secret", "", True, fresh())
    await place.store.lists.add_member(place.bob, _id(made), place.ada, fresh())
    assert len(_ids(await place.store.timelines.read_list(place.bob, _id(made), PageRequest()))) == 5
    for viewer in (place.ada, place.carl):
        with pytest.raises(NotFound):
            await place.store.timelines.read_list(viewer, _id(made), PageRequest())
    with pytest.raises(NotFound):
        await place.store.timelines.read_list(place.bob, "1", PageRequest())


async def test_a_private_group_is_read_by_members_only(place: Place) -> None:
    """And the members read it newest first."""
    group = _id(await place.store.groups.create(place.ada, "club", "private", "", fresh()))
    ids = [(await place.people.status(place.ada, f"{i}", group=group))["id"] for i in range(3)]
    assert _ids(await place.store.timelines.read_group(place.ada, group, PageRequest())) == ids[::-1]
    with pytest.raises(NotFound):
        await place.store.timelines.read_group(place.bob, group, PageRequest())
    with pytest.raises(NotFound):
        await place.store.timelines.read_group(place.bob, "1", PageRequest())


@pytest.mark.parametrize("tag", ["", "#", "123", "two words", "a-b", "##tag", "@ada", "a\n"])
async def test_what_is_no_hashtag_is_refused(store: Store, tag: str) -> None:
    """Rather than answered by an empty page."""
    with pytest.raises(BadRequest) as refused:
        await store.timelines.read_tag("1", tag, PageRequest())
    assert refused.value.param == "tag"


@pytest.mark.parametrize("written", ["#Straße", "#STRASSE", "straße"])
async def test_tags_are_found_however_they_are_written(store: Store, people: People, written: str) -> None:
    """Folded as filters fold them."""
    ada = await people.user("ada")
    status = await people.status(ada, "on the #Straße")
    assert _ids(await store.timelines.read_tag(ada, written, PageRequest())) == [status["id"]]


async def test_a_home_of_many_unseen_is_read_to_its_end(store: Store, people: People) -> None:
    """A hundred statuses of somebody muted in front: the page behind them is found, and full."""
    reader, ada, bob = await people.users(3)
    for each in (ada, bob):
        await store.follows.follow(reader, each, fresh())
    seen = [(await people.status(ada, f"{i}"))["id"] for i in range(3)]
    for number in range(100):
        await people.status(bob, f"{number}")
    await store.mutes.mute(reader, bob, fresh())
    page = await store.timelines.read_home(reader, PageRequest(count=2))
    assert _ids(page) == seen[:0:-1]
    assert _ids(await store.timelines.read_home(reader, PageRequest(count=2, page=2))) == seen[:1]
    assert _ids(await store.timelines.read_home(reader, PageRequest(count=2, before=page.next))) == seen[:1]
