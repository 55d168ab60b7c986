"""A client without HTTP that returns with its last cursor, to one hub after the other."""

import itertools
import json

from filters.sample import Firehose
from filters.subscription import Subscription
from stream_server.events.position import LOG_START, Position
from stream_server.hub import messages
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.hub.stream_session import StreamSession
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.stream_plan import wait_for_head
from stream_server.web.streaming.stream_start import resolve_start
from tests.stream_server.feed.node import Node, now_ms
from tests.stream_server.hub.world import Socket
from tests.waiting import PATIENCE, eventually

_NUMBERS = itertools.count(1)


class ReturningClient:
    """Keeps all posts that it received; a gap drops the posts after the gap's end."""

    def __init__(self) -> None:
        self.name = f"client {next(_NUMBERS)}"
        self.cursor = LOG_START.cursor
        self.kept: list[tuple[int, str]] = []
        self.gaps: list[str] = []
        self.ghosts = 0
        self._socket: Socket | None = None
        self._stream: StreamSession | None = None
        self._seen = 0

    @property
    def is_connected(self) -> bool:
        return self._stream is not None

    async def connect(self, node: Node) -> None:
        """Open a stream at the last cursor."""
        hub = node.hub
        start = await resolve_start(self.cursor, node.store.log, now_ms=node.store.log.now_ms, param="since")
        await wait_for_head(hub, start.position)
        wire = select_framing(NDJSON, chunked=True)
        ask = SubscribeRequest(self.name, "1", StreamToken("j"), Subscription([Firehose()]), wire, start.position)
        self._socket, self._seen = Socket(), 0
        sent = [messages.hello_message(start.position, now_ms(), ask.connection_id, "{}", "test")]
        if start.known_gap is not None:
            sent.append(messages.gap_message(start.known_gap, now_ms()))
        self._socket.write(wire.wrap(b"".join(map(wire.encode_control, sent))))
        self._stream = StreamSession(hub, ask, self._socket)
        self._stream.start()

    def disconnect(self) -> None:
        self.read()
        if self._stream is not None:
            self._stream.connection_lost()
        self._stream = self._socket = None

    def block(self) -> None:
        if self._socket is not None:
            self._socket.block()

    def unblock(self) -> None:
        if self._socket is not None:
            self._socket.unblock()

    def read(self) -> None:
        """Apply the messages that arrived since the last read."""
        if self._socket is None or not self._socket.received.endswith(b"\n"):
            return
        messages = [json.loads(line) for line in self._socket.received.splitlines()]
        fresh, self._seen = messages[self._seen :], len(messages)
        for message in fresh:
            self._take(message)

    async def expect_cursor(self, last: Position, *, seconds: float = PATIENCE) -> None:
        """Wait until everything up to this entry has arrived."""

        def all_read() -> bool:
            self.read()
            return self.cursor == last.cursor

        await eventually(all_read, seconds=seconds, what=f"{self.name} to be sent all")

    def _take(self, message: dict[str, object]) -> None:
        kind, cursor = message["kind"], str(message["cursor"])
        n = int(cursor.partition(".")[2])
        if kind == "post":
            status = message["status"]
            assert isinstance(status, dict)
            assert not self.kept or n > self.kept[-1][0], f"{self.name} was sent twice, or in no order: {cursor}"
            self.kept.append((n, status["message"]))
        elif kind == "gap":
            self.gaps.append(str(message["reason"]))
            before = len(self.kept)
            self.kept = [one for one in self.kept if one[0] <= n]
            self.ghosts += before - len(self.kept)
        if kind != "hello" or not self.kept:
            self.cursor = cursor
