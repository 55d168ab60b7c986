"""Output that nobody reads holds nobody: it is dropped and counted, and what arrives is whole."""

import fcntl
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from stream_server.runtime.output_thread import MAX_UNWRITTEN_BYTES, OutputThread
from tests.waiting import PATIENCE, eventually

LINE = b"x" * 1023 + b"\n"
LONG_LINE_BYTES = 16 * 1024
LINES_OF_EACH = 100

WRITER = f"""
import sys
from stream_server.runtime.output_thread import OutputThread
output = OutputThread(int(sys.argv[1]))
for _ in range({LINES_OF_EACH}):
    output.write(sys.argv[2].encode() * {LONG_LINE_BYTES - 1} + b"\\n")
    output.finish({PATIENCE})
"""


class Pipe:
    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def read_all_now(self) -> bytes:
        """Return what the pipe holds at the moment."""
        os.set_blocking(self.reader, False)
        found = b""
        with suppress(BlockingIOError):
            while more := os.read(self.reader, 2**16):
                found += more
        return found


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    for descriptor in (made.reader, made.writer):
        with suppress(OSError):
            os.close(descriptor)


async def test_nobody_waits_for_a_reader_and_the_log_says_what_was_lost(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    output = OutputThread(pipe.writer)
    count = 2 * MAX_UNWRITTEN_BYTES // len(LINE)
    for _ in range(count):
        assert output.write(LINE) == len(LINE)
    output.finish(0.01)
    assert 0 < output.dropped < count
    received = bytearray()

    def has_all() -> bool:
        received.extend(pipe.read_all_now())
        return len(received) == (count - output.dropped) * len(LINE)

    await eventually(has_all)
    assert set(bytes(received).splitlines()) == {LINE.strip()}
    await eventually(lambda: f"{output.dropped} lines were dropped, because nothing read them" in caplog.text)
    output.write(LINE)
    await eventually(lambda: pipe.read_all_now() == LINE)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


@pytest.mark.usefixtures("caplog")
async def test_a_reader_that_has_left_is_no_error(pipe: Pipe) -> None:
    output = OutputThread(pipe.writer)
    os.close(pipe.reader)
    output.write(LINE)
    output.finish(PATIENCE)
    assert output.dropped == 1


async def test_a_pipe_that_refuses_instead_of_waiting_loses_nothing(pipe: Pipe) -> None:
    os.set_blocking(pipe.writer, False)
    output = OutputThread(pipe.writer)
    count = 4 * fcntl.fcntl(pipe.writer, fcntl.F_GETPIPE_SZ) // len(LINE)
    for _ in range(count):
        output.write(LINE)
    received = bytearray()

    def has_all() -> bool:
        received.extend(pipe.read_all_now())
        return len(received) == count * len(LINE)

    await eventually(has_all)
    assert output.dropped == 0


def test_long_lines_of_several_processes_do_not_mix(pipe: Pipe) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(pipe.writer), letter], pass_fds=[pipe.writer])
        for letter in "abc"
    ]
    os.close(pipe.writer)
    received = b""
    while more := os.read(pipe.reader, 4096):
        received += more
    assert [writer.wait(PATIENCE) for writer in writers] == [0, 0, 0]
    found = sorted(received.splitlines())
    wanted = [letter * (LONG_LINE_BYTES - 1) for letter in (b"a", b"b", b"c") for _ in range(LINES_OF_EACH)]
    assert [line[:1] + b"%d" % len(line) for line in found] == [line[:1] + b"%d" % len(line) for line in wanted]
    assert found == wanted
