"""Standard output and standard error that never make the process wait.

Nobody may read them: a full pipe, or a terminal after Ctrl-S. A write then waits without an end, and with it the event
loop, all streams and even SIGTERM. So a thread writes. What finds no room in its bounded queue is dropped and counted,
and the log says so when somebody reads again.

Each write of the process arrives as a whole, although several workers share a pipe. The kernel keeps only 4 KiB
together (``PIPE_BUF``, POSIX ``write``), so the thread locks a pipe for a write.
"""

import atexit
import fcntl
import io
import logging
import os
import select
import stat
import sys
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

logger = logging.getLogger(__name__)

MAX_UNWRITTEN_BYTES = 2**20
"""Most bytes that wait for a reader. What exceeds them is dropped."""


class OutputThread(io.RawIOBase):
    """A binary output to ``descriptor``, which a thread of its own writes. No method waits, except :meth:`finish`.

    Attributes:
        dropped: Number of writes that were lost, because nobody read, or because the output failed.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self.dropped = 0
        self._descriptor = descriptor
        self._is_pipe = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        threading.Thread(target=self._run, name=f"output {descriptor}", daemon=True).start()

    def writable(self) -> bool:
        """Return True, as the protocol of Python's files wants it."""
        return True

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the output is a terminal."""
        return os.isatty(self._descriptor)

    def write(self, data: "ReadableBuffer", /) -> int:
        """Leave ``data`` to the thread, or drop it if too much waits. Return its length in bytes either way."""
        text = bytes(data)
        with self._changed:
            if self._waiting_bytes + len(text) > MAX_UNWRITTEN_BYTES:
                self.dropped += 1
            else:
                self._waiting.append(text)
                self._waiting_bytes += len(text)
                self._changed.notify_all()
        return len(text)

    def finish(self, seconds: float = 0.5) -> None:
        """Wait until all is written, for at most ``seconds``."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, seconds)

    def _run(self) -> None:
        reported = 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                text = self._waiting[0]
            is_written = self._write_whole(text)
            with self._changed:
                self.dropped += not is_written
                self._waiting.popleft()
                self._waiting_bytes -= len(text)
                has_caught_up = is_written and not self._waiting
                self._changed.notify_all()
            if has_caught_up and self.dropped > reported:
                logger.warning("%d lines were dropped, because nothing read them", self.dropped - reported)
                reported = self.dropped

    def _write_whole(self, text: bytes) -> bool:
        """Write ``text`` without a gap for the text of another process. Return False if the output fails."""
        self._lock(fcntl.LOCK_EX)
        try:
            while text:
                try:
                    text = text[os.write(self._descriptor, text) :]
                except BlockingIOError:  # whoever started this process made the pipe so
                    poll = select.poll()
                    poll.register(self._descriptor, select.POLLOUT)
                    poll.poll()
        except OSError:
            return False
        finally:
            self._lock(fcntl.LOCK_UN)
        return True

    def _lock(self, operation: int) -> None:
        if self._is_pipe:
            with suppress(OSError):  # no system has to lock pipes; then long lines may mix
                fcntl.lockf(self._descriptor, operation)


_outputs: list[OutputThread] = []


def lines_dropped() -> int:
    """Return how many lines of output and log this process has dropped."""
    return sum(output.dropped for output in _outputs)


def use_for_standard_output() -> None:
    """Replace ``sys.stdout`` and ``sys.stderr``, unless a test has done so. Use this in a process that serves."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is getattr(sys, f"__{name}__") and isinstance(stream, io.TextIOWrapper):
            stream.flush()
            # Standard output and error may be one pipe, which then has one thread.
            same = (known for known in _outputs if os.path.sameopenfile(known.fileno(), stream.fileno()))
            output: Any = next(same, None)
            if output is None:
                output = OutputThread(stream.fileno())
                _outputs.append(output)
            setattr(sys, name, io.TextIOWrapper(output, stream.encoding, stream.errors, write_through=True))


@atexit.register
def finish() -> None:
    """Wait until the last lines of this process are written, for at most half a second."""
    for output in _outputs:
        output.finish()


def open_closed_descriptors() -> None:
    """Open descriptors 0, 1 and 2 on ``/dev/null`` if whoever started this process has closed them.

    Otherwise a socket or a file of the server gets such a number, and Python's last words are written into it.
    """
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, descriptor)  # child processes inherit it, unlike what `open` returns
            if opened != descriptor:
                os.close(opened)
            stream = open(descriptor, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
