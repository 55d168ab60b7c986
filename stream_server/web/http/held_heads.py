"""Holds the bytes of a request until its head is whole, and passes on one request at a time.

aiohttp keeps half a head as objects that take more memory than the bytes, and parses any number of requests that come
together. Here half a head takes its bytes alone. The connections of a process hold :data:`MAX_HELD_BYTES` together:
above that, those that hold the most are closed first.
"""

import asyncio
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.http_parser import RawRequestMessage

from stream_server.monitoring.limit_hits import LimitHits
from stream_server.web.http.body import declared_length
from stream_server.web.http.early_start import HEAD_END, EarlyHandler
from stream_server.web.http.parse_errors import shrink_last_error
from stream_server.web.limits.connections import Refusal

MAX_HEAD_BYTES = 131_072
"""Longest request head in bytes: the longest request line and the longest header field, with as much again."""

MAX_HELD_BYTES = 16 * 2**20
"""Most bytes of heads that are not whole, or wait behind a running request, in one process."""

HELD_SHARE_AFTER_EVICTION = 0.875
"""Share of :data:`MAX_HELD_BYTES` down to which connections are closed. So a flood does not sort them each time."""

HEAD_TOO_LARGE = Refusal(413, "Content Too Large", "too_large", "the request line and headers are too long")
NO_HTTP = Refusal(400, "Bad Request", "malformed_body", "the request is not valid HTTP")
NO_ROOM_FOR_HEAD = Refusal(503, "Service Unavailable", "unavailable", "too many unfinished requests")

BLANK_LINES = b"\r\n"
"""Bytes that may stand before a request, and mean nothing (RFC 9112 §2.2)."""

_FIRST_BYTES = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""Bytes with which a request may begin: those of its method."""


class HeldHeads:
    """Counts the bytes that the connections of a process hold.

    Attributes:
        total: The number of these bytes.
    """

    def __init__(self, hits: LimitHits) -> None:
        """``hits`` counts the connections that are closed because they hold the most."""
        self._hits = hits
        self._sizes: dict[HoldingHandler, int] = {}
        self.total = 0

    def note(self, connection: "HoldingHandler", size: int) -> None:
        """Note that ``connection`` holds ``size`` bytes now. Close the connections that hold the most if need be."""
        self.total += size - self._sizes.pop(connection, 0)
        if size:
            self._sizes[connection] = size
            if self.total > MAX_HELD_BYTES:
                self._make_room()

    def _make_room(self) -> None:
        for connection in sorted(self._sizes, key=self._sizes.__getitem__, reverse=True):
            if self.total <= MAX_HELD_BYTES * HELD_SHARE_AFTER_EVICTION:
                return
            self._hits.add("unfinished_heads")
            connection.refuse(NO_ROOM_FOR_HEAD)


class HoldingHandler(EarlyHandler):
    """aiohttp's connection, which gets whole heads only, and the next request when the one before is answered.

    A client that sends a request behind the last chunk of another one, without waiting for the answer, may have to send
    it again on another connection (RFC 9112 §9.3.2).
    """

    __slots__ = (
        "_body", "_body_left", "_chunk_end", "_held", "_held_heads", "_is_answered", "_is_broken", "_is_paused",
        "_searched",
    )  # fmt: skip

    def __init__(self, manager: web.Server, *, held_heads: HeldHeads, **options: Any) -> None:
        super().__init__(manager, **options)
        self._held_heads = held_heads
        self._held = bytearray()
        self._searched = 0
        self._body: StreamReader | None = None
        self._body_left: int | None = None
        self._chunk_end = b""
        self._is_answered = self._is_broken = self._is_paused = False

    def data_received(self, data: bytes) -> None:
        """Pass on what may be read now: a body, or a request whose head is whole. Hold the rest."""
        if self._is_broken or self._force_close or self._close:  # bytes behind those that are not HTTP mean nothing
            return
        if not data or (not self._held and self._end_of_piece(data) == len(data)):
            self._pass_on(data)  # aiohttp goes on with what it has, or, the usual case, a request came in one piece
        elif not self._is_broken:
            self._held += data
            self._pass_on_held()
            self._note_held()

    def _pass_on_held(self) -> None:
        while self._held and self.transport is not None and not self._is_broken:
            end = self._end_of_piece(self._held)
            if not end:
                return
            piece = bytes(self._held[:end])
            del self._held[:end]  # before the handler begins: a stream takes over what is held
            self._pass_on(piece)

    def _pass_on(self, piece: bytes) -> None:
        """Give the parser a part of a body, or a whole head."""
        is_chunk = False
        if not self._is_in_body:
            if piece and piece[0] in BLANK_LINES:
                return  # parsing each pair of them would take as long as parsing a request
            self._is_answered = self._is_answered and not piece
        elif self._body_left is None:
            is_chunk = True
            self._chunk_end = (self._chunk_end + piece[-len(HEAD_END) :])[-len(HEAD_END) :]
        else:
            self._body_left -= len(piece)
        super().data_received(piece)
        self._note_request()
        if is_chunk and not self._is_in_body and self._chunk_end != HEAD_END:
            self.close()  # the parser has got a part of the next head, of which nobody knows the size

    @property
    def _is_in_body(self) -> bool:
        return self._body is not None and not self._body.is_eof()

    def _note_held(self) -> None:
        """Count the held bytes. Read nothing from a client that sends many requests before it has its answers."""
        size, transport = len(self._held), self.transport
        self._held_heads.note(self, size)
        if size > MAX_HEAD_BYTES and transport is not None and not transport.is_closing():
            self._is_paused = True
            transport.pause_reading()

    def _end_of_piece(self, data: bytes | bytearray) -> int:
        """Return the size of the head, or of the part of a body, that begins ``data``; 0 if nothing may be read now."""
        if self._is_in_body:
            return len(data) if self._body_left is None else min(len(data), self._body_left)
        if not (self._is_answered or self.waits_for_request):
            return 0
        if data[0] in BLANK_LINES:
            return len(data) - len(data.lstrip(BLANK_LINES))
        unseen = max(0, self._searched - len(HEAD_END) + 1)
        end = data.find(HEAD_END, unseen) + len(HEAD_END)
        is_whole = end >= len(HEAD_END)
        self._searched = 0 if is_whole else len(data)
        if (end if is_whole else len(data)) > MAX_HEAD_BYTES:
            self.refuse(HEAD_TOO_LARGE)
        elif is_whole:
            return end
        elif data[0] not in _FIRST_BYTES or data.find(b"\n\n", unseen) >= 0:
            self.refuse(NO_HTTP)
        return 0

    def _note_request(self) -> None:
        """Learn from the newest request how long its body is.

        If the bytes were not HTTP, raise an error in the handler that waits for the body. aiohttp would let it wait.
        """
        if not self._messages:
            return
        message, body = self._messages[-1]
        if isinstance(message, RawRequestMessage):
            if body is not self._body:
                self._body, self._body_left = body, declared_length(message.headers)
            return
        self._is_broken = shrink_last_error(self._messages)
        if self._body is not None and self._is_in_body:
            self._body.set_exception(web.RequestPayloadError("the body has invalid HTTP framing"))

    def _begin(self) -> None:
        """Begin a request that has waited for its turn. Its body may be held."""
        super()._begin()
        if self.transport is not None:
            self._note_request()
            if self._held:
                self._go_on()

    def note_answer(self) -> None:
        """Pass on the next request. Call this when the answer to the last one was sent."""
        self._is_answered = True
        if self._held:
            self._go_on()

    def _go_on(self) -> None:
        transport = self.transport
        if self._is_paused and transport is not None and not transport.is_closing():
            self._is_paused = False
            transport.resume_reading()
        self._pass_on_held()
        self._note_held()

    def take_held(self) -> bytes:
        """Return the held bytes, and hold nothing more."""
        held, self._held = bytes(self._held), bytearray()
        if held:
            self._held_heads.note(self, 0)
        return held

    def refuse(self, refusal: Refusal) -> None:
        """Answer without a request handler, and close the connection. Do not answer while another answer is sent."""
        self._is_broken = True
        transport: asyncio.Transport | None = self.transport
        may_answer = self.waits_for_request or self._is_answered
        self.take_held()
        if transport is None:
            return
        if may_answer:
            transport.write(refusal.encode())
            transport.close()
        else:
            transport.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget the held bytes."""
        self.take_held()
        super().connection_lost(exc)
