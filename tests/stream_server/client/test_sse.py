"""The SSE parser, with the examples and details of WHATWG HTML."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_server.client.bounds import MAX_RECEIVED_BYTES
from stream_server.client.connection import Frame, SseParser
from stream_server.client.errors import Malformed


def parse(*chunks: bytes) -> list[Frame]:
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
        (b"retry: 2500\n\n", [Frame(None, None, 2.5)]),
        (b"retry: soon\ndata: x\n\n", [Frame(b"x")]),
        (b"event: post\nunknown: y\ndata: x\n\n", [Frame(b"x")]),
        (b"data: x\r\n\r\ndata: y\r\r", [Frame(b"x"), Frame(b"y")]),
        (b"\xef\xbb\xbfdata: x\n\n", [Frame(b"x")]),
        (b"data: the end is missing", []),
    ],
)
def test_each_construct_of_the_standard_gives_its_frames(stream: bytes, frames: list[Frame]) -> None:
    assert parse(stream) == frames


@given(st.lists(st.sampled_from([b"data: x", b"id: 1", b"data: \xc3\xa9", b"", b": c"]), max_size=12), st.data())
def test_frames_do_not_depend_on_where_chunks_end(lines: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(line + data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])) for line in lines) + b"data: z\n\n"
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    bounds = [0, *cuts, len(whole)]
    assert parse(*(whole[a:b] for a, b in pairwise(bounds))) == parse(whole)


def test_an_endless_line_or_message_is_refused() -> None:
    with pytest.raises(Malformed):
        parse(*([b"x" * 2**20] * (MAX_RECEIVED_BYTES // 2**20 + 1)))
    with pytest.raises(Malformed):
        parse(*([b"data: " + b"x" * 2**20 + b"\n"] * (MAX_RECEIVED_BYTES // 2**20 + 1)))


def test_complete_messages_do_not_count_towards_the_size_limit() -> None:
    parser = SseParser()
    chunk = b"data: " + b"x" * 2**20 + b"\n\n"
    count = MAX_RECEIVED_BYTES // 2**20 + 2
    assert sum(len(list(parser.feed(chunk))) for _ in range(count)) == count
