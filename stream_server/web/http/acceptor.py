"""Accepts the connections that wait in the kernel behind the one that the event loop has accepted.

uvloop accepts one connection in each iteration. If each takes 20 ms, that is fifty a second. If ten thousand clients
come at once, the kernel's queue of connections overflows, and a client that finds no room tries again after one, three
and seven seconds. So the server accepts further connections itself, a limited number in each iteration.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from functools import partial

MAX_ACCEPTED_AT_ONCE = 64
"""Most connections that are accepted behind one of the loop. They take about 10 ms."""


class Acceptor:
    """Accepts waiting connections of one listening socket."""

    def __init__(self, listener: socket.socket, make_protocol: Callable[[object], asyncio.Protocol]) -> None:
        """Serve each connection with what ``make_protocol`` returns for the address of its client."""
        self._listener = listener
        self._make_protocol = make_protocol

    def accept_waiting(self) -> None:
        """Accept connections until none waits. Call it when the loop has accepted one."""
        loop = asyncio.get_running_loop()
        for _ in range(MAX_ACCEPTED_AT_ONCE):
            try:
                client, address = self._listener.accept()
            except OSError:  # none waits, the socket is closed, or there are too many open files
                return
            _run(loop.connect_accepted_socket(partial(self._make_protocol, address), client))


def _run(connecting: Coroutine[asyncio.Future[object], None, object], _: object = None) -> None:
    """Run the coroutine until it waits for a future, and go on when the future is done.

    It waits once, for the loop to call ``connection_made``. A task for this took 4 to 5 of the 38 µs that a connection
    cost in a burst.
    """
    try:
        waited_for = connecting.send(None)
    except (StopIteration, asyncio.CancelledError):
        return  # the protocol has the connection, or the loop is about to close
    waited_for.add_done_callback(partial(_run, connecting))
