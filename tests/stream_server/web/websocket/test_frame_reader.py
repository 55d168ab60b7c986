"""The parser against the cases of the RFC. The order is that of the Autobahn test suite, whose cases are named so."""

import gc
import random
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets import frames
from websockets.extensions.permessage_deflate import PerMessageDeflate

from stream_server.web.websocket.frame_reader import FRAGMENT, MAX_MESSAGE_BYTES, FrameFault, FrameReader
from stream_server.web.websocket.frames import MAX_REASON_BYTES, encode_close, encode_frame
from tests.stream_server.web.websocket.client_frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    FIN,
    MASK,
    PING,
    PONG,
    RSV1,
    RSV2,
    RSV3,
    TEXT,
    close,
    deflated,
    frame,
)

GREETING = "κόσμε 🎉".encode()

LONG = random.Random(1).randbytes(1500).hex().encode() + b"*" * (MAX_MESSAGE_BYTES - 3000)
"""The largest message, of which the first part compresses to more than 1500 bytes."""

LARGEST = b"*" * MAX_MESSAGE_BYTES
BOMB = deflated(b"*" * (MAX_MESSAGE_BYTES + 1))

Outcome = list[tuple[int, bytes]] | int
"""The messages and control frames that were received, or the close code of a fault."""


def outcome(*chunks: bytes, compresses: bool = True) -> Outcome:
    """Feed the chunks to a new parser. Return what it found; parts of messages are left out."""
    reader = FrameReader(compresses=compresses)
    found: list[tuple[int, bytes]] = []
    try:
        for chunk in chunks:
            reader.feed(chunk)
            while (received := reader.read()) is not None:
                if received.opcode != CONTINUATION:
                    found.append((int(received.opcode), received.payload))
    except FrameFault as fault:
        return int(fault.code) if 0 < len(fault.reason) <= MAX_REASON_BYTES else 0
    return found


def in_bytes(data: bytes) -> list[bytes]:
    return [data[n : n + 1] for n in range(len(data))]


GOOD: dict[str, tuple[bytes, Outcome]] = {
    "1.1.1 an empty text": (frame(TEXT), [(TEXT, b"")]),
    "1.1.2 125 bytes": (frame(TEXT, b"*" * 125), [(TEXT, b"*" * 125)]),
    "1.1.3 126 bytes": (frame(TEXT, b"*" * 126), [(TEXT, b"*" * 126)]),
    "1.1.6 65535 bytes": (frame(TEXT, b"*" * 65_535), [(TEXT, b"*" * 65_535)]),
    "1.1.7 65536 bytes": (frame(TEXT, b"*" * 65_536), [(TEXT, b"*" * 65_536)]),
    "1.2.2 binary": (frame(BINARY, bytes(range(125))), [(BINARY, bytes(range(125)))]),
    "2.3 a ping with any bytes": (frame(PING, b"\x00\xff\xfe"), [(PING, b"\x00\xff\xfe")]),
    "2.4 the longest ping": (frame(PING, b"\xfe" * 125), [(PING, b"\xfe" * 125)]),
    "2.7 a pong unasked": (frame(PONG), [(PONG, b"")]),
    "2.10 ten pings": (frame(PING, b"x") * 10, [(PING, b"x")] * 10),
    "5.3 two fragments": (frame(TEXT, b"frag", 0) + frame(CONTINUATION, b"ment"), [(TEXT, b"fragment")]),
    "5.6 a ping inside a message": (
        frame(TEXT, b"frag", 0) + frame(PING, b"!") + frame(CONTINUATION, b"ment"), [(PING, b"!"), (TEXT, b"fragment")],
    ),
    "5 a ping inside a full message": (
        frame(TEXT, LARGEST, 0) + frame(PING, b"!" * 125) + frame(CONTINUATION), [(PING, b"!" * 125), (TEXT, LARGEST)],
    ),
    "5 a close inside a message": (frame(TEXT, b"frag", 0) + close(1000, b"bye"), [(CLOSE, b"bye")]),
    "6.1.2 empty fragments": (
        frame(TEXT, b"", 0) + frame(CONTINUATION, b"", 0) + frame(CONTINUATION), [(TEXT, b"")],
    ),
    "6.2.2 a character in two fragments": (
        frame(TEXT, GREETING[:1], 0) + frame(CONTINUATION, GREETING[1:]), [(TEXT, GREETING)],
    ),
    "6.9 the last code point": (frame(TEXT, "\U0010ffff".encode()), [(TEXT, "\U0010ffff".encode())]),
    "7.3.1 a close without a code": (close(), [(CLOSE, b"")]),
    "7.3.5 the longest reason": (close(1000, b"*" * 123), [(CLOSE, b"*" * 123)]),
    "12 compressed": (frame(TEXT, deflated(GREETING * 9), FIN | RSV1), [(TEXT, GREETING * 9)]),
    "12 compressed and empty": (frame(TEXT, b"\x00", FIN | RSV1), [(TEXT, b"")]),
    "12 compressed in fragments": (
        frame(TEXT, deflated(GREETING)[:3], RSV1) + frame(PING) + frame(CONTINUATION, deflated(GREETING)[3:]),
        [(PING, b""), (TEXT, GREETING)],
    ),
    "12 a small window": (frame(TEXT, deflated(GREETING, window_bits=9), FIN | RSV1), [(TEXT, GREETING)]),
    "12 the largest": (frame(TEXT, deflated(LARGEST), FIN | RSV1), [(TEXT, LARGEST)]),
    "12 the largest, of random text": (frame(TEXT, deflated(LONG), FIN | RSV1), [(TEXT, LONG)]),
    "12 a final block": (frame(TEXT, deflated(GREETING, final=True), FIN | RSV1), [(TEXT, GREETING)]),
    "13 one compressed, one not": (
        frame(TEXT, deflated(b"a"), FIN | RSV1) + frame(TEXT, b"b"), [(TEXT, b"a"), (TEXT, b"b")],
    ),
    "two compressed alike": (frame(TEXT, deflated(b"abc" * 9), FIN | RSV1) * 2, [(TEXT, b"abc" * 9)] * 2),
    "the mask of zeros": (frame(TEXT, b"plain", mask=bytes(4)), [(TEXT, b"plain")]),
    # A client must not send these, and what they mean is clear.
    "12 data behind the final block": (
        frame(TEXT, deflated(b"a", final=True) + b"more", FIN | RSV1), [(TEXT, b"a")],
    ),
    "a length in more bytes than it needs": (frame(TEXT, b"x", size=2), [(TEXT, b"x")]),
    "a length in eight bytes that fits two": (frame(TEXT, b"x" * 126, size=8), [(TEXT, b"x" * 126)]),
}  # fmt: skip

BAD: dict[str, tuple[bytes, Outcome]] = {
    "2.5 a ping of 126 bytes": (frame(PING, b"\xfe" * 126), 1002),
    "3.1 RSV3": (frame(TEXT, b"x", FIN | RSV3), 1002),
    "3.2 RSV2": (frame(TEXT, b"x", FIN | RSV2), 1002),
    "3.6 RSV1 and RSV2 of a ping": (frame(PING, b"", FIN | RSV1 | RSV2), 1002),
    "3 RSV1 of a ping": (frame(PING, b"", FIN | RSV1), 1002),
    "3 RSV1 of a continuation": (frame(TEXT, deflated(b"x"), RSV1) + frame(CONTINUATION, b"", FIN | RSV1), 1002),
    **{f"4.1 opcode {code}": (frame(code, b"x"), 1002) for code in range(3, 8)},
    **{f"4.2 opcode {code}": (frame(code), 1002) for code in range(11, 16)},
    "5.1 a ping in fragments": (frame(PING, b"frag", 0) + frame(CONTINUATION, b"ment"), 1002),
    "5.2 a pong in fragments": (frame(PONG, b"frag", 0), 1002),
    "5.9 a continuation of nothing": (frame(CONTINUATION, b"x"), 1002),
    "5.12 a first fragment of nothing": (frame(CONTINUATION, b"x", 0), 1002),
    "5.18 a text inside a text": (frame(TEXT, b"a", 0) + frame(TEXT, b"b"), 1002),
    "5 a binary inside a text": (frame(TEXT, b"a", 0) + frame(BINARY, b"b"), 1002),
    "6.3.1 no UTF-8": (frame(TEXT, GREETING + b"\xed\xa0\x80edited"), 1007),
    "6.3.2 no UTF-8, in fragments": (frame(TEXT, GREETING, 0) + frame(CONTINUATION, b"\xf4\x90\x80\x80"), 1007),
    "6.6.1 half a character": (frame(TEXT, GREETING[:1]), 1007),
    "6.8 five bytes": (frame(TEXT, b"\xf8\x88\x80\x80\x80"), 1007),
    "6.10 a surrogate": (frame(TEXT, b"\xed\xbf\xbf"), 1007),
    "6.20 an overlong slash": (frame(TEXT, b"\xc0\xaf"), 1007),
    "6 no UTF-8, compressed": (frame(TEXT, deflated(b"\xff"), FIN | RSV1), 1007),
    "7.3.2 a close of one byte": (frame(CLOSE, b"\x03"), 1002),
    "7.3.6 a reason of 124 bytes": (close(1000, b"*" * 124), 1002),
    "7.5.1 a reason that is not UTF-8": (close(1000, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xed\xa0\x80"), 1007),
    "9 too large": (frame(TEXT, b"*" * (MAX_MESSAGE_BYTES + 1)), 1009),
    "9 too large, in fragments": (frame(TEXT, b"*" * MAX_MESSAGE_BYTES, 0) + frame(CONTINUATION, b"*"), 1009),
    "unmasked": (frame(TEXT, b"x", mask=None), 1002),
    "a negative length": (bytes((FIN | TEXT, 0xFF)) + b"\x80" + bytes(7) + MASK, 1009),
    "a ping as large as no message": (frame(PING, b"*" * (MAX_MESSAGE_BYTES + 200)), 1009),
    "an inflate bomb": (frame(TEXT, deflated(b"*" * 10_000_000), FIN | RSV1), 1009),
    "an inflate bomb in fragments": (
        frame(TEXT, BOMB[:9], RSV1) + frame(CONTINUATION, BOMB[9:]), 1009,
    ),
    "an inflate bomb of one byte too many": (frame(TEXT, BOMB, FIN | RSV1), 1009),
    "no deflate": (frame(TEXT, b"\xff\xff\xff", FIN | RSV1), 1002),
}  # fmt: skip

CASES = GOOD | BAD


@pytest.mark.parametrize("case", CASES)
def test_a_case_at_once_and_byte_by_byte(case: str) -> None:
    data, expected = CASES[case]
    assert outcome(data) == expected
    assert outcome(*in_bytes(data[:2000]), data[2000:]) == expected


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999])
def test_good_close_codes(code: int) -> None:
    reader = FrameReader(compresses=False)
    reader.feed(close(code, b"bye"))
    assert reader.read() == (CLOSE, b"bye", code)


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])
def test_bad_close_codes(code: int) -> None:
    assert outcome(close(code)) == 1002


@pytest.mark.parametrize("first", [deflated(b"a", final=True), b""], ids=["behind a final block", "of nothing"])
@pytest.mark.parametrize("size", [7, 4000, MAX_MESSAGE_BYTES])
def test_bytes_that_expand_to_nothing_are_counted(first: bytes, size: int) -> None:
    """The library keeps what stands behind a final block. So a message is limited before it is expanded, too."""
    raw = first + b"\x00\x00\x00\xff\xff" * MAX_MESSAGE_BYTES
    sent = [raw[n : n + size] for n in range(len(first), 2 * MAX_MESSAGE_BYTES, size)]
    reader = FrameReader(compresses=True)
    reader.feed(frame(TEXT, first, RSV1) + b"".join(frame(CONTINUATION, piece, 0) for piece in sent))
    for _ in range(1 + (MAX_MESSAGE_BYTES - len(first)) // size):
        assert reader.read() == FRAGMENT
    with pytest.raises(FrameFault) as fault:
        reader.read()
    assert fault.value.code == 1009


def test_the_bytes_of_each_message_are_counted_by_themselves() -> None:
    text = random.Random(1).randbytes(30_000).hex().encode()
    raw, ping = deflated(text), frame(PING, b"*" * 125)
    sent = frame(TEXT, raw[:9], RSV1) + ping * 400 + frame(CONTINUATION, raw[9:])
    found = [(PING, b"*" * 125)] * 400 + [(TEXT, text)]
    assert len(raw) * 3 > MAX_MESSAGE_BYTES
    assert outcome(sent * 3) == found * 3


def test_rsv1_needs_the_extension() -> None:
    assert outcome(frame(TEXT, deflated(b"x"), FIN | RSV1), compresses=False) == 1002


@pytest.mark.parametrize(
    ("early", "code"),
    [
        (frame(TEXT, b"*" * 200)[:1] + b"\x01", 1002),
        (frame(TEXT, b"*" * 70_000)[:14], 1009),
        (frame(3)[:2], 1002),
        (frame(TEXT, b"\xff", 0), []),
    ],
    ids=["an unmasked frame by its second byte", "a length by the header", "an opcode by its header", "UTF-8 at last"],
)
def test_a_fault_is_found_before_the_rest_has_come(early: bytes, code: int) -> None:
    assert outcome(early) == code


@pytest.mark.extended
@given(
    st.lists(st.tuples(st.sampled_from((1, 2)), st.binary(max_size=300), st.integers(1, 4), st.booleans()), max_size=6)
)
def test_frames_of_another_implementation_are_understood(sent: list[tuple[int, bytes, int, bool]]) -> None:
    """Messages of the library `websockets`, in fragments and compressed, with a ping behind each frame."""
    data, expected = b"", []
    for opcode, raw, parts, compressed in sent:
        payload = raw if opcode == BINARY else raw.hex().encode()
        extensions = [PerMessageDeflate(True, True, 15, 15)] if compressed else []
        size = len(payload) // parts + 1
        pieces = [payload[n * size : (n + 1) * size] for n in range(parts)]
        for n, piece in enumerate(pieces):
            code = frames.Opcode(0 if n else opcode)
            made = frames.Frame(code, piece, fin=n == parts - 1)
            data += made.serialize(mask=True, extensions=extensions) + frame(PING)
        expected += [(PING, b"")] * (parts - 1) + [(opcode, payload), (PING, b"")]
    assert outcome(data) == expected


def test_a_reader_holds_nothing_between_messages() -> None:
    reader = FrameReader(compresses=True)
    assert reader.is_idle
    for part, idle in ((frame(TEXT, b"ab", 0), False), (frame(CONTINUATION, b"c")[:-1], False)):
        reader.feed(part)
        while reader.read() is not None:
            pass
        assert reader.is_idle is idle
    reader.feed(frame(CONTINUATION, b"c")[-1:])
    assert reader.read() == (TEXT, b"abc", None)
    assert reader.is_idle


def test_a_reader_of_an_unfinished_frame_is_freed_at_once() -> None:
    """Many clients may leave so, and Python's collector comes seldom."""
    gc.disable()
    try:
        reader = FrameReader(compresses=True)
        left = weakref.ref(reader)
        reader.feed(frame(TEXT, b"ab", 0) + frame(CONTINUATION, b"c")[:-1])
        assert [reader.read(), reader.read()] == [FRAGMENT, None]
        del reader
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("length", [0, 1, 125, 126, 65_535, 65_536])
def test_a_frame_of_the_server_has_no_mask(length: int) -> None:
    payload = b"*" * length
    assert encode_frame(frames.Opcode.TEXT, payload) == frame(TEXT, payload, mask=None)


def test_a_long_reason_is_cut_at_a_character() -> None:
    assert encode_close(1000, "é" * 100)[4:] == ("é" * (MAX_REASON_BYTES // 2)).encode()
