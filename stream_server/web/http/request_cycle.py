"""One HTTP connection without its socket: its state, and the bytes that it holds.

`Connection` gives it bytes and events, and acts on the state that follows. So a test can drive it with all orders of
events, and bytes cut anywhere. `connection_states` has the states.
"""

from stream_server.web.http.chunks import BadChunks, Body, DroppedBody
from stream_server.web.http.connection_states import (
    BODY,
    BODY_BEGINS,
    BODY_WHOLE,
    DROPPED,
    HEAD,
    OF_BODY,
    OF_HEAD,
    QUEUED,
    REST,
    RUNNING,
    WHOLE_HEAD,
    Event,
    ImpossibleEvent,
)
from stream_server.web.limits.connections import HEAD_TOO_LARGE, NO_CONNECT, NO_HTTP, Refusal

MAX_HEAD_BYTES = 131_072
"""Longest request head in bytes: the longest request line and the longest header field, with as much again."""

MAX_COUNTED_BODY_BYTES = 262_144
"""Most bytes of its body that a running request keeps: the longest body."""

HEAD_END = b"\r\n\r\n"

BLANK_LINES = b"\r\n"
"""Bytes that may stand before a request, and mean nothing (RFC 9112 §2.2)."""

VERSIONS = (b" HTTP/1.1\r\n", b" HTTP/1.0\r\n")
"""The ends of a request line."""

_FIRST_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Bytes with which a request may begin: those of its method."""


class RequestCycle:
    """The state of a connection, and the bytes that it holds.

    Attributes:
        state: The state at present.
        held: The bytes that came and were not taken yet: the beginning of a head, or what follows a request.
        request_head: The head of the request in QUEUED, else empty: the client has left, or a handler has the request.
        has_input_ended: Whether the client has shut down its sending side.
        is_stream: Whether the present request is a stream or a poll, which ends when its client stops sending.
        is_body_paused: Whether the handler takes nothing of the body at present.
        request_bytes: Bytes that the present request takes in memory, about.
    """

    __slots__ = (
        "_body", "_body_room", "_searched", "has_input_ended", "held", "is_body_paused", "is_stream",
        "request_bytes", "request_head", "state",
    )  # fmt: skip

    def __init__(self) -> None:
        self.state = HEAD
        self.held = bytearray()
        self.request_head = b""
        self._body: Body | None = None
        self._body_room = 0  # bytes of the body that may still be added to `request_bytes`
        self._searched = 0  # bytes of `held` in which no end of a head was found
        self.has_input_ended = self.is_body_paused = self.is_stream = False
        self.request_bytes = 0

    @property
    def kept_bytes(self) -> int:
        """The bytes that count against the limits of held bytes. A stream that waits is its head alone."""
        if self.state is QUEUED and self.is_stream:
            return len(self.held) + len(self.request_head)
        return len(self.held) + (self.request_bytes if self.state.has_request else 0)

    def move(self, event: Event) -> None:
        """Go on to the state that follows ``event``. Raises ImpossibleEvent if the state has no move for it."""
        try:
            self.state = following = self.state.moves[event]
        except KeyError:
            raise ImpossibleEvent(f"{event.name} in {self.state.name}") from None
        if self.request_head and following is not QUEUED:
            self.request_head = b""
        if following.received is DROPPED:
            self._body, self.held = None, bytearray()

    def receive(self, data: bytes) -> None:
        """Hold bytes that came. In CLOSING and CLOSED they are dropped."""
        if self.state.received is not DROPPED:
            self.held += data

    def end_input(self) -> None:
        """Note that the client has shut down its sending side. A stream or a poll ends, as its client has left.

        What has come before stays in ``held``: a request that is whole is answered. `take_request_head` and
        `take_part` find what is not whole.
        """
        self.has_input_ended = True
        if self.state is RUNNING and self.is_stream:
            self.move(Event.CLOSE)
        elif self.state.received not in (OF_HEAD, OF_BODY):
            self.move(Event.END_OF_INPUT)

    def take_request_head(self) -> bytes | Refusal | None:
        """Take a whole head from the held bytes, in HEAD or IDLE: it is QUEUED. None if there is none.

        Return a refusal if the bytes cannot become a head. After the end of the input, half a head ends the connection.
        """
        held = self.held
        if held and held[0] in BLANK_LINES:
            held[:] = held.lstrip(BLANK_LINES)  # parsing each pair would take as long as parsing a request
            self.move(Event.BYTES)
        if held:
            unseen = max(0, self._searched - len(HEAD_END) + 1)
            end = held.find(HEAD_END, unseen) + len(HEAD_END)
            is_whole = end >= len(HEAD_END)
            size = end if is_whole else len(held)
            self._searched = 0 if is_whole else size
            refusal = None
            if size > MAX_HEAD_BYTES:
                refusal = HEAD_TOO_LARGE
            elif held[0] not in _FIRST_BYTES:
                refusal = NO_HTTP
            elif not is_whole and (held.startswith(b"PRI ") or held.find(b"\n\n", unseen) >= 0):
                refusal = NO_HTTP  # the preface of HTTP/2 (RFC 9113 §3.4) or bare line ends: the rest would not come
            if refusal is not None:
                return refusal
            if is_whole:
                head = bytes(held[:end])
                del held[:end]
                self.move(WHOLE_HEAD)
                self.request_head = head
                self.is_stream = False
                self.request_bytes = end * 4  # the text, the fields, and what has parsed them
                self._body_room = MAX_COUNTED_BODY_BYTES
                return head
            self.move(Event.BYTES)
        if self.has_input_ended:
            self.move(Event.END_OF_INPUT)
        return None

    def line_refusal(self) -> Refusal | None:
        """Return why the request line in QUEUED is none of this server, or None if it is one.

        aiohttp's parser takes other versions and CONNECT, and it waits for more behind a preface of HTTP/2. The
        patterns of `usual_request` take none of these.
        """
        head = self.request_head
        if head.startswith(b"PRI ") or not head.startswith(VERSIONS, max(0, head.find(b"\r\n") - len(" HTTP/1.1"))):
            return NO_HTTP
        return NO_CONNECT if head.startswith(b"CONNECT ") else None

    def queue(self, head: bytes) -> None:
        """Let a stream that a handler has begun wait for its turn, with its ``head``."""
        self.move(Event.QUEUE)
        self.request_head = head

    def note_stream(self) -> None:
        """Note that the present request is a stream or a poll. One that runs ends if its client has stopped sending."""
        self.is_stream = True
        if self.has_input_ended and self.state is RUNNING:
            self.move(Event.CLOSE)

    def expect_body(self, body: Body) -> None:
        """Note that ``body`` belongs to the running request."""
        self.move(BODY_BEGINS)
        if self.state is BODY:
            self._body = body

    def pass_through(self) -> None:
        """Note that the handler keeps nothing of the body. So its bytes do not count, however many have come."""
        self.request_bytes -= MAX_COUNTED_BODY_BYTES - self._body_room
        self._body_room = 0

    def take_part(self) -> bytes:
        """Take a part of the body from the held bytes, in BODY or REST. Empty if none has come.

        When the body is whole, or cannot become whole any more, the state is another one. Raises BadChunks if the
        framing is invalid; then no byte that follows means anything.
        """
        body = self._body
        assert body is not None
        try:
            part = body.take(self.held)
        except BadChunks:
            self._body = DroppedBody()
            self.held.clear()
            self.move(Event.BODY_BROKEN)
            raise
        counted = min(len(part), self._body_room)
        self.request_bytes += counted
        self._body_room -= counted
        if body.is_complete:
            self._body = None
            self.move(BODY_WHOLE)
            if self.has_input_ended:
                self.end_input()
        elif self.has_input_ended and not (part and self.held) and not isinstance(body, DroppedBody):
            self.move(Event.END_OF_INPUT)  # else more pieces lie there, or the handler is about to refuse the body
        return part

    @property
    def is_client_sending(self) -> bool:
        """Whether bytes of the client may be under way, which are no request any more.

        A close that meets unread bytes makes the kernel send a reset, which may destroy the answer (RFC 9112 §9.6).
        """
        return not self.has_input_ended and (bool(self.held) or self.state.has_request or self.state is REST)
