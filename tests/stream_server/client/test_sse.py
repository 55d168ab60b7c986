"""Tests of the SSE parser with the examples and details of WHATWG HTML."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame
from stream_server.client.sse import SseParser


def parse(*chunks: bytes) -> list[Frame]:
    """Return all frames of one connection that receives these chunks."""
    parser = SseParser()
    return [frame for chunk in chunks for frame in parser.feed(chunk)]


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"data: one\n\n", [Frame(b"one")]),
        (b"data:one\n\ndata:  two\n\n", [Frame(b"one"), Frame(b" two")]),
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [Frame(b"YHOO\n+2\n10")]),
        (b": comment\n\ndata: x\n\n", [Frame(b"x")]),
        (b"data\n\n", [Frame(b"")]),
        (b"id: 7\ndata: x\n\n", [Frame(b"x", "7")]),
        (b"id: 7\n\n", [Frame(None, "7")]),
        (b"id\n\n", [Frame(None, "")]),
        (b"id: a\0b\ndata: x\n\n", [Frame(b"x")]),
        (b"retry: 2500\n\n", [Frame(None, None, 2500)]),
        (b"retry: soon\ndata: x\n\n", [Frame(b"x")]),
        (b"event: post\nunknown: y\ndata: x\n\n", [Frame(b"x")]),
        (b"data: x\r\n\r\ndata: y\r\r", [Frame(b"x"), Frame(b"y")]),
        (b"\xef\xbb\xbfdata: x\n\n", [Frame(b"x")]),
        (b"data: the end is missing", []),
    ],
)
def test_reads_what_the_standard_says(stream: bytes, frames: list[Frame]) -> None:
    """Each construct of the standard yields the frames that it defines."""
    assert parse(stream) == frames


@given(st.lists(st.sampled_from([b"data: x", b"id: 1", b"data: \xc3\xa9", b"", b": c"]), max_size=12), st.data())
def test_cuts_of_the_network_do_not_matter(lines: list[bytes], data: st.DataObject) -> None:
    """Frames do not depend on where the stream is split into chunks, also inside a CRLF."""
    whole = b"".join(line + data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])) for line in lines) + b"data: z\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    bounds = [0, *cuts, len(whole)]
    assert parse(*(whole[a:b] for a, b in pairwise(bounds))) == parse(whole)


def test_refuses_a_message_without_an_end() -> None:
    """The parser refuses an endless line or an endless message before it fills the memory."""
    with pytest.raises(Malformed):
        parse(*([b"x" * 2**20] * (MAX_MESSAGE_BYTES // 2**20 + 1)))
    with pytest.raises(Malformed):
        parse(*([b"data: " + b"x" * 2**20 + b"\n"] * (MAX_MESSAGE_BYTES // 2**20 + 1)))


def test_many_messages_are_no_long_message() -> None:
    """Complete messages do not count towards the size limit."""
    parser = SseParser()
    chunk = b"data: " + b"x" * 2**20 + b"\n\n"
    assert (
        sum(len(list(parser.feed(chunk))) for _ in range(MAX_MESSAGE_BYTES // 2**20 + 2))
        == MAX_MESSAGE_BYTES // 2**20 + 2
    )
