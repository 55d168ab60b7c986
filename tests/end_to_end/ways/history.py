"""Random deeds of a few users, made by requests, and the log's entries that a plain model expects of each."""

import random
from copy import deepcopy
from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.people import Person, create_people, word
from tests.stream_server.hub.visibility.model import (
    HistoryEntry,
    State,
    reaction_audience,
    removal_audience,
    visibility,
)

KINDS = "post,edit,delete,follow,unfollow,like,comment,uncomment,protect,unprotect"
"""The kinds of events that are compared."""


class History:
    """The users, the entries so far in log order, and the state after them.

    ``steps`` has, for each entry, the numbers of the first and the last entry of its request. ``states`` has the state
    after each request, by the number of its last entry. ``word`` is in the text of many posts, and
    ``room`` in their ``meta``. ``herald`` is a user whom all others follow, who is in no model, and whose posts tell
    how far a reader has come.
    """

    def __init__(self, api: Api, seed: int, herald: Person, people: list[Person]) -> None:
        self.api, self.seed, self.herald = api, seed, herald
        self.source = random.Random(seed)
        self.people = {person.uid: person for person in people}
        self.group = ""
        self.word = word()
        self.room = int(herald.uid)
        self.state = State()
        self.requests: set[tuple[str, str]] = set()
        self.entries: list[HistoryEntry] = []
        self.states: dict[int, State] = {}
        self.steps: list[tuple[int, int]] = []
        self.posts: list[HistoryEntry] = []
        self.comments: list[HistoryEntry] = []

    @classmethod
    async def begin(cls, api: Api, seed: int, count: int) -> "History":
        """Create ``count`` users, who all follow the herald."""
        herald, *people = await create_people(api, 1 + count)
        made = cls(api, seed, herald, people)
        for person in people:
            await person.follow(herald)
        owner = people[0]
        made.group = (await owner.request("POST", "groups", name="g", kind="public"))["id"]
        made.state.groups.add((owner.uid, made.group))
        return made

    @property
    def readers(self) -> list[str]:
        """The users who have streams."""
        return [uid for uid in self.people if uid != self.rogue]

    @property
    def rogue(self) -> str:
        """The user who may be suspended."""
        return list(self.people)[-1]

    async def mark(self) -> str:
        """Let the herald post. Returns the id of the post, which all streams and polls get."""
        return await self.herald.post(f"{self.word} so far", meta={"room": self.room})

    async def step(self) -> None:
        """Do one random thing that is possible now."""
        acts = [
            (26, self.post), (14, self.edit), (10, self.delete), (16, self.follow), (6, self.approve), (7, self.block),
            (6, self.mute),
            (10, self.protect), (3, self.suspend), (5, self.like), (8, self.comment), (4, self.uncomment),
            (4, self.change_membership),
        ]  # fmt: skip
        before = len(self.entries)
        while len(self.entries) == before:
            await self.source.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()
        last = len(self.entries)
        self.steps += [(before + 1, last)] * (last - before)
        self.states[last] = deepcopy(self.state)

    def record(self, kind: str, audience: str, author: str, shown: list[str], about: str, **more: Any) -> HistoryEntry:
        """Add an entry with the state before it."""
        n = len(self.entries) + 1
        entry = HistoryEntry(n, kind, audience, author, shown, about, deepcopy(self.state), **more)
        self.entries.append(entry)
        return entry

    def actor(self) -> str:
        return self.source.choice([uid for uid in self.people if uid not in self.state.suspended])

    def pair(self) -> list[str]:
        """Two users who are not suspended and do not block each other; none if chance finds no such pair."""
        one, other = self.source.sample(list(self.people), 2)
        blocked = {(one, other), (other, one)} & self.state.blocks
        return [] if blocked or {one, other} & self.state.suspended else [one, other]

    def readable(self, uid: str, entries: list[HistoryEntry]) -> list[HistoryEntry]:
        """The last of these posts that a user may ask for. A mute does not hide them from that."""
        now = deepcopy(self.state)
        now.mutes.clear()
        posts = [post for post in entries[-20:] if post.deleted_n is None]
        return [post for post in posts if visibility(uid, post, now, own=True) == "whole"]

    # Posts.

    async def post(self) -> None:
        """Post, answer, quote or repost, or post in the group."""
        uid = self.actor()
        text = self.source.choice([self.word, f"{self.word} indeed", "something else"]) + f" {len(self.entries)}"
        audience = f"followers:{uid}" if uid in self.state.protected else "public"
        seen = [post for post in self.readable(uid, self.posts) if not post.audience.startswith("group:")]
        plain = [post for post in seen if post.original is None]
        fitting = [post for post in plain if post.author == uid or self._may_be_reposted(post)]
        chance = self.source.random()
        if chance < 0.15 and (uid, self.group) in self.state.groups:
            audience = f"group:{self.group}"
            await self._made(uid, text, audience, group=self.group)
        elif chance < 0.3 and plain:
            answered = self.source.choice(plain)
            await self._made(uid, text, audience, others=(answered.author,), in_reply_to=answered.about)
        elif chance < 0.6 and fitting:
            await self._repost(uid, text, audience, self.source.choice(fitting))
        else:
            await self._made(uid, text, audience)

    def _may_be_reposted(self, post: HistoryEntry) -> bool:
        return post.audience == "public" and post.author not in self.state.protected

    async def _repost(self, uid: str, text: str, audience: str, original: HistoryEntry) -> None:
        """Repost, with words or without."""
        if self.source.random() < 0.5:
            made = await self._made(uid, "", audience, others=(original.author,), origin=original.about)
            shown = original.version_at(made.n)
            made.text, made.room = shown.text, shown.room
        else:
            made = await self._made(uid, text, audience, origin=original.about)
            made.quoted = original.author
        made.shown.append(original.author)
        made.original = original.n

    async def _made(
        self, uid: str, text: str, audience: str, others: tuple[str, ...] = (), **more: Any
    ) -> HistoryEntry:  # fmt: skip
        room = self.source.choice((self.room, self.room, self.room + 1, None))
        meta = None if room is None else {"room": self.source.choice((room, str(room), [0, room]))}
        about = await self.people[uid].post(text, meta=meta, **more)
        made = self.record("post", audience, uid, [uid], about, text=text, others=others, room=room)
        self.posts.append(made)
        return made

    async def edit(self) -> None:
        """Give one of the last posts with words another text, another room, or both."""
        fitting = [post for post in self.posts[-15:] if not post.is_wordless and self._may_be_edited(post)]
        if not fitting:
            return
        post = self.source.choice(fitting)
        last = post.version_at(len(self.entries))
        text, room, changes = last.text, last.room, dict[str, Any]()
        what = self.source.random()
        if what < 0.8:
            text = self.source.choice([self.word, f"{self.word} indeed", "nothing"]) + f" {len(self.entries)} edited"
            changes["message"] = text
        if what > 0.6:
            room = self.room if last.room != self.room else self.room + 1
            changes["meta"] = {"room": room}
        await self.people[post.author].request("PATCH", f"statuses/{post.about}", **changes)
        audience = removal_audience(post, self.entries[post.n :], self.state)
        made = self.record("edit", audience, post.author, post.shown, post.about, text=text, room=room, edits=post)
        made.original, made.quoted, made.others = post.original, post.quoted, post.others
        post.later.append(made)

    def _may_be_edited(self, post: HistoryEntry) -> bool:
        """Whether the author may still write in the place of a post."""
        is_in_group = post.audience.startswith("group:")
        is_member = (post.author, self.group) in self.state.groups
        return post.author not in self.state.suspended and (is_member or not is_in_group)

    async def delete(self) -> None:
        fitting = [post for post in self.posts[-15:] if post.author not in self.state.suspended]
        if fitting:
            post = self.source.choice(fitting)
            self.posts.remove(post)
            self.comments = [said for said in self.comments if said.on_post is not post]
            await self.people[post.author].request("DELETE", f"statuses/{post.about}")
            self._record_removal("delete", post)

    def _record_removal(self, kind: str, gone: HistoryEntry) -> None:
        more = {"text": gone.text, "room": gone.room, "undoes": gone, "on_post": gone.on_post}
        audience = removal_audience(gone, self.entries[gone.n :], self.state)
        gone.deleted_n = self.record(kind, audience, gone.author, gone.shown, gone.about, **more).n
        for edit in gone.later:
            edit.deleted_n = gone.deleted_n

    # Reactions.

    def _reaction_audience(self, uid: str, post: HistoryEntry) -> str:
        if post.audience.startswith("group:"):
            return post.audience
        return reaction_audience(uid, post.author, self.state)

    def _reactable(self, uid: str) -> list[HistoryEntry]:
        posts = self.readable(uid, self.posts)
        is_member = (uid, self.group) in self.state.groups
        return [post for post in posts if is_member or not post.audience.startswith("group:")]

    async def like(self) -> None:
        uid = self.actor()
        liked = {one.about for one in self.entries if one.kind == "like" and one.author == uid}
        fitting = [post for post in self._reactable(uid) if f"{uid}>{post.about}" not in liked]
        if fitting:
            post = self.source.choice(fitting)
            await self.people[uid].request("PUT", f"users/me/likes/{post.about}")
            people = [uid, post.author]
            self.record("like", self._reaction_audience(uid, post), uid, people, f"{uid}>{post.about}", on_post=post)

    async def comment(self) -> None:
        uid = self.actor()
        fitting = self._reactable(uid)
        if fitting:
            post, text = self.source.choice(fitting), f"{self.word} well"
            answer = await self.people[uid].request("POST", f"statuses/{post.about}/comments", message=text)
            audience, people = self._reaction_audience(uid, post), [uid, post.author]
            more = {"text": text, "on_post": post}
            self.comments.append(self.record("comment", audience, uid, people, answer["id"], **more))

    async def uncomment(self) -> None:
        fitting = [said for said in self.comments[-10:] if said.author not in self.state.suspended]
        if fitting:
            said = self.source.choice(fitting)
            self.comments.remove(said)
            await self.people[said.author].request("DELETE", f"comments/{said.about}")
            self._record_removal("uncomment", said)

    # Relations.

    async def follow(self) -> None:
        """Follow, ask to follow, withdraw the question, or unfollow."""
        if not (pair := self.pair()):
            return
        (one, other), path = pair, f"users/me/following/{pair[1]}"
        known = (one, other)
        if known in self.state.follows:
            if self.source.random() < 0.6:
                await self.people[one].request("DELETE", path)
                self._end_follow(*known)
            return
        await self.people[one].request("PUT", path)
        if other in self.state.protected:
            self.requests.add(known)
        else:
            self._begin_follow(*known)

    def _begin_follow(self, one: str, other: str) -> None:
        self.requests.discard((one, other))
        self.record("follow", "public", one, [one, other], f"{one}>{other}")
        self.state.follows.add((one, other))

    def _end_follow(self, one: str, other: str) -> None:
        self.requests.discard((one, other))
        if (one, other) in self.state.follows:
            self.record("unfollow", "public", one, [one, other], f"{one}>{other}")
            self.state.follows.discard((one, other))

    async def approve(self) -> None:
        able = [pair for pair in sorted(self.requests) if not set(pair) & self.state.suspended]
        if able:
            one, other = self.source.choice(able)
            await self.people[other].request("PUT", f"users/me/requests/{one}")
            self._begin_follow(one, other)

    async def block(self) -> None:
        """Block, which ends both follows and a place in the other's group, or end a block. No stream shows it."""
        one, other = self.source.sample(list(self.people), 2)
        if {one, other} & self.state.suspended or (other, one) in self.state.blocks:
            return
        is_end = (one, other) in self.state.blocks
        await self.people[one].request("DELETE" if is_end else "PUT", f"users/me/blocks/{other}")
        if not is_end:
            self._end_follow(one, other)
            self._end_follow(other, one)
            if self.readers[0] in {one, other}:
                self._leave_group(one if other == self.readers[0] else other)
        self.state.blocks ^= {(one, other)}
        self.record("unblock" if is_end else "block", "-", one, [one], other)

    async def mute(self) -> None:
        one, other = self.source.sample(list(self.people), 2)
        if {one, other} & self.state.suspended or (other, one) in self.state.blocks:
            return
        is_end = (one, other) in self.state.mutes
        await self.people[one].request("DELETE" if is_end else "PUT", f"users/me/mutes/{other}")
        self.state.mutes ^= {(one, other)}
        self.record("unmute" if is_end else "mute", "-", one, [one], other)

    async def protect(self) -> None:
        uid = self.actor()
        begins = uid not in self.state.protected
        await self.people[uid].request("PATCH", "users/me", protected=begins)
        self.record("protect" if begins else "unprotect", "public", uid, [uid], uid)
        self.state.protected ^= {uid}

    async def suspend(self) -> None:
        """Suspend the last user, who has no streams, or end the suspension."""
        uid = self.rogue
        method = "DELETE" if uid in self.state.suspended else "PUT"
        await self.api.done(method, f"/v1/admin/suspensions/{uid}", token=mint(self.api.admin, "admin"))
        self.state.suspended ^= {uid}
        self.record("suspend" if method == "PUT" else "reinstate", "-", uid, [uid], uid)

    async def change_membership(self) -> None:
        """Join or leave the group. Its owner stays."""
        uid = self.actor()
        owner = self.readers[0]
        if uid == owner or {(uid, owner), (owner, uid)} & self.state.blocks:
            return
        is_end = (uid, self.group) in self.state.groups
        await self.people[uid].request("DELETE" if is_end else "PUT", f"groups/{self.group}/members/me")
        if is_end:
            self._leave_group(uid)
        else:
            self.state.groups.add((uid, self.group))
            self.record("group_join", "-", uid, [uid], uid)

    def _leave_group(self, uid: str) -> None:
        if (uid, self.group) in self.state.groups:
            self.state.groups.discard((uid, self.group))
            self.record("group_leave", "-", uid, [uid], uid)
