"""The lines of a body are the same however it is cut into chunks."""

import asyncio
from codecs import BOM_UTF8

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from stream_server.web.http.line_reader import Line, LineReader

MAX_LINE = 8


def expected(body: bytes) -> list[Line]:
    lines = [
        Line(n, text.removeprefix(BOM_UTF8) if len(text) <= MAX_LINE else None)
        for n, text in enumerate(body.split(b"\n"), 1)
    ]
    return [line for line in lines if line.text is None or line.text.strip()]


def new_content() -> StreamReader:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.transport = asyncio.Transport()  # a connected one
    return StreamReader(protocol, 1 << 20, loop=loop)  # no transport to pause


async def read(chunks: list[bytes], at_once: int) -> tuple[list[Line], int]:
    content = new_content()
    reader, found = LineReader(content, MAX_LINE), list[Line]()
    for chunk in chunks:
        content.feed_data(chunk)
        while taken := await reader.take(at_once, 1 << 20, 0.0001):
            found += taken
    content.feed_eof()
    while not reader.is_finished:
        found += await reader.take(at_once, 1 << 20, 1)
    return found, reader.next_number


PARTS = st.sampled_from([b"\xef\xbb", b"\xbf", BOM_UTF8, b"\n", b"a"]) | st.binary(max_size=12)


@given(st.lists(PARTS.map(lambda part: part.replace(b"\r", b"\n")), max_size=6), st.integers(1, 3))
def test_chunks_do_not_matter(chunks: list[bytes], at_once: int) -> None:
    found, next_number = asyncio.run(read([chunk for chunk in chunks if chunk], at_once))
    assert found == expected(b"".join(chunks))
    assert next_number == (found[-1].number + 1 if found else 1)


def test_a_batch_ends_at_its_size() -> None:
    async def sizes() -> list[int]:
        content = new_content()
        content.feed_data(b"12345678\n" * 5)
        reader = LineReader(content, MAX_LINE)
        return [len(await reader.take(100, 16, 1)) for _ in range(3)]

    assert asyncio.run(sizes()) == [2, 2, 1]


@pytest.mark.parametrize("chunk", [b"x\n" * 5000, b"\n" * 100_000])
def test_others_have_their_turn_while_a_chunk_of_many_lines_is_read(chunk: bytes) -> None:
    """Between two batches other tasks run, and a batch passes over few empty lines."""

    async def turns() -> int:
        content = new_content()
        content.feed_data(chunk)
        content.feed_eof()
        reader, count = LineReader(content, MAX_LINE), 0

        async def other() -> None:
            nonlocal count
            while True:
                await asyncio.sleep(0)
                count += 1

        task = asyncio.create_task(other())
        while not reader.is_finished:
            await reader.take(100, 1 << 20, 1)
        task.cancel()
        return count

    assert asyncio.run(turns()) >= 40
