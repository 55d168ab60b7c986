"""Accepts the connections that wait in the kernel behind the one that the event loop has accepted.

uvloop accepts one connection in each iteration. If each takes 20 ms, that is fifty a second. If ten thousand clients
come at once, the kernel's queue of connections overflows, and a client that finds no room tries again after one, three
and seven seconds. So the server accepts further connections itself, a limited number in each iteration.
"""

import asyncio
import socket
from collections.abc import Callable

MAX_ACCEPTED_AT_ONCE = 64
"""Most connections that are accepted behind one of the loop. They take about 10 ms."""


class Acceptor:
    """Accepts waiting connections of one listening socket."""

    def __init__(self, listener: socket.socket, make_protocol: Callable[[], asyncio.Protocol]) -> None:
        """Serve each connection with what ``make_protocol`` returns."""
        self._listener = listener
        self._make_protocol = make_protocol
        self._tasks: set[asyncio.Task[object]] = set()

    def accept_waiting(self) -> None:
        """Accept connections until none waits. Call it when the loop has accepted one."""
        for _ in range(MAX_ACCEPTED_AT_ONCE):
            try:
                client, _address = self._listener.accept()
            except OSError:  # none waits, the socket is closed, or there are too many open files
                return
            self._serve(client)

    def _serve(self, client: socket.socket) -> None:
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.connect_accepted_socket(self._make_protocol, client))
        self._tasks.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
