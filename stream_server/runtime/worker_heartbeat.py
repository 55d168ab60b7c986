"""The worker's side of its socket to the supervisor: it sends heartbeats and notices the end of the supervisor.

The worker sends one byte per second from its event loop, so a supervisor sees that the loop still runs. The supervisor
never sends anything. When the socket closes, the supervisor is gone, however it died.
"""

import asyncio
import faulthandler
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Self

BEAT_INTERVAL_SECONDS = 1.0
"""Seconds between two heartbeats."""

FROZEN_TIMEOUT_SECONDS = 30.0
"""Seconds after which a worker whose event loop stands still ends itself, in case no supervisor is left to kill it."""


class WorkerHeartbeat:
    """Sends heartbeats to the supervisor and detects its end.

    Start :meth:`run` when the worker listens, because the first heartbeat means that it serves. When the supervisor is
    gone, :meth:`run` calls ``on_orphaned`` once and returns; the worker should then stop in order.
    """

    def __init__(self, channel: socket.socket, on_orphaned: Callable[[], None] | None = None) -> None:
        channel.setblocking(False)
        channel.set_inheritable(False)
        self._channel = channel
        self._on_orphaned = on_orphaned
        self._orphaned = asyncio.Event()

    @classmethod
    def from_fd(cls, fd: int, on_orphaned: Callable[[], None] | None = None) -> Self:
        """Make the heartbeat from the descriptor that came with ``--supervised``.

        Raises OSError if it is not a socket.
        """
        return cls(socket.socket(fileno=fd), on_orphaned)

    @contextmanager
    def exit_if_orphaned(self) -> Iterator[None]:
        """While the worker starts, end the process at once if the supervisor ends.

        A starting worker has nothing to finish. It might otherwise wait without end for a Redis that stopped with the
        supervisor.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, os._exit, 1)
        try:
            yield
        finally:
            loop.remove_reader(self._channel)

    async def run(self) -> None:
        """Send heartbeats until the supervisor is gone or the task is cancelled.

        A thread of the interpreter prints the stack and ends the process if the event loop stands still for
        :data:`FROZEN_TIMEOUT_SECONDS`, or if the worker has not stopped this long after it lost its supervisor.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, self._on_readable)
        try:
            while not self._orphaned.is_set():
                faulthandler.dump_traceback_later(FROZEN_TIMEOUT_SECONDS, exit=True, file=2)
                with suppress(OSError):  # the buffer is full (a stopped supervisor), or the reader sees the end
                    self._channel.send(b".")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._orphaned.wait(), BEAT_INTERVAL_SECONDS)
        except asyncio.CancelledError:
            faulthandler.cancel_dump_traceback_later()
            raise
        finally:
            loop.remove_reader(self._channel)
            self._channel.close()
        if self._on_orphaned is not None:
            self._on_orphaned()

    def _on_readable(self) -> None:
        """Detect the end of the supervisor: it never sends data, so the socket becomes readable only when it closes."""
        try:
            received = self._channel.recv(64)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        if not received:
            self._orphaned.set()
