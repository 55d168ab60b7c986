"""Tests of the parser of JSON lines."""

from itertools import chain

import pytest

from stream_server.client.errors import Malformed
from stream_server.client.frame import MAX_MESSAGE_BYTES, Frame
from stream_server.client.ndjson import NdjsonParser


def test_lines_are_frames_wherever_they_are_cut() -> None:
    """The parser yields a line once its end arrives, and skips empty lines."""
    parser = NdjsonParser()
    chunks = (b'{"a"', b":1}\n\r\n", b'{"b":2}\n{"c"', b":3}\n")
    assert [list(parser.feed(chunk)) for chunk in chunks] == [
        [], [Frame(b'{"a":1}')], [Frame(b'{"b":2}')], [Frame(b'{"c":3}')]
    ]  # fmt: skip


def test_refuses_a_line_without_an_end() -> None:
    """The parser refuses an endless line before it fills the memory."""
    parser = NdjsonParser()
    chunks = [b"x" * 2**20] * (MAX_MESSAGE_BYTES // 2**20 + 1)
    with pytest.raises(Malformed):
        list(chain.from_iterable(map(parser.feed, chunks)))
