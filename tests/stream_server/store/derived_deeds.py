"""The same deeds on any store, and a picture of the derived data that came of them, without ids."""

import json
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from stream_server.store.pagination import Page, PageRequest
from stream_server.store.social.open_streams import OpenStream, StreamQuestion
from stream_server.store.social.statuses import StatusDraft
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import items_of, read_pages

USERS = 12
"""So many that each shard has some of their homes."""

LEASED = 1_000_000
"""Time in ms until which the process with the streams is alive."""


class Deeds:
    """Twelve users who follow each other, post, delete, read lists, open streams and use limits."""

    def __init__(self, store: Store) -> None:
        self.store, self.people = store, People(store)
        self.uids: list[str] = []
        self.list_id = ""
        self.counts: list[int] = []
        self.answers: list[bytes] = []

    async def do(self) -> None:
        """Do all deeds once."""
        self.uids = await self.people.users(USERS)
        for reader, author in ((reader, author) for reader in range(USERS) for author in range(USERS)):
            if reader != author and (reader + 2 * author) % 3:
                await self.store.follows.follow(self.uids[reader], self.uids[author], new_key())
        await self._make_list()
        posted = [(await self.people.status(uid, f"{at} of u{at}"))["id"] for at, uid in enumerate(self.uids * 2)]
        await self.store.statuses.delete(self.uids[3], posted[3], new_key())
        for reader, author in ((0, 1), (2, 4)):
            await self.store.follows.unfollow(self.uids[reader], self.uids[author], new_key())
        await self.store.follows.follow(self.uids[1], self.uids[5], new_key())  # after its posts: they are merged
        await self._ingest()
        await self.open_streams()
        await self.use_limits()

    async def _make_list(self) -> None:
        made = await self.store.lists.create(self.uids[0], "friends", "", False, new_key())
        self.list_id = json.loads(made)["id"]
        for member in self.uids[5:9]:
            await self.store.lists.add_member(self.uids[0], self.list_id, member, new_key())

    async def _ingest(self) -> None:
        """Bring a user and posts from another site. Their fan-outs share their round trips."""
        ingest = self.store.ingest
        lines = [ingest.user("guest", "", {}), ingest.user("reader", "", {})]
        lines.append(ingest.change_relation("follow", "reader", "guest", None))
        drafts = [StatusDraft(message=f"{at} of the guest") for at in range(3)]
        lines += [ingest.post(f"p{at}", "guest", draft, None) for at, draft in enumerate(drafts)]
        results, follow_up = await ingest.write(lines)
        await follow_up
        self.uids += [results[at].id for at in range(2)]  # type: ignore[union-attr]  # both are new

    async def open_streams(self) -> None:
        """Let one process hold a stream of each user, and another process answer a question."""
        streams = self.store.open_streams
        await streams.renew_lease("alive", LEASED - 35_000)
        for name in ("alive", "dead"):
            await streams.record([OpenStream(uid, f"{name}-{at}", name, at) for at, uid in enumerate(self.uids)], [])
        question = StreamQuestion(self.uids[0], f"{self.uids[0]}}}alive-1")
        await streams.answer(question, [b"{}"])
        self.answers = await streams.read_answers(question)

    async def use_limits(self) -> None:
        """Count three uses of each user."""
        counters = self.store.rate_counters
        for uid in self.uids * 3:
            self.counts.append((await counters.add("posts_per_minute", uid, 1, 60)).value)

    async def picture(self) -> dict[str, Any]:
        """What readers see of the derived data."""
        timelines = self.store.timelines
        homes = [await _messages(partial(timelines.read_home, uid)) for uid in self.uids]
        profiles = [await _messages(partial(timelines.read_profile, uid, uid)) for uid in self.uids]
        listed = await _messages(partial(timelines.read_list, self.uids[0], self.list_id))
        streams = [[one.connection for one in await self._streams(uid)] for uid in self.uids]
        return {
            "homes": homes, "list": listed, "profiles": profiles, "streams": streams, "counts": self.counts,
            "answers": self.answers,
        }  # fmt: skip

    async def _streams(self, uid: str) -> Iterable[OpenStream]:
        return await self.store.open_streams.list_streams(uid, LEASED)


async def _messages(read: Callable[[PageRequest], Awaitable[Page]]) -> list[str]:
    pages = await read_pages(read, 5)
    return [json.loads(item)["message"] for page in pages for item in items_of(page)]
