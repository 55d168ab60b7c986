"""The parser of JSON lines."""

from itertools import chain

import pytest

from stream_server.client.bounds import MAX_RECEIVED_BYTES
from stream_server.client.connection import Frame, NdjsonParser
from stream_server.client.errors import Malformed


def test_a_line_is_one_frame_wherever_chunks_end() -> None:
    parser = NdjsonParser()
    chunks = (b'{"a"', b":1}\n\r\n", b'{"b":2}\n{"c"', b":3}\n")
    assert [list(parser.feed(chunk)) for chunk in chunks] == [
        [], [Frame(b'{"a":1}')], [Frame(b'{"b":2}')], [Frame(b'{"c":3}')]
    ]  # fmt: skip


def test_an_endless_line_is_refused() -> None:
    parser = NdjsonParser()
    chunks = [b"x" * 2**20] * (MAX_RECEIVED_BYTES // 2**20 + 1)
    with pytest.raises(Malformed):
        list(chain.from_iterable(map(parser.feed, chunks)))
