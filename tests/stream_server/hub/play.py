"""Random graphs, permissions and posts, and streams that listen to them, each beside its plain model."""

import random
from copy import deepcopy
from functools import partial
from typing import Any

from stream_server.events.entry import Entry
from tests.stream_server.hub.oracle import Got, Happening, Listener, State, arrived
from tests.stream_server.hub.world import Graph, Socket, World
from tests.waiting import eventually

USERS = [str(number) for number in range(1, 7)]
GROUPS = ["91", "92"]
RELATIONS = {"follow": "follows", "block": "blocks", "mute": "mutes"}


class Play:
    """A world, its history, and those who listen, each beside its ``model``."""

    def __init__(self, world: World, seed: int, model: type[Listener] = Listener) -> None:
        self.model = model
        self.world = world
        self.source = random.Random(seed)
        self.state = State()
        self.since: dict[tuple[str, str, str], int] = {}
        self.history: list[Happening] = []
        self.posts: list[tuple[Entry, Happening]] = []
        self.comments: list[tuple[Entry, Happening]] = []
        self.listeners: list[tuple[Listener, Socket, Any]] = []

    # What happens.

    def step(self) -> None:
        """One thing that happens."""
        acts = [
            (30, self.post), (12, self.delete), (16, self.relate), (4, self.protect), (2, self.suspend), (6, self.like),
            (8, self.comment), (4, self.uncomment), (4, self.group), (3, self.message), (3, self.notify),
            (2, self.update),
        ]  # fmt: skip
        self.source.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()

    def told(self, entry: Entry, author: str, shown: list[str], **more: Any) -> Happening:
        """Keep what was published, with the state before it."""
        about = str(more.pop("about", entry.position.cursor))
        happening = Happening(
            entry.position.n, entry.kind, entry.audience, author, shown, about, deepcopy(self.state), **more
        )
        self.history.append(happening)
        return happening

    def actor(self) -> str:
        """Somebody who may act."""
        return self.source.choice([uid for uid in USERS if uid not in self.state.suspended])

    def post(self) -> None:
        """Some words, a quote, or a repost without words; some of it in a group."""
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
        happening = self.told(entry, author, [author], about=entry.position.status_number, text=text)
        if original is not None:
            happening.original = original[1].n
            happening.shown.append(original[1].author)
            happening.quoted = None if wordless else original[1].author
            happening.others = (original[1].author,) if wordless else ()
            happening.text = original[1].text if wordless else text
        self.posts.append((entry, happening))

    def delete(self) -> None:
        """One of the last posts is taken back."""
        if self.posts:
            entry, post = self.posts.pop(self.source.randrange(max(0, len(self.posts) - 15), len(self.posts)))
            happening = self.told(self.world.delete(entry), post.author, post.shown, about=post.about, brought=post)
            post.deleted_n = happening.n

    def relate(self) -> None:
        """Follow, block or mute, or its end; a block ends both follows before."""
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
        entry = self.world.tell(kind, audience, source={"id": one}, target={"id": other})
        self.told(entry, one, [one, other] if verb == "follow" else [one], others=(one, other))
        pairs = getattr(self.state, RELATIONS[verb])
        (pairs.add if begins else pairs.discard)((one, other))
        self.since[RELATIONS[verb], one, other] = entry.position.ms

    def protect(self) -> None:
        """Somebody protects what follows, or does so no longer."""
        uid = self.actor()
        kind = "unprotect" if uid in self.state.protected else "protect"
        self.told(self.world.tell(kind, user={"id": uid}), uid, [uid])
        self.state.protected ^= {uid}

    def suspend(self) -> None:
        """Somebody is suspended, whose streams end, or is so no longer."""
        uid = self.source.choice(USERS)
        if uid in self.state.suspended or len(self.state.suspended) < 2:
            kind = "reinstate" if uid in self.state.suspended else "suspend"
            self.told(self.world.tell(kind, "-", uid=uid), uid, [])
            self.state.suspended ^= {uid}
            if kind == "suspend":
                self.check(uid)
                self.listeners = [one for one in self.listeners if one[0].user != uid]

    def _deed_audience(self, actor: str, author: str) -> str:
        hidden = [uid for uid in dict.fromkeys((actor, author)) if uid in self.state.protected]
        return "public" if not hidden else f"followers:{hidden[0]}" if len(hidden) == 1 else f"users:{actor},{author}"

    def like(self) -> None:
        """Somebody likes a post of no group."""
        fitting = [post for _, post in self.posts if not post.audience.startswith("group:")]
        if fitting:
            post, actor = self.source.choice(fitting), self.actor()
            audience = self._deed_audience(actor, post.author)
            status = {"id": post.about, "uid": post.author, "message": post.text}
            entry = self.world.tell("like", audience, source={"id": actor}, status=status)
            self.told(entry, actor, [actor, post.author], under=post)

    def comment(self) -> None:
        """Somebody comments on a post, which nobody can whose author is suspended; in a group whoever is in it."""
        actor = self.actor()
        mine = [f"group:{gid}" for gid in GROUPS if (actor, gid) in self.state.groups]
        fitting = [pair for pair in self.posts if not pair[1].audience.startswith("group:") or pair[1].audience in mine]
        fitting = [pair for pair in fitting if pair[1].author not in self.state.suspended]
        if fitting:
            entry, post = self.source.choice(fitting[-20:])
            audience = post.audience if post.audience in mine else self._deed_audience(actor, post.author)
            entry, text = self.world.comment("red indeed", actor, entry, audience), "red indeed"
            about = entry.position.status_number
            happening = self.told(entry, actor, [actor, post.author], text=text, under=post, about=about)
            self.comments.append((entry, happening))

    def uncomment(self) -> None:
        """One of the last comments is taken back, whose post is still there."""
        fitting = [pair for pair in self.comments[-15:] if pair[1].under is not None and not pair[1].under.deleted_n]
        if fitting:
            pair = self.source.choice(fitting)
            self.comments.remove(pair)
            entry, said = pair
            made, more = self.world.uncomment(entry), {"text": said.text, "about": said.about}
            said.deleted_n = self.told(made, said.author, said.shown, brought=said, under=said.under, **more).n

    def group(self) -> None:
        """Somebody joins or leaves a group."""
        uid, gid = self.actor(), self.source.choice(GROUPS)
        kind = "group_leave" if (uid, gid) in self.state.groups else "group_join"
        entry = self.world.tell(kind, f"group:{gid}", group={"id": gid, "uid": "1"}, user={"id": uid})
        self.told(entry, uid, [uid])
        self.state.groups ^= {(uid, gid)}
        self.since["groups", uid, gid] = entry.position.ms

    def message(self) -> None:
        """A message among three."""
        people = self.source.sample(USERS, 3)
        if people[0] not in self.state.suspended:
            wire = {"id": "1", "uid": people[0], "message": "hello"}
            self.told(self.world.tell("message", "users:" + ",".join(people), message=wire), people[0], people[:1])

    def notify(self) -> None:
        """Somebody is told of what another does."""
        receiver, source = self.source.sample(USERS, 2)
        wire = {"id": "1", "kind": "follow", "source": {"id": source}}
        self.told(self.world.tell("notification", f"users:{receiver}", notification=wire), source, [source])

    def update(self) -> None:
        """Somebody changes their profile."""
        uid = self.actor()
        self.told(self.world.tell("user_update", user={"id": uid}), uid, [uid])

    # Who listens.

    async def listen(self) -> None:
        """Another stream, from now or from a random place; it is live before anything else happens."""
        user, world = self.actor(), self.world
        self.world.graphs[user] = self.graph(user)
        back = self.source.choice([None, None, self.source.randrange(0, len(self.history) + 1)])
        since = None if back is None else ([None, *world.log.entries][back])
        position = None if since is None else since.position
        today, n = deepcopy(self.state), world.hub.head.n
        start_n = n if position is None else position.n
        ours = self.model(user, partial(_word, "red"), start_n, n, today)
        what = self.source.choice(["own", "track", "follow", "firehose", "me"])
        kinds = "post,delete,follow,unfollow,like,comment,uncomment,user_update,protect,unprotect"
        if what == "own":
            ours.own = ours.graph = True
            ours.asks = partial(_home, user)
            stream, socket = world.own(user, position)
        elif what == "track":
            stream, socket = world.open(position, user=user, track="red", kinds="post,delete,comment,uncomment")
        elif what == "follow":
            ours.asks = partial(_people, {"1", "2"})
            stream, socket = world.open(position, user=user, follow="1,2", kinds=kinds)
        elif what == "me":
            ours.graph, ours.asks = True, partial(_followed, user)
            following = set(world.viewer(user).following)
            stream, socket = world.open(position, user=user, following=following, follow="@me")
        else:
            ours.impersonal, ours.asks = True, _anything
            stream, socket = world.open(position, user=user, firehose="true", kinds=kinds)
        self.listeners.append((ours, socket, stream))
        await eventually(lambda: stream.client in world.hub.live, what="live")

    def graph(self, user: str) -> Graph:
        """What a store would read of a user now."""

        def since(relation: str, pairs: set[tuple[str, str]]) -> dict[str, int]:
            return {b: self.since[relation, a, b] for a, b in pairs if a == user}

        blockers = {a: self.since["blocks", a, b] for a, b in self.state.blocks if b == user}
        state, head = self.state, self.world.hub.head
        return Graph(
            since("follows", state.follows), since("blocks", state.blocks), blockers, since("mutes", state.mutes),
            since("groups", state.groups), head,
        )  # fmt: skip

    def check(self, user: str | None = None) -> int:
        """Each (of this user) has what it must have; gives how many things that were."""
        for ours, socket, stream in self.listeners:
            if user is None:
                self.world.hub.live.flush(stream.client)
                compare(arrived(socket.messages()), ours.expects(self.history), ours)
        return sum(len(arrived(socket.messages())) for _, socket, _ in self.listeners)


def _word(word: str, h: Happening, _: State) -> bool:
    return h.kind in ("post", "delete", "comment", "uncomment") and word in h.text


def _anything(h: Happening, _: State) -> bool:
    graph = ("follow", "unfollow", "user_update", "protect", "unprotect")
    return h.kind in ("post", "delete", "like", "comment", "uncomment", *graph)


def _people(ids: set[str], h: Happening, now: State) -> bool:
    if h.kind in ("like", "comment", "uncomment", "follow", "unfollow"):
        return bool(ids & set(h.shown))
    return _anything(h, now) and bool(ids & {h.author, *h.others})


def _followed(user: str, h: Happening, now: State) -> bool:
    return h.kind in ("post", "delete") and any((user, uid) in now.follows for uid in (h.author, *h.others))


def _home(user: str, h: Happening, now: State) -> bool:
    if not h.audience.startswith(("public", "followers:")):
        return True
    if h.kind in ("post", "delete", "user_update", "protect", "unprotect"):
        return h.author == user or (user, h.author) in now.follows
    return user in h.shown


def compare(got: list[Got], expected: list[tuple[Got, bool]], ours: Listener) -> None:
    """In order; what may arrive may be absent."""
    at = 0
    for thing, must in expected:
        if at < len(got) and got[at] == thing:
            at += 1
        else:
            assert not must, (thing, got[at : at + 3], ours)
    assert got[at:] == [], ours
