"""The connection of an open WebSocket: a stream's connection that also reads what the client sends.

The hub writes frames to it as to every stream. The parser exists only while a client's bytes are in it. Reading stops
while an operation runs, while the client does not take its answers, and while its user or its address has taken more
than its share of processor time. So one that sends without a pause, also by many sockets, costs the others little.
"""

import asyncio
from typing import Protocol

from websockets.frames import CloseCode, Opcode

from stream_server.hub import disconnect as reasons
from stream_server.hub.disconnect import DisconnectReason
from stream_server.runtime.event_loop import TurnQueue
from stream_server.web.limits.processor_time import Payer
from stream_server.web.streaming.stream_connection import Listener, StreamConnection
from stream_server.web.websocket.frame_reader import FrameFault, FrameReader, Received
from stream_server.web.websocket.frames import encode_close, encode_frame

CLOSE_SECONDS = 5.0
"""Seconds in which a client takes the last bytes, and answers a close frame, before its connection is dropped."""

_OPEN, _CLOSING, _DEAF = range(3)
"""States of a WebSocket: open; the server has sent its close frame; whatever the client sends is ignored."""

CLOSE_CODES = {
    reasons.CLOSED_BY_USER.code: CloseCode.NORMAL_CLOSURE,
    reasons.BACKFILL_DONE.code: CloseCode.NORMAL_CLOSURE,
    "shutdown": CloseCode.GOING_AWAY,
    reasons.RESYNC.code: CloseCode.TRY_AGAIN_LATER,
    reasons.TOO_SLOW.code: CloseCode.TRY_AGAIN_LATER,
    "protocol_error": CloseCode.PROTOCOL_ERROR,
    "unsupported_data": CloseCode.UNSUPPORTED_DATA,
    "invalid_data": CloseCode.INVALID_DATA,
    "message_too_big": CloseCode.MESSAGE_TOO_BIG,
}
"""The close code for each code of a `goodbye`. The others, such as an expired token, are `POLICY_VIOLATION`."""

FAULT_CODES = {code: name for name, code in CLOSE_CODES.items() if code in {1002, 1003, 1007, 1009}}
"""The code of the `goodbye` for each close code of a client's fault."""


class Receiver(Listener, Protocol):
    """A user of a connection, which tells it about messages, faults and the end of the client."""

    def on_text(self, payload: bytes) -> None:
        """Handle a text message."""

    def on_fault(self, reason: DisconnectReason) -> None:
        """End the WebSocket, because the client broke the protocol."""


class WebSocketConnection(StreamConnection):
    """The socket of one open WebSocket.

    Attributes:
        receiver: Handles the client's messages. The code that makes the connection must set it.
        payer: Whose processor time the client's messages take.
    """

    __slots__ = (
        "_compresses", "_has_sent_close", "_is_busy", "_is_waiting", "_reader", "_state", "payer", "receiver",
    )  # fmt: skip

    receiver: Receiver

    def __init__(
        self, transport: asyncio.Transport, *, buffer_bytes: int, departures: TurnQueue, compresses: bool, payer: Payer
    ) -> None:
        """``compresses`` is whether compression was agreed on. For the others see `StreamConnection`."""
        super().__init__(transport, chunked=False, buffer_bytes=buffer_bytes, departures=departures)
        self.payer = payer
        self._compresses = compresses
        self._has_sent_close = False
        self._is_busy = False
        self._is_waiting = False
        self._reader: FrameReader | None = None
        self._state = _OPEN

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the frames that wait: nobody would end the stream or the task that they begin.

        The receiver refers to the connection, and Python's collector looks for such cycles too seldom to rely on it.
        """
        self._state = _DEAF
        self._reader = None
        self.payer.leave(self._take_turn)
        super().connection_lost(exc)
        del self.receiver

    def data_received(self, data: bytes) -> None:
        """Handle what the client sent. After a fault or a close frame it is ignored."""
        if self._state >= _DEAF or not data:
            return
        if self._reader is None:
            self._reader = FrameReader(compresses=self._compresses)
        self._reader.feed(data)
        self._go_on()

    def _read_frame(self) -> bool:
        """Handle the next frame that has come. Return whether another one may be handled now.

        Frames wait while an operation runs, and while the client's buffer is full.
        """
        reader = self._reader
        if reader is None:
            return False  # the client has closed the WebSocket, or must not be heard any more
        if self._is_busy or self.is_full:
            self._pause_reading()
            return False
        try:
            received = reader.read()
        except FrameFault as fault:
            self._fail(fault.code, fault.reason)
            return False
        if received is not None:
            self._handle(received)
            return True
        if reader.is_idle:
            self._reader = None
        self._resume_reading()
        return False

    def _resume_reading(self) -> None:
        if not self._transport.is_closing() and not self._transport.is_reading():
            self._transport.resume_reading()

    def _pause_reading(self) -> None:
        if self._state < _DEAF and not self._transport.is_closing():
            self._transport.pause_reading()

    def _take_turn(self) -> None:
        self._is_waiting = False
        self._go_on()

    def _go_on(self) -> None:
        """Handle the frames that have come, as long as who pays for them may. Read no more while some wait."""
        if self._state >= _DEAF or self._is_waiting:
            return
        if self._reader is None:
            self._resume_reading()
        elif self.payer.repeat(self._read_frame):
            self._pause_reading()
            self._is_waiting = True
            self.payer.wait(self._take_turn)

    def set_busy(self, *, is_busy: bool) -> None:
        """Stop reading while the answer to a message takes longer than one call, or go on with it."""
        self._is_busy = is_busy
        if not is_busy:
            self._go_on()

    def resume_writing(self) -> None:
        """Handle the waiting frames of a client that has taken its answers. The transport calls this."""
        super().resume_writing()
        self._go_on()

    def _handle(self, received: Received) -> None:
        if received.opcode is Opcode.CLOSE:
            self._on_close_frame(received)
        elif self._state != _OPEN:
            return  # the close frame was sent, and the client may not know it yet
        elif received.opcode is Opcode.TEXT:
            self.receiver.on_text(received.payload)
        elif received.opcode is Opcode.PING:
            self.send(encode_frame(Opcode.PONG, received.payload))
        elif received.opcode is Opcode.BINARY:
            self._fail(CloseCode.UNSUPPORTED_DATA, "send text, not binary messages")

    def send(self, frame: bytes) -> None:
        """Send a frame to this client alone. Does nothing while the WebSocket ends."""
        if self._state == _OPEN and not self._transport.is_closing():
            self.write(frame)

    def _on_close_frame(self, received: Received) -> None:
        """Answer a close frame, and close the connection when the client has taken it."""
        self._reader = None
        was_closing, self._state = self._state, _DEAF
        if was_closing == _OPEN:
            self.receiver.stop()
        if self._transport.is_closing():
            return
        if was_closing == _OPEN:
            self.write(encode_close(CloseCode.NORMAL_CLOSURE if received.code is None else received.code))
        if self.buffered_bytes():
            self._drop_later()
        self._transport.close()

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Begin to end a WebSocket whose client broke the protocol. Ignore all further bytes of the client."""
        self._reader = None
        self._resume_reading()  # else nobody would notice that the client has left
        was_closing, self._state = self._state, _DEAF
        if was_closing == _OPEN:
            self.receiver.on_fault(DisconnectReason(FAULT_CODES[code], reason, None))

    def finish(self, reason: DisconnectReason) -> None:
        """Send the close frame for the reason of a `goodbye`. The caller drops the connection if it stays open."""
        self._send_close(CLOSE_CODES.get(reason.code, CloseCode.POLICY_VIOLATION), reason.text)

    def fail(self) -> None:
        """Close the WebSocket because of a fault of the server."""
        self._send_close(CloseCode.INTERNAL_ERROR, "the server failed; its log has the details")
        self._drop_later()

    def close(self, code: CloseCode, reason: str) -> None:
        """Close a WebSocket on which no stream runs. Drop the connection if the client does not answer in time."""
        self._send_close(code, reason)
        self._drop_later()

    def _send_close(self, code: CloseCode, reason: str) -> None:
        """Send a close frame, the last frame of all. The client answers it and waits for the end of the connection."""
        if self._has_sent_close or self._transport.is_closing():
            return
        self._has_sent_close = True
        self.write(encode_close(code, reason))
        if self._state >= _DEAF:  # the client's answer would not be understood
            self._transport.write_eof()
        else:
            self._state = _CLOSING
            self._is_busy = False
            self._go_on()

    def _drop_later(self) -> None:
        asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._transport.abort)
