"""A world in which one user takes part in every social system, on both ends of each relation."""

import json
from collections.abc import Iterator
from typing import Any

from stream_server.store.social.reports import ReportOutcome
from stream_server.store.social.sessions import RefreshSecrets
from stream_server.store.store import Store
from tests.stream_server.store.people import PASSWORD_HASH, People, new_key

SECRET = "zyzzyva"
"""A word that stands in every text that the user writes."""


class AccountWorld:
    """``ada`` has done everything that a user can do, and others have done it to her. The others know each other too.

    Attributes:
        written: Ids of what ada wrote: posts, comments, messages and lists.
    """

    def __init__(self, store: Store, url: str) -> None:
        self.store, self.url = store, url
        self.people = People(store)
        self.written: list[str] = []
        self.posts: list[str] = []

    async def fill(self) -> None:
        """Make the users and all that is between them."""
        self.ada = await self.people.user("ada")
        self.bob, self.carl, self.dora, self.admin = await self.people.users(4)
        await self._relate()
        await self._post()
        await self._react()
        await self._gather()
        await self._talk()
        await self._rest()

    async def delete(self) -> None:
        await self.store.accounts.delete_own(self.ada, PASSWORD_HASH, new_key())

    async def status(self, uid: str, message: str = "hello", **more: Any) -> str:
        made = str((await self.people.status(uid, message, **more))["id"])
        if uid == self.ada:
            self.written.append(made)
            self.posts.append(made)
        return made

    async def _relate(self) -> None:
        follows, store = self.store.follows, self.store
        await store.users.update(self.dora, {"protected": True}, new_key())
        for source, target in (
            (self.ada, self.bob),
            (self.bob, self.ada),
            (self.carl, self.ada),
            (self.carl, self.bob),
        ):
            await follows.follow(source, target, new_key())
        await follows.follow(self.ada, self.dora, new_key())  # stays a request
        await store.users.update(self.ada, {"protected": True, "bio": SECRET}, new_key())
        await follows.follow(self.admin, self.ada, new_key())
        await store.follow_requests.approve(self.ada, self.admin, new_key())
        await follows.follow(self.dora, self.ada, new_key())  # stays a request
        self.hidden = await self.status(self.ada, f"for followers {SECRET}")
        await store.users.update(self.ada, {"protected": False}, new_key())
        await store.mutes.mute(self.ada, self.carl, new_key())
        await store.mutes.mute(self.carl, self.ada, new_key())
        (self.blocked,) = [made.id for made in await store.users.create_many([("eve", "Eve")], new_key())]
        await store.blocks.block(self.ada, self.blocked, new_key())
        (self.blocker,) = [made.id for made in await store.users.create_many([("finn", "Finn")], new_key())]
        await store.blocks.block(self.blocker, self.ada, new_key())

    async def _post(self) -> None:
        self.post = await self.status(self.ada, f"{SECRET} @u0 #tea")
        self.other = await self.status(self.bob, "by bob #tea")
        await self.status(self.ada, f"yes {SECRET}", in_reply_to=self.other)
        await self.status(self.ada, f"look {SECRET}", origin=self.other)
        await self.status(self.ada, "", origin=self.other)
        self.answer = await self.status(self.bob, "an answer", in_reply_to=self.post)
        self.quote = await self.status(self.bob, "a quote", origin=self.post)
        self.repost = await self.status(self.carl, "", origin=self.post)
        self.mention = await self.status(self.bob, "hello @ada")

    async def _react(self) -> None:
        store = self.store
        for uid, status in ((self.ada, self.other), (self.bob, self.post), (self.bob, self.other)):
            if (uid, status) != (self.bob, self.other):
                await store.likes.like(uid, status, new_key())
            await store.favorites.add(uid, status, new_key())
            made = await store.comments.create(
                uid, status, f"{SECRET if uid == self.ada else 'so'} @u1 @ada", new_key()
            )
            if uid == self.ada:
                self.comment = str(json.loads(made)["id"])
                self.written.append(self.comment)

    async def _gather(self) -> None:
        lists, groups = self.store.lists, self.store.groups
        own = _id(await lists.create(self.ada, SECRET, "", False, new_key()))
        await lists.add_member(self.ada, own, self.bob, new_key())
        self.list = _id(await lists.create(self.bob, "friends", "", False, new_key()))
        await lists.add_member(self.bob, self.list, self.ada, new_key())
        await lists.add_member(self.bob, self.list, self.carl, new_key())
        self.written.append(own)
        self.inherited = _id(await groups.create(self.ada, "club", "private", "", new_key()))
        await groups.add_member(self.ada, self.inherited, self.bob, new_key())
        await groups.add_member(self.ada, self.inherited, self.carl, new_key())
        self.alone = _id(await groups.create(self.ada, "alone", "open", "", new_key()))
        self.joined = _id(await groups.create(self.bob, "readers", "open", "", new_key()))
        self.left = _id(await groups.create(self.bob, "leavers", "open", "", new_key()))
        for group in (self.joined, self.left):
            await groups.join(self.ada, group, new_key())
        for group in (self.inherited, self.alone, self.joined, self.left):
            await self.status(self.ada, f"in a group {SECRET}", group=group)
        await groups.leave(self.ada, self.left, new_key())

    async def _talk(self) -> None:
        talks = self.store.talks
        for others in ([self.bob], [self.bob, self.carl], [self.admin]):
            talk = json.loads((await talks.open(self.ada, others, None, new_key()))[0])["id"]
            self.written.append(str(json.loads(await talks.send_message(self.ada, talk, SECRET, new_key()))["id"]))
            if others == [self.bob]:
                self.talk = talk
                await talks.send_message(self.bob, talk, "an answer", new_key())
        await talks.open(self.carl, [self.ada], None, new_key())
        await self._ask_strangers()

    async def _ask_strangers(self) -> None:
        """Open talks with users, and add users to groups, who do not follow: with consent they are asked before."""
        groups = self.store.groups
        (stranger,) = [made.id for made in await self.store.users.create_many([("gus", "Gus")], new_key())]
        await self.store.talks.open(self.ada, [stranger], None, new_key())
        for owner, other in ((self.ada, stranger), (self.carl, self.ada)):
            group = _id(await groups.create(owner, "closed", "private", "", new_key()))
            await groups.add_member(owner, group, other, new_key())

    async def _rest(self) -> None:
        store = self.store
        added = await store.rules.add(self.ada, [(f"from:ada {SECRET}", ""), (SECRET, "")], new_key())
        assert added[0].saved is not None
        await store.rules.remove(self.ada, [added[0].saved.id], new_key())
        await store.sessions.start(self.ada, "session", RefreshSecrets("a" * 64, "b" * 64), 3600, "agent", new_key())
        await store.reports.create(self.ada, "spam", self.carl, None, SECRET, new_key())
        report, _ = await store.reports.create(self.carl, "spam", None, self.post, "", new_key())
        await store.reports.decide(self.admin, _id(report), ReportOutcome.DISMISSED, "", new_key())
        self.report = _id((await store.reports.create(self.bob, "abuse", self.ada, None, "", new_key()))[0])


def _id(made: bytes) -> str:
    return str(json.loads(made)["id"])


def contents(raw: Any) -> Iterator[tuple[str, str]]:
    """Every key of a Redis with all that it holds, as text."""
    for name in raw.scan_iter(count=1000):
        kind = raw.type(name)
        read = {
            b"string": raw.get, b"hash": raw.hgetall, b"set": raw.smembers, b"list": lambda key: raw.lrange(key, 0, -1),
            b"zset": lambda key: raw.zrange(key, 0, -1, withscores=True), b"stream": raw.xrange,
        }[kind]  # fmt: skip
        yield name.decode(), f"{name.decode()} {read(name)!r}"
