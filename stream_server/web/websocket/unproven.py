"""The sockets that wait for their first message with a token. A server that stops closes them."""

from typing import Protocol

from aiohttp import web


class Closable(Protocol):
    """A socket that can be closed because the server stops."""

    def go_away(self) -> None:
        """Close the socket, because the server stops."""


class UnprovenSockets:
    """The WebSockets of one server process that have not sent a valid token yet."""

    def __init__(self) -> None:
        self._sockets: set[Closable] = set()

    def __len__(self) -> int:
        return len(self._sockets)

    def add(self, socket: Closable) -> None:
        self._sockets.add(socket)

    def discard(self, socket: Closable) -> None:
        self._sockets.discard(socket)

    def close_all(self) -> None:
        """Close all sockets, because the server stops."""
        for socket in list(self._sockets):
            socket.go_away()


UNPROVEN = web.AppKey("unproven", UnprovenSockets)
"""The sockets of this server process that wait for a token."""
