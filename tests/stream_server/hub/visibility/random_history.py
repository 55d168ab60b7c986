"""Random relations, posts and other events, and streams that are compared with a plain model."""

import random
from copy import deepcopy
from functools import partial
from itertools import zip_longest
from typing import Any

from stream_server.events.entry import Entry
from tests.stream_server.hub.visibility.model import (
    PROTECTIONS,
    HistoryEntry,
    State,
    StreamModel,
    compare,
    held_texts,
    matches_anything,
    matches_followed,
    matches_home,
    matches_people,
    matches_word,
    reaction_audience,
    received_events,
    removal_audience,
)
from tests.stream_server.hub.world import Graph, Socket, World
from tests.waiting import eventually

USERS = [str(number) for number in range(1, 7)]
GROUPS = ["91", "92"]
RELATIONS = {"follow": "follows", "block": "blocks", "mute": "mutes"}


class RandomHistory:
    """A hub, the history of its entries, and its streams, each with its ``model``."""

    def __init__(self, world: World, seed: int, model: type[StreamModel] = StreamModel) -> None:
        self.model = model
        self.world = world
        self.source = random.Random(seed)
        self.state = State()
        self.since: dict[tuple[str, str, str], int] = {}
        self.ended: dict[tuple[str, str, int], int] = {}
        self.history: list[HistoryEntry] = []
        self.posts: list[tuple[Entry, HistoryEntry]] = []
        self.comments: list[tuple[Entry, HistoryEntry]] = []
        self.listeners: list[tuple[StreamModel, Socket, Any]] = []

    # What happens.

    def step(self) -> None:
        """Do one random thing."""
        acts = [
            (30, self.post), (14, self.edit), (12, self.delete), (16, self.relate), (4, self.protect),
            (2, self.suspend), (6, self.like), (8, self.comment), (4, self.uncomment), (4, self.group),
            (3, self.message), (3, self.notify),
            (2, self.update),
        ]  # fmt: skip
        self.source.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()

    def record(self, entry: Entry, author: str, shown: list[str], **more: Any) -> HistoryEntry:
        """Keep a published entry with the state before it."""
        about = str(more.pop("about", entry.position.cursor))
        n, state = entry.position.n, deepcopy(self.state)
        happening = HistoryEntry(n, entry.kind, entry.audience, author, shown, about, state, **more)
        self.history.append(happening)
        return happening

    def actor(self) -> str:
        return self.source.choice([uid for uid in USERS if uid not in self.state.suspended])

    def post(self) -> None:
        """Publish a post, a quote or a repost, perhaps in a group."""
        author, original = self.actor(), None
        audience = f"followers:{author}" if author in self.state.protected else "public"
        text = self.source.choice(["red", "green", "red green"]) + f" {len(self.history)}"
        fitting = [pair for pair in self.posts if pair[1].audience == "public" and not pair[1].original]
        fitting = [pair for pair in fitting if pair[1].author not in self.state.protected | self.state.suspended]
        mine = [gid for gid in GROUPS if (author, gid) in self.state.groups]
        if mine and self.source.random() < 0.3:
            audience = f"group:{self.source.choice(mine)}"
        elif fitting and self.source.random() < 0.4:
            original = self.source.choice(fitting[-20:])
        wordless = original is not None and self.source.random() < 0.5
        entry = self.world.post("" if wordless else text, author, original and original[0], audience)
        happening = self.record(entry, author, [author], about=entry.position.status_number, text=text)
        if original is not None:
            happening.original = original[1].n
            happening.shown.append(original[1].author)
            happening.quoted = None if wordless else original[1].author
            happening.others = (original[1].author,) if wordless else ()
            happening.text = original[1].version_at(happening.n).text if wordless else text
        self.posts.append((entry, happening))

    def edit(self) -> None:
        """Edit one of the last posts with words, of a user who is not suspended."""
        fitting = [at for at in range(len(self.posts))[-15:] if not self.posts[at][1].is_wordless]
        fitting = [at for at in fitting if self.posts[at][1].author not in self.state.suspended]
        if not fitting:
            return
        at = self.source.choice(fitting)
        entry, post = self.posts[at]
        text = self.source.choice(["red", "green", "blue", "red green"]) + f" {len(self.history)}"
        quoted = None if post.original is None else self.history[post.original - 1]
        shown = next((one for one, known in self.posts if known is quoted), None)
        made = self.world.edit(entry, text, shown, removal_audience(post, self.history[post.n :], self.state))
        more: dict[str, Any] = {"original": post.original, "quoted": post.quoted, "others": post.others, "edits": post}
        post.later.append(self.record(made, post.author, post.shown, about=post.about, text=text, **more))
        self.posts[at] = (made, post)

    def delete(self) -> None:
        if self.posts:
            entry, post = self.posts.pop(self.source.randrange(max(0, len(self.posts) - 15), len(self.posts)))
            audience = removal_audience(post, self.history[post.n :], self.state)
            entry = self.world.delete(entry, audience, open_times=self.open_times(post, audience))
            happening = self.record(entry, post.author, post.shown, about=post.about, undoes=post)
            post.deleted_n = happening.n
            for edit in post.later:
                edit.deleted_n = happening.n

    def open_times(self, gone: HistoryEntry, audience: str) -> list[tuple[int, int | None]] | None:
        """Return the open times of the user whom what goes shows besides the one to whose followers it goes."""
        others = {*gone.shown} - {gone.quoted, audience.removeprefix("followers:")}
        changes = [one for one in self.history[gone.n :] if one.kind in PROTECTIONS and {one.author} == others]
        if not changes or not audience.startswith("followers:"):
            return None
        ids = [0, *(self.world.log.entries[one.n - 1].position.status_number for one in changes)]
        return list(zip_longest(ids[::2], ids[1::2]))

    def relate(self) -> None:
        """Begin or end a follow, a block or a mute. A block first ends both follows."""
        verb, (one, other) = self.source.choice(list(RELATIONS)), self.source.sample(USERS, 2)
        if verb != "follow" and self.source.random() < 0.5:
            verb = "follow"
        pairs = getattr(self.state, RELATIONS[verb])
        if (one, other) in pairs:
            if verb != "follow" or self.source.random() < 0.5:
                self._relation(verb, one, other, begins=False)
            return
        if verb == "follow" and {(one, other), (other, one)} & self.state.blocks:
            return
        if verb == "block":
            for pair in ((one, other), (other, one)):
                if pair in self.state.follows:
                    self._relation("follow", *pair, begins=False)
        self._relation(verb, one, other, begins=True)

    def _relation(self, verb: str, one: str, other: str, *, begins: bool) -> None:
        kind = verb if begins else f"un{verb}"
        audience = "public" if verb == "follow" else f"users:{one}"
        entry = self.world.publish(kind, audience, source={"id": one}, target={"id": other})
        self.record(entry, one, [one, other] if verb == "follow" else [one], others=(one, other))
        pairs = getattr(self.state, RELATIONS[verb])
        (pairs.add if begins else pairs.discard)((one, other))
        if kind == "unfollow":
            self.ended[one, other, self.since["follows", one, other]] = entry.position.ms
        else:
            self.since[RELATIONS[verb], one, other] = entry.position.ms

    def protect(self) -> None:
        uid = self.actor()
        kind = "unprotect" if uid in self.state.protected else "protect"
        self.record(self.world.publish(kind, user={"id": uid}), uid, [uid])
        self.state.protected ^= {uid}

    def suspend(self) -> None:
        """Suspend a user, which ends the streams, or reinstate one."""
        uid = self.source.choice(USERS)
        if uid in self.state.suspended or len(self.state.suspended) < 2:
            kind = "reinstate" if uid in self.state.suspended else "suspend"
            self.record(self.world.publish(kind, "-", uid=uid), uid, [])
            self.state.suspended ^= {uid}
            if kind == "suspend":
                self.check(uid)
                self.listeners = [one for one in self.listeners if one[0].user != uid]

    def like(self) -> None:
        """Like a post that is in no group."""
        fitting = [post for _, post in self.posts if not post.audience.startswith("group:")]
        if fitting:
            post, actor = self.source.choice(fitting), self.actor()
            audience = reaction_audience(actor, post.author, self.state)
            status = {"id": post.about, "uid": post.author, "message": post.text}
            entry = self.world.publish("like", audience, source={"id": actor}, status=status)
            self.record(entry, actor, [actor, post.author], on_post=post)

    def comment(self) -> None:
        """Comment on a visible post of a user who is not suspended."""
        actor = self.actor()
        mine = [f"group:{gid}" for gid in GROUPS if (actor, gid) in self.state.groups]
        fitting = [pair for pair in self.posts if not pair[1].audience.startswith("group:") or pair[1].audience in mine]
        fitting = [pair for pair in fitting if pair[1].author not in self.state.suspended]
        if fitting:
            entry, post = self.source.choice(fitting[-20:])
            audience = post.audience if post.audience in mine else reaction_audience(actor, post.author, self.state)
            entry, text = self.world.comment("red indeed", actor, entry, audience), "red indeed"
            about = entry.position.status_number
            happening = self.record(entry, actor, [actor, post.author], text=text, on_post=post, about=about)
            self.comments.append((entry, happening))

    def uncomment(self) -> None:
        """Delete one of the last comments whose post still exists."""
        fitting = [
            pair for pair in self.comments[-15:] if pair[1].on_post is not None and not pair[1].on_post.deleted_n
        ]
        if fitting:
            pair = self.source.choice(fitting)
            self.comments.remove(pair)
            entry, said = pair
            audience = removal_audience(said, self.history[said.n :], self.state)
            made = self.world.uncomment(entry, audience, open_times=self.open_times(said, audience))
            more = {"text": said.text, "about": said.about}
            said.deleted_n = self.record(made, said.author, said.shown, undoes=said, on_post=said.on_post, **more).n

    def group(self) -> None:
        uid, gid = self.actor(), self.source.choice(GROUPS)
        kind = "group_leave" if (uid, gid) in self.state.groups else "group_join"
        entry = self.world.publish(kind, f"group:{gid}", group={"id": gid, "uid": "1"}, user={"id": uid})
        self.record(entry, uid, [uid])
        self.state.groups ^= {(uid, gid)}
        if kind == "group_leave":
            self.ended[uid, gid, self.since["groups", uid, gid]] = entry.position.ms
        self.since["groups", uid, gid] = entry.position.ms

    def message(self) -> None:
        people = self.source.sample(USERS, 3)
        if people[0] not in self.state.suspended:
            wire = {"id": "1", "uid": people[0], "message": "hello"}
            self.record(self.world.publish("message", "users:" + ",".join(people), message=wire), people[0], people[:1])

    def notify(self) -> None:
        receiver, source = self.source.sample(USERS, 2)
        wire = {"id": "1", "kind": "follow", "source": {"id": source}}
        self.record(self.world.publish("notification", f"users:{receiver}", notification=wire), source, [source])

    def update(self) -> None:
        uid = self.actor()
        self.record(self.world.publish("user_update", user={"id": uid}), uid, [uid])

    # Who listens.

    async def open_stream(self) -> None:
        """Open another stream, from the head or a random position, and wait until it is live."""
        user, world = self.actor(), self.world
        self.world.graphs[user] = self.graph(user)
        back = self.source.choice([None, None, self.source.randrange(0, len(self.history) + 1)])
        since = None if back is None else ([None, *world.log.entries][back])
        position = None if since is None else since.position
        today, n = deepcopy(self.state), world.hub.head.n
        start_n = n if position is None else position.n
        ours = self.model(user, partial(matches_word, "red"), start_n, n, today)
        what = self.source.choice(["own", "track", "follow", "firehose", "me"])
        kinds = "post,edit,delete,follow,unfollow,like,comment,uncomment,user_update,protect,unprotect"
        if what == "own":
            ours.own = ours.graph = True
            ours.matches = partial(matches_home, user)
            stream, socket = world.open_user_stream(user, position)
        elif what == "track":
            stream, socket = world.open(position, user=user, track="red", kinds="post,edit,delete,comment,uncomment")
        elif what == "follow":
            ours.matches = partial(matches_people, {"1", "2"})
            stream, socket = world.open(position, user=user, follow="1,2", kinds=kinds)
        elif what == "me":
            ours.graph, ours.matches = True, partial(matches_followed, user)
            following = set(world.viewer(user).following)
            ours.is_plain = self.source.random() < 0.5
            asked = {} if ours.is_plain else {"kinds": "post,edit,delete"}
            stream, socket = world.open(position, user=user, following=following, follow="@me", **asked)
        else:
            ours.viewer_independent, ours.matches = True, matches_anything
            stream, socket = world.open(position, user=user, firehose="true", kinds=kinds)
        self.listeners.append((ours, socket, stream))
        await eventually(lambda: stream.is_live, what="live")

    def graph(self, user: str) -> Graph:
        """Return what a store would read of a user now."""

        def since(relation: str, pairs: set[tuple[str, str]]) -> dict[str, int]:
            return {b: self.since[relation, a, b] for a, b in pairs if a == user}

        blockers = {a: self.since["blocks", a, b] for a, b in self.state.blocks if b == user}
        ended = {(b, began): end for (a, b, began), end in self.ended.items() if a == user}
        state, head = self.state, self.world.hub.head
        return Graph(
            since("follows", state.follows), since("blocks", state.blocks), blockers, since("mutes", state.mutes),
            since("groups", state.groups), ended, head,
        )  # fmt: skip

    def _check_texts(self, socket: Socket, ours: StreamModel) -> None:
        """A stream that gets edits holds no text that its author replaced."""
        if not ours.is_plain:
            last = {post.about: post.version_at(len(self.history)) for _, post in self.posts}
            held = {about: text for about, text in held_texts(socket.messages()).items() if about in last}
            assert held == {about: "" if last[about].is_wordless else last[about].text for about in held}, ours

    def check(self, user: str | None = None) -> int:
        """Compare all streams with their models. Returns the number of received messages."""
        for ours, socket, stream in self.listeners:
            if user is None:
                self.world.hub.live.flush(stream)
                compare(received_events(socket.messages()), ours.expects(self.history), ours)
                self._check_texts(socket, ours)
        return sum(len(received_events(socket.messages())) for _, socket, _ in self.listeners)
