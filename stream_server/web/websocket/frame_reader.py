"""Reads what a client sends on a WebSocket: the library `websockets` parses the frames, and here they become messages.

One frame is parsed at a time, so a client that sends thousands of them in one packet waits between them as it must.
The memory is bounded by the largest message and one read of the socket.
"""

from collections.abc import Generator
from typing import NamedTuple

from websockets.exceptions import PayloadTooBig, ProtocolError
from websockets.frames import Close, CloseCode, Frame, Opcode

from stream_server.web.websocket.deflate import MessageInflater
from stream_server.web.websocket.frames import MAX_CONTROL_BYTES

MAX_MESSAGE_BYTES = 65_536
"""Largest message of a client in bytes, before and after it is expanded."""


class FrameFault(Exception):
    """The client broke the protocol. ``code`` and ``reason`` are for the close frame."""

    def __init__(self, code: CloseCode, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Received(NamedTuple):
    """A message or a control frame of the client.

    A part of a message that is not yet complete has the opcode `CONT` and no payload. Of a `CLOSE`, ``code`` is the
    client's code (None without one), and the payload is its reason.
    """

    opcode: Opcode
    payload: bytes
    code: int | None = None


FRAGMENT = Received(Opcode.CONT, b"")
"""A part of a message came, and the message is not yet complete."""


class FrameReader:
    """Reads the bytes that one client sends. After a fault or a close frame, do not use it any more."""

    def __init__(self, *, compresses: bool) -> None:
        """``compresses`` is whether compression was agreed on in the handshake."""
        buffer = self._buffer = bytearray()

        def read_exact(count: int) -> Generator[None, None, bytearray]:
            while len(buffer) < count:
                yield
            taken = buffer[:count]
            del buffer[:count]
            return taken

        # A method would refer to the reader. A frame that never ends would keep it until the collector comes.
        self._read_exact = read_exact
        self._extensions = [MessageInflater(MAX_MESSAGE_BYTES)] if compresses else []
        self._frame: Generator[None, None, Frame] | None = None
        self._opcode: Opcode | None = None
        self._payload = bytearray()

    @property
    def is_idle(self) -> bool:
        """Whether no frame and no message has begun, so the reader holds nothing."""
        return not self._buffer and self._frame is None and self._opcode is None

    def feed(self, data: bytes) -> None:
        """Take bytes as they came from the socket."""
        self._buffer += data

    def read(self) -> Received | None:
        """Return the next message, control frame or `FRAGMENT`; None if more bytes are needed. Raises FrameFault."""
        try:
            frame = self._read_frame()
            return None if frame is None else self._take(frame)
        except ProtocolError as error:
            raise FrameFault(CloseCode.PROTOCOL_ERROR, str(error)) from None
        except PayloadTooBig:
            reason = f"a message may have at most {MAX_MESSAGE_BYTES} bytes, also when it is expanded"
            raise FrameFault(CloseCode.MESSAGE_TOO_BIG, reason) from None
        except UnicodeDecodeError:
            raise FrameFault(CloseCode.INVALID_DATA, "the text is not UTF-8") from None

    def _read_frame(self) -> Frame | None:
        """Return the next frame, expanded and without its mask; None if more bytes are needed."""
        if self._frame is None:
            if not self._buffer:
                return None
            # A ping may come inside a message that is as large as it may be.
            room = MAX_MESSAGE_BYTES - len(self._payload) + MAX_CONTROL_BYTES
            self._frame = Frame.parse(self._read_exact, mask=True, max_size=room, extensions=self._extensions)
        try:
            next(self._frame)
        except StopIteration as end:
            self._frame = None
            frame: Frame = end.value
            return frame
        return None

    def _take(self, frame: Frame) -> Received:
        """Add a frame to its message (RFC 6455 §5.4), or return what it is by itself."""
        opcode, data = frame.opcode, bytes(frame.data)
        if opcode is Opcode.CLOSE:
            code = Close.parse(data).code
            return Received(opcode, data[2:], code if data else None)
        if opcode >= Opcode.CLOSE:
            return Received(opcode, data)
        if (opcode is Opcode.CONT) is (self._opcode is None):
            raise ProtocolError("a message must be continued until it ends")
        self._payload += data
        if len(self._payload) > MAX_MESSAGE_BYTES:
            raise PayloadTooBig(len(self._payload), MAX_MESSAGE_BYTES)
        first = opcode if self._opcode is None else self._opcode
        self._opcode = None if frame.fin else first
        if not frame.fin:
            return FRAGMENT
        payload = bytes(self._payload)
        self._payload.clear()
        if first is Opcode.TEXT:
            payload.decode()
        return Received(first, payload)
