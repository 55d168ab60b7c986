"""A hub with its own log, and clients whose sockets a test can block, all in memory."""

import asyncio
import json
import zlib
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from filters.follow import Home
from filters.narrowing import KINDS, PERSONAL_KINDS, Kinds
from filters.registry import Registry
from filters.rule import SavedRules
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription, parse_subscription
from stream_server.events.entry import PUBLIC_AUDIENCE, Entry
from stream_server.events.position import EPOCH_MS, LOG_START, Position
from stream_server.hub import messages
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.client import Outlet, StreamToken, SubscribeRequest
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.hub.messages import NOTHING_LOST, ROLLED_BACK, TRIMMED
from stream_server.hub.poll import LongPoll
from stream_server.hub.stream_session import StreamSession
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.web.streaming.compression import compress_framing
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.waiting import eventually

REGISTRY = Registry.from_entry_points()


def read_rule(text: str) -> Rule:
    return Rule.parse(text, REGISTRY)


async def read_rule_later(text: str) -> Rule:
    """Parse a rule as the server does, which may wait for its turn."""
    await asyncio.sleep(0)
    return read_rule(text)


LIMITS = HubLimits(
    buffer_bytes=1000,
    heartbeat_seconds=3600.0,
    write_timeout_seconds=5.0,
    goodbye_seconds=1.0,
    ring_bytes=1 << 20,
    ring_seconds=3600.0,
)


class Log:
    """The log behind the ring: all entries from ``floor_n`` on. ``gone`` has the ids of deleted posts and comments."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.gone: set[str | None] = set()
        self.edits: dict[str | None, Entry] = {}
        self.floor_n = 0
        self.reads = 0
        self.error: Exception | None = None

    async def read_page(self, after: Position, most: int) -> LogPage:
        """Return marked entries, as the log reader does, after one iteration of the loop; or raise ``error``."""
        known = await self._read()
        held = after in [e.position for e in known] or not known or after < known[0].position
        loss = ROLLED_BACK if not held else TRIMMED if self.floor_n else NOTHING_LOST
        return LogPage([e for e in known if e.position[:2] > after[:2]][:most], loss)

    async def read_back(self, last: Position, most: int) -> list[Entry]:
        """Return marked entries up to ``last``, or none without it."""
        known = [e for e in await self._read() if e.position.n <= last.n][-most:]
        return known if known and known[-1].position == last else []

    async def _read(self) -> list[Entry]:
        self.reads += 1
        if self.error is not None:
            raise self.error
        await asyncio.sleep(0)
        for entry in self.entries:
            shown = entry.shown_ids
            entry.is_deleted = shown.status in self.gone or shown.comment in self.gone
            entry.original_is_deleted = shown.original in self.gone
            named = (shown.status, shown.original)
            entry.later_edits = {name: self.edits[name] for name in named if name is not None and name in self.edits}
        return [e for e in self.entries if e.position.n > self.floor_n]

    async def wait_until_readable(self, timeout_seconds: float) -> None:
        await asyncio.sleep(timeout_seconds)  # a log that gets no entry makes its reader wait this long


@dataclass
class Graph:
    following: dict[str, int] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)
    blockers: dict[str, int] = field(default_factory=dict)
    mutes: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    ended: dict[tuple[str, int], int] = field(default_factory=dict)
    head: Position = LOG_START

    @property
    def applied_from(self) -> Position:
        """The head at which the relations were begun to be read: as usual, they are read in one step."""
        return self.head


class Socket:
    """The socket of a client: what has arrived, and whether it takes more.

    ``writes`` counts the calls of `write`. ``is_waited_for`` is whether the client's task waits for room.
    """

    def __init__(self) -> None:
        self.writes = 0
        self.received = bytearray()
        self.waiting = bytearray()
        self.reading = asyncio.Event()
        self.reading.set()
        self.aborted = False
        self.finished = False
        self.is_waited_for = False
        self._writes_left = 0

    def write(self, data: bytes) -> None:
        self.writes += 1
        self._put(unchunk(data))
        if self._writes_left:
            self._writes_left -= 1
            if not self._writes_left:
                self.block()

    def buffered_bytes(self) -> float:
        return len(self.waiting)

    def lend_descriptor(self, borrower: Outlet | None) -> None:
        """It has none."""

    def kernel_unacked_bytes(self) -> float:
        return 0

    def peer_silent_seconds(self) -> float:
        return 0

    @property
    def is_full(self) -> bool:
        return not self.reading.is_set()

    async def wait_writable(self) -> None:
        self.is_waited_for = True
        try:
            await self.reading.wait()
        finally:
            self.is_waited_for = False

    def finish(self, reason: DisconnectReason) -> None:
        self.finished = True

    def abort(self) -> None:
        self.aborted = True

    def fail(self) -> None:
        self.aborted = True

    async def expect_texts(self, *texts: str) -> None:
        """Wait until these posts arrived, and no others."""
        await eventually(lambda: self.texts() == list(texts), what=f"{texts}")

    async def expect_last_text(self, text: str) -> None:
        """Wait until this is the last post."""
        await eventually(lambda: self.texts()[-1:] == [text], what=text)

    async def expect_kinds(self, *kinds: str) -> None:
        """Wait until messages of these kinds arrived, and no others."""
        await eventually(lambda: self.kinds() == list(kinds), what=f"{kinds}")

    def block(self) -> None:
        self.reading.clear()

    def unblock(self, writes: int = 0) -> None:
        """Take what waits, and what comes. With ``writes``, block again after so many of them."""
        self._writes_left = writes
        self.received += self.waiting
        self.waiting.clear()
        self.reading.set()

    def messages(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.received.splitlines()]

    def texts(self) -> list[str]:
        """Return the texts of posts, and ``-id`` of deletes, in the order of their arrival."""
        return [_text(message) for message in self.messages() if message["kind"] in ("post", "delete")]

    def kinds(self) -> list[object]:
        return [message["kind"] for message in self.messages()]

    def _put(self, data: bytes) -> None:
        (self.received if self.reading.is_set() else self.waiting).extend(data)


class PackedSocket(Socket):
    """The socket of a client with gzip. What has arrived stays compressed until a test reads it."""

    def messages(self) -> list[dict[str, object]]:
        try:
            plain = zlib.decompressobj(-zlib.MAX_WBITS).decompress(bytes(self.received))
        except zlib.error as error:
            raise AssertionError("the bytes refer to what the client has not got") from error
        return [json.loads(line) for line in plain.splitlines()]


class World:
    """One hub, its log, and a manual clock. ``is_last`` is what the hub is told of each entry (`Hub.publish`).

    The clock of the log is ``log_ahead_ms`` ahead of the server's. As that of Redis, it never goes back on the log.
    """

    def __init__(self, limits: HubLimits = LIMITS) -> None:
        self.log = Log()
        self.now_ms = EPOCH_MS + 1_000_000
        self.graphs: dict[str, Graph] = {}
        self.hub = Hub(
            limits,
            self.log,
            LOG_START,
            now_ms=lambda: self.now_ms,
            read_relations=self._graph,
            parse_rule=read_rule_later,
        )
        self.streams: list[StreamSession] = []
        self.is_last = False
        self.log_ahead_ms = 0
        self._requests = 0
        self._versions: dict[str, list[dict[str, Any]]] = {}

    def post(self, text: str, uid: str = "7", original: Entry | None = None, audience: str = PUBLIC_AUDIENCE) -> Entry:
        """Publish a post, or a repost of ``original``. Its id is that of its position."""
        position = self._next()
        status: dict[str, object] = {"id": str(position.status_number), "uid": uid, "message": text}
        if original is not None:
            shown = json.loads(original.wire)["status"]
            status |= {"original": shown, "origin": shown["id"]}
        return self._append(position, "post", {"wire": {"status": status}}, audience)

    def edit(self, post: Entry, text: str, original: Entry | None = None, audience: str | None = None) -> Entry:
        """Publish an edit of what ``post`` shows, a post or an edit. A quote shows ``original``, None if it is gone."""
        before = json.loads(post.wire)["status"]
        self._versions.setdefault(before["id"], []).append(before)
        status = {**before, "message": text}
        if "original" in before:
            status["original"] = original and _inner(json.loads(original.wire)["status"])
        body = {"wire": {"status": status}, "facts": {"before": [before]}}
        made = self._append(self._next(), "edit", body, audience or post.audience)
        self.log.edits[before["id"]] = made
        return made

    def delete(self, post: Entry, audience: str | None = None, **facts: object) -> Entry:
        """Publish a delete: ids on the wire, the post for the filters, and by default the audience of the post."""
        status = json.loads(post.wire)["status"]
        wire = {"status": {"id": status["id"], "uid": status["uid"], "deleted": True}}
        self.log.gone.add(status["id"])
        before = self._versions.get(status["id"], [])
        body = {"wire": wire, "facts": {"status": status, "before": before, **facts}}
        return self._append(self._next(), "delete", body, audience or post.audience)

    def comment(self, text: str, uid: str, post: Entry, audience: str = PUBLIC_AUDIENCE) -> Entry:
        """Publish a comment. Its id is that of its position."""
        position, status = self._next(), json.loads(post.wire)["status"]
        comment = {"id": str(position.status_number), "uid": uid, "status": status["id"], "message": text}
        return self._append(position, "comment", {"wire": {"comment": comment, "status": _inner(status)}}, audience)

    def uncomment(self, comment: Entry, audience: str | None = None, **facts: object) -> Entry:
        """Publish the end of a comment: its ids and the status on the wire, the comment for the filters."""
        wire = json.loads(comment.wire)
        said = wire["comment"]
        self.log.gone.add(said["id"])
        gone = {"id": said["id"], "uid": said["uid"], "status": said["status"], "deleted": True}
        body = {"wire": {"comment": gone, "status": wire["status"]}, "facts": {"comment": said, **facts}}
        return self._append(self._next(), "uncomment", body, audience or comment.audience)

    def relate(self, kind: str, source: str, target: str) -> Entry:
        """Publish a follow or an unfollow."""
        return self._append(self._next(), kind, {"wire": {"source": {"id": source}, "target": {"id": target}}})

    def publish(self, kind: str, audience: str = PUBLIC_AUDIENCE, /, **wire: object) -> Entry:
        """Publish an entry of any other kind."""
        return self._append(self._next(), kind, {"wire": wire}, audience)

    def change_rules(self, uid: str, added: dict[str, str] | None = None, removed: tuple[str, ...] = ()) -> Entry:
        """Publish that a user saves rules, by their ids, and drops others."""
        new = [{"id": name, "rule": text, "tag": f"tag {name}"} for name, text in (added or {}).items()]
        wire = {"uid": uid, "added": new, "removed": list(removed)}
        return self._append(self._next(), "rules", {"wire": wire}, "-")

    def publish_invalid_rules(self) -> Entry:
        return self._append(self._next(), "rules", {"wire": {"uid": 1}}, "-")

    def revoke(self, uid: str, jti: str) -> Entry:
        return self._append(self._next(), "revoke", {"wire": {"uid": uid, "jti": jti}}, "-")

    def open(self, since: Position | None = None, **options: Any) -> tuple[StreamSession, Socket]:
        """Start a stream with the options of :meth:`request`."""
        return self._begin(self.request(since, **options))

    def request(
        self,
        since: Position | None = None,
        *,
        user: str = "1",
        following: set[str] | None = None,
        saved: dict[str, str] | None = None,
        explain: bool = False,
        viewer_independent: bool | None = None,
        until: Position | None = None,
        **filters: str,
    ) -> SubscribeRequest:
        """A request from ``since`` (the head if None); ``saved`` are the user's rules there, by id."""
        position = self.hub.head if since is None else since
        subscription = parse_subscription(filters, REGISTRY, explain=explain, viewer_independent=viewer_independent)
        if saved is not None:
            rules = [NamedRule(name, f"tag {name}", read_rule(text)) for name, text in saved.items()]
            subscription = subscription.replace_base(SavedRules(user, rules))
        viewer = None if subscription.viewer_independent else self.viewer(user)
        view = None
        if following is not None and viewer is not None:
            own = dict.fromkeys(following)
            view = PrivateView(viewer, following=own, following_read_at=self.hub.head)
            subscription = subscription.with_following(own)
        return self._request(user, subscription, position, viewer, view, until)

    def open_user_stream(self, user: str, since: Position | None = None) -> tuple[StreamSession, Socket]:
        """Start the stream of the events that concern a user."""
        position, viewer = self.hub.head if since is None else since, self.viewer(user)
        following, head = dict.fromkeys(viewer.following), self.hub.head
        view = PrivateView(viewer, following=following, following_read_at=head, is_own_stream=True)
        subscription = Subscription([Home(user, following)], [Kinds((*KINDS, *PERSONAL_KINDS))])
        return self._begin(self._request(user, subscription, position, viewer, view))

    def poll(self, request: SubscribeRequest) -> LongPoll:
        return LongPoll(self.hub, request, limit=10)

    async def until_live(self, count: int = 1) -> None:
        """Wait until so many clients are live."""
        await eventually(lambda: self.hub.live.count == count, what=f"{count} live")

    async def post_until_demoted(self, text: str = "post", size: int = 300) -> None:
        """Publish numbered posts until the hub demotes a slow client."""
        before = self.hub.counters.slow_demotions

        def demoted() -> bool:
            self.post(f"{text} {self.hub.head.n} {'x' * size}")
            return self.hub.counters.slow_demotions > before

        await eventually(demoted, what="a demotion")

    def position_of(self, cursor: object) -> Position:
        """The position on the log that a cursor names."""
        return next((entry.position for entry in self.log.entries if entry.position.cursor == cursor), LOG_START)

    def viewer(self, user: str) -> Viewer:
        """Return the viewer of a user, whose relations are read at once."""
        reading = self.hub.viewer_cache.get(user)
        try:
            reading.send(None)
        except StopIteration as done:
            viewer: Viewer = done.value
            return viewer
        raise AssertionError("reading a viewer waited")

    def _graph(self, user: str) -> "asyncio.Future[Graph]":
        found: asyncio.Future[Graph] = asyncio.get_running_loop().create_future()
        found.set_result(deepcopy(self.graphs.get(user, Graph())))  # a viewer changes what it is given
        return found

    def _request(
        self, user: str, subscription: Subscription, position: Position, viewer: Viewer | None,
        view: PrivateView | None, until: Position | None = None,
    ) -> SubscribeRequest:  # fmt: skip
        self._requests += 1
        return SubscribeRequest(
            f"c{self._requests}", user, StreamToken("j"), subscription, select_framing(NDJSON, chunked=True), position,
            viewer, view, until=until,
        )  # fmt: skip

    def open_packed(self, since: Position | None = None, **options: Any) -> tuple[StreamSession, "PackedSocket"]:
        """Start a stream with gzip, with the options of :meth:`request`."""
        asked, socket = self.request(since, **options), PackedSocket()
        return self._begin(asked._replace(framing=compress_framing(asked.framing)), socket)[0], socket

    def _begin(self, ask: SubscribeRequest, socket: Socket | None = None) -> tuple[StreamSession, Socket]:
        socket = Socket() if socket is None else socket
        stream = StreamSession(self.hub, ask, socket)
        hello = messages.hello_message(ask.position, self.now_ms, ask.connection_id, "{}", "test")
        socket.write(ask.framing.wrap(ask.framing.encode_control(hello)))
        self.streams.append(stream)
        stream.start()
        return stream, socket

    def _next(self) -> Position:
        self.now_ms += 1
        return Position(max(self.now_ms + self.log_ahead_ms, self.hub.head.ms + 1), 0, self.hub.head.n + 1)

    def _append(self, position: Position, kind: str, body: object, audience: str = PUBLIC_AUDIENCE) -> Entry:
        entry = Entry(position, kind, audience, json.dumps(body).encode())
        self.log.entries.append(entry)
        self.hub.publish(entry, is_last=self.is_last)
        return entry


def user_json(uid: str) -> dict[str, str]:
    return {"id": uid}


def unchunk(data: bytes) -> bytes:
    """Return the body of one or more HTTP chunks."""
    body = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        body += rest[: int(size, 16)]
        data = rest[int(size, 16) + 2 :]
    return body


def _inner(status: dict[str, object]) -> dict[str, object]:
    """Return an embedded status, which has no original."""
    return {name: value for name, value in status.items() if name != "original"}


def _text(message: dict[str, object]) -> str:
    status = message["status"]
    assert isinstance(status, dict)
    return f"-{status['id']}" if message["kind"] == "delete" else str(status["message"])
