"""A hub with a log of its own and clients whose sockets a test can block, all in memory."""

import asyncio
import json
from dataclasses import dataclass, field

from filters.home import Home
from filters.kind import KINDS, PERSONAL_KINDS, Kinds
from filters.params import parse_subscription
from filters.registry import Registry
from filters.rule import SavedRules
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription
from stream_server.events.entry import Entry
from stream_server.events.kinds import PUBLIC_AUDIENCE
from stream_server.events.position import EPOCH_MS, LOG_START, Position
from stream_server.hub import messages
from stream_server.hub.catchup.reader import LogPage
from stream_server.hub.client import SubscribeRequest
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.hub.stream_session import StreamSession
from stream_server.hub.visibility.private_view import PrivateView
from stream_server.hub.visibility.viewer import Viewer
from stream_server.web.streaming.framing import NDJSON, select_framing
from tests.waiting import eventually

REGISTRY = Registry.from_entry_points()


def read_rule(text: str) -> Rule:
    """The rule that a text says."""
    return Rule.parse(text, REGISTRY)


LIMITS = HubLimits(
    buffer_bytes=1000,
    heartbeat_seconds=3600.0,
    write_timeout_seconds=5.0,
    goodbye_seconds=1.0,
    ring_bytes=1 << 20,
    ring_seconds=3600.0,
)


class Log:
    """The log behind the ring: every entry ever written, from ``floor_n`` on; ``gone`` are ids of what was deleted."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.gone: set[str | None] = set()
        self.floor_n = 0
        self.reads = 0

    async def read_page(self, after: Position, most: int) -> LogPage:
        """As the real one: after a position, at most so many, and marked; it takes a turn of the loop."""
        self.reads += 1
        await asyncio.sleep(0)
        for entry in self.entries:
            shown = entry.shown_ids
            entry.is_deleted = shown.status in self.gone or shown.comment in self.gone
            entry.original_is_deleted = shown.original in self.gone
        known = [e for e in self.entries if e.position.n > self.floor_n]
        held = after in [e.position for e in known] or not known or after < known[0].position
        return LogPage([e for e in known if e.position[:2] > after[:2]][:most], held)

    async def wait_until_readable(self, timeout_seconds: float) -> None:
        """As when the feed does not report the log as readable."""
        await asyncio.sleep(timeout_seconds)


@dataclass
class Graph:
    """What a store would read of a user."""

    following: dict[str, int] = field(default_factory=dict)
    blocks: dict[str, int] = field(default_factory=dict)
    blockers: dict[str, int] = field(default_factory=dict)
    mutes: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    head: Position = LOG_START


class Socket:
    """A client's socket: what arrived, and whether it takes more."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.waiting = bytearray()
        self.reading = asyncio.Event()
        self.reading.set()
        self.aborted = False
        self.finished = False

    def write(self, data: bytes) -> None:
        """Bytes that were wrapped by the hub."""
        self._put(unchunk(data))

    def buffered_bytes(self) -> float:
        """What a client that does not read leaves here."""
        return len(self.waiting)

    def kernel_unacked_bytes(self) -> float:
        """No kernel is between."""
        return 0

    def peer_silent_seconds(self) -> float:
        """What arrives is acknowledged."""
        return 0

    @property
    def is_full(self) -> bool:
        """A client that does not read has no room."""
        return not self.reading.is_set()

    async def wait_writable(self) -> None:
        """There is room while the client reads."""
        await self.reading.wait()

    def finish(self) -> None:
        """The response ends."""
        self.finished = True

    def abort(self) -> None:
        """The connection is dropped."""
        self.aborted = True

    async def tells(self, *texts: str) -> None:
        """Wait until these were said, and nothing else."""
        await eventually(lambda: self.texts() == list(texts), what=f"{texts}")

    async def ends_with(self, text: str) -> None:
        """Wait until this was said last."""
        await eventually(lambda: self.texts()[-1:] == [text], what=text)

    async def hears(self, *kinds: str) -> None:
        """Wait until messages of these kinds came, and no others."""
        await eventually(lambda: self.kinds() == list(kinds), what=f"{kinds}")

    def block(self) -> None:
        """Read nothing from now on."""
        self.reading.clear()

    def unblock(self) -> None:
        """Read on, what waits first."""
        self.received += self.waiting
        self.waiting.clear()
        self.reading.set()

    def messages(self) -> list[dict[str, object]]:
        """Every message that arrived."""
        return [json.loads(line) for line in self.received.splitlines()]

    def texts(self) -> list[str]:
        """The posts' messages and, as ``-id``, the deletes, in the order of their arrival."""
        return [_text(message) for message in self.messages() if message["kind"] in ("post", "delete")]

    def kinds(self) -> list[object]:
        """The kinds that arrived."""
        return [message["kind"] for message in self.messages()]

    def _put(self, data: bytes) -> None:
        (self.received if self.reading.is_set() else self.waiting).extend(data)


class World:
    """One hub, its log, and a clock that only the test moves."""

    def __init__(self, limits: HubLimits = LIMITS) -> None:
        self.log = Log()
        self.now_ms = EPOCH_MS + 1_000_000
        self.graphs: dict[str, Graph] = {}
        self.hub = Hub(
            limits, self.log, LOG_START, now_ms=lambda: self.now_ms, read_relations=self._graph, parse_rule=read_rule
        )
        self.streams: list[StreamSession] = []
        self._asked = 0

    def post(self, text: str, uid: str = "7", original: Entry | None = None, audience: str = PUBLIC_AUDIENCE) -> Entry:
        """Write and publish a post (a repost of ``original``); its id is its position's."""
        position = self._next()
        status: dict[str, object] = {"id": str(position.status_number), "uid": uid, "message": text}
        if original is not None:
            shown = json.loads(original.wire)["status"]
            status |= {"original": shown, "origin": shown["id"]}
        return self._publish(position, "post", {"wire": {"status": status}}, audience)

    def delete(self, post: Entry) -> Entry:
        """Delete a post: ids on the wire, the post as it was for the filters, the audience that it had."""
        status = json.loads(post.wire)["status"]
        wire = {"status": {"id": status["id"], "uid": status["uid"], "deleted": True}}
        self.log.gone.add(status["id"])
        return self._publish(self._next(), "delete", {"wire": wire, "facts": {"status": status}}, post.audience)

    def comment(self, text: str, uid: str, post: Entry, audience: str = PUBLIC_AUDIENCE) -> Entry:
        """Say something under a post; the comment's id is its position's."""
        position, status = self._next(), json.loads(post.wire)["status"]
        comment = {"id": str(position.status_number), "uid": uid, "status": status["id"], "message": text}
        return self._publish(position, "comment", {"wire": {"comment": comment, "status": _inner(status)}}, audience)

    def uncomment(self, comment: Entry) -> Entry:
        """Take a comment back: its ids and the status on the wire, the comment as it was for the filters."""
        wire = json.loads(comment.wire)
        said = wire["comment"]
        self.log.gone.add(said["id"])
        gone = {"id": said["id"], "uid": said["uid"], "status": said["status"], "deleted": True}
        body = {"wire": {"comment": gone, "status": wire["status"]}, "facts": {"comment": said}}
        return self._publish(self._next(), "uncomment", body, comment.audience)

    def graph(self, kind: str, source: str, target: str) -> Entry:
        """A follow or an unfollow."""
        return self._publish(self._next(), kind, {"wire": {"source": {"id": source}, "target": {"id": target}}})

    def tell(self, kind: str, audience: str = PUBLIC_AUDIENCE, /, **wire: object) -> Entry:
        """An entry of any other kind."""
        return self._publish(self._next(), kind, {"wire": wire}, audience)

    def change_rules(self, uid: str, added: dict[str, str] | None = None, removed: tuple[str, ...] = ()) -> Entry:
        """A user saves rules, by their ids, and drops others."""
        new = [{"id": name, "rule": text, "tag": f"tag {name}"} for name, text in (added or {}).items()]
        wire = {"uid": uid, "added": new, "removed": list(removed)}
        return self._publish(self._next(), "rules", {"wire": wire}, "-")

    def garble_rules(self) -> Entry:
        """Somebody else than us writes of rules."""
        return self._publish(self._next(), "rules", {"wire": {"uid": 1}}, "-")

    def revoke(self, uid: str, jti: str) -> Entry:
        """Take a token back."""
        return self._publish(self._next(), "revoke", {"wire": {"uid": uid, "jti": jti}}, "-")

    def open(
        self,
        since: Position | None = None,
        *,
        user: str = "1",
        following: set[str] | None = None,
        saved: dict[str, str] | None = None,
        explain: bool = False,
        impersonal: bool | None = None,
        until: Position | None = None,
        **filters: str,
    ) -> tuple[StreamSession, Socket]:
        """A stream from ``since`` (the head if None), running; ``saved`` are the user's rules by id, as at the head."""
        ask = self.ask(
            since, user=user, following=following, saved=saved, explain=explain, impersonal=impersonal, until=until,
            **filters,
        )  # fmt: skip
        return self._begin(ask)

    def ask(
        self,
        since: Position | None = None,
        *,
        user: str = "1",
        following: set[str] | None = None,
        saved: dict[str, str] | None = None,
        explain: bool = False,
        impersonal: bool | None = None,
        until: Position | None = None,
        **filters: str,
    ) -> SubscribeRequest:
        """What :meth:`open` asks, for a stream on another socket."""
        position = self.hub.head if since is None else since
        subscription = parse_subscription(filters, REGISTRY, explain=explain, viewer_independent=impersonal)
        if saved is not None:
            rules = [NamedRule(name, f"tag {name}", read_rule(text)) for name, text in saved.items()]
            subscription = subscription.replace_base(SavedRules(user, rules))
        viewer = None if subscription.viewer_independent else self.viewer(user)
        personal = None
        if following is not None and viewer is not None:
            personal = PrivateView(viewer, position, following=following, following_read_at=self.hub.head)
            subscription = subscription.with_following(following)
        return self._ask(user, subscription, position, viewer, personal, until)

    def own(
        self, user: str, since: Position | None = None, kinds: tuple[str, ...] = (*KINDS, *PERSONAL_KINDS)
    ) -> tuple[StreamSession, Socket]:
        """A stream of what concerns a user, running."""
        position, viewer = self.hub.head if since is None else since, self.viewer(user)
        following = set(viewer.following)
        personal = PrivateView(
            viewer, position, following=following, following_read_at=self.hub.head, is_own_stream=True
        )
        return self._begin(
            self._ask(user, Subscription([Home(user, following)], [Kinds(kinds)]), position, viewer, personal)
        )

    def viewer(self, user: str) -> Viewer:
        """What a user may see: read at once, since nothing here waits."""
        reading = self.hub.viewer_cache.get(user)
        try:
            reading.send(None)
        except StopIteration as done:
            viewer: Viewer = done.value
            return viewer
        raise AssertionError("reading a viewer waited")

    async def _graph(self, user: str) -> Graph:
        return self.graphs.get(user, Graph())

    def _ask(
        self, user: str, subscription: Subscription, position: Position, viewer: Viewer | None,
        personal: PrivateView | None, until: Position | None = None,
    ) -> SubscribeRequest:  # fmt: skip
        self._asked += 1
        return SubscribeRequest(
            f"c{self._asked}", user, "j", subscription, select_framing(NDJSON, chunked=True), position,
            viewer, personal,
            rules_read_at=self.hub.head, until=until,
        )  # fmt: skip

    def _begin(self, ask: SubscribeRequest) -> tuple[StreamSession, Socket]:
        socket = Socket()
        stream = StreamSession(self.hub, ask, socket, now_ms=lambda: self.now_ms)
        hello = messages.hello_message(ask.position, self.now_ms, ask.connection_id, {}, "test")
        socket.write(ask.framing.wrap(ask.framing.encode_control(hello)))
        self.streams.append(stream)
        stream.start()
        return stream, socket

    def _next(self) -> Position:
        self.now_ms += 1
        return Position(self.now_ms, 0, self.hub.head.n + 1)

    def _publish(self, position: Position, kind: str, body: object, audience: str = PUBLIC_AUDIENCE) -> Entry:
        entry = Entry(position, kind, audience, json.dumps(body).encode())
        self.log.entries.append(entry)
        self.hub.publish(entry)
        return entry


def unchunk(data: bytes) -> bytes:
    """The body of one or more HTTP chunks."""
    body = b""
    while data:
        size, _, rest = data.partition(b"\r\n")
        body += rest[: int(size, 16)]
        data = rest[int(size, 16) + 2 :]
    return body


def _inner(status: dict[str, object]) -> dict[str, object]:
    """A status as it stands inside something else: without a third one."""
    return {name: value for name, value in status.items() if name != "original"}


def _text(message: dict[str, object]) -> str:
    status = message["status"]
    assert isinstance(status, dict)
    return f"-{status['id']}" if message["kind"] == "delete" else str(status["message"])
