"""The chunks of a body: the same data however they are cut, fewer chunks for aiohttp, and each fault is found."""

import random

import pytest

from stream_server.web.http.chunks import MAX_CHUNKS_AT_ONCE, MAX_LINE_BYTES, BadChunks, ChunkedBody

END = b"0\r\n\r\n"


def decode(chunks: bytes) -> bytes:
    """Read valid chunks without extensions and trailers: the oracle of what aiohttp gets."""
    data, rest = b"", chunks
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        piece, rest = rest[: int(size, 16)], rest[int(size, 16) :]
        assert rest.startswith(b"\r\n")
        data, rest = data + piece, rest[2:]
    return data


@pytest.mark.parametrize("seed", range(30))
def test_no_cut_changes_the_data(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [chance.randbytes(chance.choice([1, 2, 17, 300])) for _ in range(20)]
    extensions = ["", ";a=b", ' ;x="y z"', ";\t"]
    sent = b"".join(b"%x%b\r\n%b\r\n" % (len(one), chance.choice(extensions).encode(), one) for one in pieces)
    sent += b"0\r\n" + chance.choice([b"", b"Trailer: x\r\nOther: y\r\n"]) + b"\r\n"
    body, held, passed = ChunkedBody(), bytearray(), b""
    cuts = sorted(chance.choices(range(len(sent)), k=chance.choice([0, 5, 200])))
    for start, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        held += sent[start:end]
        passed += body.take(held)
    assert body.is_complete
    assert not held
    assert passed.endswith(END)
    assert decode(passed.removesuffix(END)) == b"".join(pieces)


def test_chunks_of_one_byte_become_one_for_each_turn() -> None:
    body, held = ChunkedBody(), bytearray(b"1\r\nx\r\n" * 3000 + END)
    parts = []
    while not body.is_complete:
        parts.append(body.take(held))
    assert [len(decode(part.removesuffix(END))) for part in parts] == [MAX_CHUNKS_AT_ONCE] * 2 + [3000 - 2048]


@pytest.mark.parametrize(
    "sent",
    [
        b"zz\r\n", b"1\r\nxy", b"1\nx", b"\r\n", b"-1\r\n", b"+1\r\n", b"0x1\r\n", b"1 1\r\n", b"1 \r\n", b"f" * 16,
        b"1;\x00", b"1;" + b"a" * MAX_LINE_BYTES, b"0\r\nno trailer\r\n", b"0\r\n" + b"T: x\r\n" * MAX_LINE_BYTES,
        b"0\r\nT: " + b"x" * MAX_LINE_BYTES,
    ],
)  # fmt: skip
def test_a_fault_is_found_before_more_comes(sent: bytes) -> None:
    with pytest.raises(BadChunks):
        ChunkedBody().take(bytearray(sent))
