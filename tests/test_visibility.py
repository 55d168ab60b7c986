"""The whole table of visibility, written by hand, against the function and against real statuses on a real Redis."""

import json
from collections.abc import AsyncIterator, Sequence
from itertools import product

import pytest
import redis

from stream_server.errors import NotFound
from stream_server.events.visibility import Visibility, VisibilityFact, decide_visibility, visibility_table
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, PageRequest, read_page
from stream_server.store.reads import statuses
from stream_server.store.reads.sight import Sight
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE

SEEN = {"S": Visibility.VISIBLE, "q": Visibility.ON_REQUEST, ".": Visibility.HIDDEN}

VIEWERS = {
    "author": VisibilityFact.AUTHOR,
    "stranger": VisibilityFact.NONE,
    "follower": VisibilityFact.FOLLOWER,
    "muting": VisibilityFact.MUTED,
    "muting follower": VisibilityFact.FOLLOWER | VisibilityFact.MUTED,
    "blocking": VisibilityFact.BLOCKED,
    "blocked": VisibilityFact.BLOCKED,
    "blocked follower": VisibilityFact.BLOCKED | VisibilityFact.FOLLOWER,
    "blocked and muting": VisibilityFact.BLOCKED | VisibilityFact.MUTED,
}
"""The columns: who looks."""

PLACES = {
    "open": VisibilityFact.NONE,
    "open group, outside": VisibilityFact.NONE,
    "open group, inside": VisibilityFact.GROUP_MEMBER,
    "closed group, outside": VisibilityFact.PRIVATE_GROUP,
    "closed group, inside": VisibilityFact.PRIVATE_GROUP | VisibilityFact.GROUP_MEMBER,
    "message, outside": VisibilityFact.DIRECT_MESSAGE,
    "message, inside": VisibilityFact.DIRECT_MESSAGE | VisibilityFact.PARTICIPANT,
}
"""Where it was written, and whether the viewer is in there."""

AUTHORS = {"public": VisibilityFact.NONE, "protected": VisibilityFact.PROTECTED}

# The columns are VIEWERS, in their order: S shown, q seen when asked for, . hidden.
BY_HAND = """
public    | open                  | S S S q q . . . .
protected | open                  | S . S . q . . . .
public    | open group, outside   | S S S q q . . . .
protected | open group, outside   | S . S . q . . . .
public    | open group, inside    | S S S q q . . . .
protected | open group, inside    | S S S q q . . . .
public    | closed group, outside | S . . . . . . . .
protected | closed group, outside | S . . . . . . . .
public    | closed group, inside  | S S S q q . . . .
protected | closed group, inside  | S S S q q . . . .
public    | message, outside      | S . . . . . . . .
protected | message, outside      | S . . . . . . . .
public    | message, inside       | S S S q q . . . .
protected | message, inside       | S S S q q . . . .
"""
"""Of an author in good standing; what a suspended one wrote is hidden from all of them, the author too."""

Row = tuple[str, str, str, Visibility]


def rows() -> list[Row]:
    found = []
    for line in BY_HAND.strip().splitlines():
        author, place, marks = (part.strip() for part in line.split("|"))
        for viewer, mark in zip(VIEWERS, marks.split(" "), strict=True):
            found.append((author, place, viewer, SEEN[mark]))
    return found


def test_the_table_is_whole() -> None:
    """The table has each author in each place once, with every viewer."""
    named = [(author, place, viewer) for author, place, viewer, _ in rows()]
    assert sorted(named) == sorted(product(AUTHORS, PLACES, VIEWERS))


@pytest.mark.parametrize(("author", "place", "viewer", "seen"), rows())
def test_the_function_agrees_with_the_table(author: str, place: str, viewer: str, seen: Visibility) -> None:
    """The function also shows nothing of a suspended author."""
    facts = AUTHORS[author] | PLACES[place] | VIEWERS[viewer]
    assert decide_visibility(facts) is seen
    assert decide_visibility(facts | VisibilityFact.SUSPENDED) is Visibility.HIDDEN


def test_no_set_of_facts_is_left_out() -> None:
    """Scripts may look up any of the 1,024 combinations. An additional fact against a viewer never shows more."""
    answers = visibility_table()
    assert len(answers) == 1024
    for bits, digit in enumerate(answers):
        facts = VisibilityFact(bits)
        assert int(digit) == decide_visibility(facts)
        for against in (
            VisibilityFact.SUSPENDED,
            VisibilityFact.BLOCKED,
            VisibilityFact.MUTED,
            VisibilityFact.PROTECTED,
            VisibilityFact.PRIVATE_GROUP,
            VisibilityFact.DIRECT_MESSAGE,
        ):
            assert decide_visibility(facts | against) <= decide_visibility(facts)
        for for_ in (
            VisibilityFact.AUTHOR,
            VisibilityFact.FOLLOWER,
            VisibilityFact.GROUP_MEMBER,
            VisibilityFact.PARTICIPANT,
        ):
            assert decide_visibility(facts | for_) >= decide_visibility(facts)


def test_following_matters_for_protected_authors_only() -> None:
    """Scripts read whether the viewer follows an author only if the author is protected."""
    table = visibility_table()
    for facts in range(len(table)):
        if VisibilityFact.PROTECTED not in VisibilityFact(facts):
            assert table[facts] == table[facts | VisibilityFact.FOLLOWER]


class World:
    """An author and a user for each kind of viewer, with their relations in Redis."""

    def __init__(self, store: Store, raw: "redis.Redis") -> None:
        self.store = store
        self.raw = raw
        self.people = People(store)
        self.ids: dict[str, str] = {}

    async def settle(self) -> None:
        """Create the users and their relations to the author, as their names say."""
        for i, viewer in enumerate(VIEWERS):
            self.ids[viewer] = await self.people.user(f"u{i}")
        author = self.ids["author"]
        for viewer, uid in self.ids.items():
            if "follower" in viewer:
                self._tie("following", "followers", uid, author)
            if "blocked" in viewer:
                self._tie("blocks", "blockers", author, uid)
            if "blocking" in viewer:
                self._tie("blocks", "blockers", uid, author)
            if "muting" in viewer:
                self.raw.zadd(keys.key_for("mutes", uid), {author: 1})

    def _tie(self, there: str, back: str, source: str, target: str) -> None:
        self.raw.zadd(keys.key_for(there, source), {target: 1})
        self.raw.zadd(keys.key_for(back, target), {source: 1})

    def group(self, gid: str, kind: str, members: list[str]) -> str:
        self.raw.hset(keys.key_for("group", gid), mapping={"id": gid, "uid": self.ids["author"], "kind": kind})
        self.raw.zadd(keys.key_for("joined", gid), {self.ids[member]: 1 for member in members})
        return gid

    async def status(self, place: str) -> tuple[str, str]:
        author = self.ids["author"]
        members = ["author"] if place.endswith("outside") else list(VIEWERS)
        group = None
        if place != "open":
            kind = "private" if place.startswith("closed") else "public"
            group = self.group(str(100 + list(PLACES).index(place)), kind, members)
        made = await self.store.statuses.create(
            author, StatusDraft(message="hello", group=group), IdempotencyKey.generate()
        )
        listed = keys.key_for("profile", author) if group is None else keys.key_for("grouped", group)
        return str(json.loads(made)["id"]), listed

    async def got(self, viewer: str, status: str) -> bool:
        """Whether the viewer can read the status by id, alone and among several."""
        several = await self.store.statuses.get_many(self.ids[viewer], ["1", status])
        try:
            alone = await self.store.statuses.get(self.ids[viewer], status)
        except NotFound:
            assert several == []
            return False
        assert several == [alone]
        return True

    async def listed(self, viewer: str, key: str, least: Visibility) -> list[str]:
        """Return the ids that a timeline shows to the viewer."""
        sight = Sight(self.store._redis, self.ids[viewer])

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            return await statuses.show(sight, [member for member, _ in members], least)

        page = await read_page(self.store._redis, key, PageRequest(), show)
        return [json.loads(item)["id"] for item in page.items]


@pytest.fixture
async def world(redis_url: str, redis_server: RedisProcess) -> AsyncIterator[World]:
    store, raw = Store(redis_url, timeout_seconds=PATIENCE), redis_server.client()
    await store.open()
    made = World(store, raw)
    await made.settle()
    yield made
    raw.close()
    await store.close()


WRITTEN = [(author, place) for author, place in product(AUTHORS, PLACES) if not place.startswith("message")]


@pytest.mark.parametrize(("author", "place"), WRITTEN)
async def test_reads_agree_with_the_table(world: World, author: str, place: str) -> None:
    """Each viewer reads a status by id and on both kinds of timelines. Then the author is suspended."""
    uid = world.ids["author"]
    if author == "protected":
        world.raw.hset(keys.key_for("user", uid), "protected", "1")
    status, key = await world.status(place)
    seen = {viewer: much for of, where, viewer, much in rows() if (of, where) == (author, place)}
    for viewer, much in seen.items():
        assert await world.got(viewer, status) is (much >= Visibility.ON_REQUEST), viewer
        for least in (Visibility.ON_REQUEST, Visibility.VISIBLE):
            assert await world.listed(viewer, key, least) == ([status] if much >= least else []), viewer
    world.raw.hset(keys.key_for("user", uid), "suspended", "1")
    for viewer in VIEWERS:
        assert not await world.got(viewer, status), viewer
        assert await world.listed(viewer, key, Visibility.ON_REQUEST) == [], viewer
