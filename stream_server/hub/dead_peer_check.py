"""Find live clients whose machine is gone: it acknowledges nothing of what it is sent."""

import asyncio
from collections import deque
from collections.abc import Callable, Container, Iterable

from stream_server.hub.client import Client
from stream_server.hub.slow_client import PeerSilence

MAX_CHECKS_PER_ITERATION = 512
"""Most clients that are checked in one iteration of the event loop, about 1 ms, so that other tasks get their turn."""


class DeadPeerCheck:
    """Drops live clients whose peer has acknowledged nothing for a whole write timeout.

    The check asks the kernel (`Client.peer_silent_seconds`). The kernel of a living machine acknowledges data and
    answers the probes of a closed window, however slowly the client reads. Clients are checked a moment after their
    heartbeat was written, so there is something to acknowledge. A silent client is checked again at every tick. When
    it has been silent for the write timeout, it is demoted with `is_peer_dead`, and its task drops the connection.
    """

    def __init__(
        self,
        live: Container[Client],
        *,
        demote: Callable[[Client], None],
        timeout_seconds: Callable[[], float],
    ) -> None:
        self._live = live
        self._demote = demote
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Client] = deque()
        self._next_run: asyncio.Handle | None = None
        self._silent_clients: dict[Client, PeerSilence] = {}
        self._min_silence_seconds = 0.0

    def check(self, clients: Iterable[Client], min_silence_seconds: float) -> None:
        """Check these clients, some in each iteration of the event loop. Long polls are skipped.

        A client that acknowledged something within ``min_silence_seconds`` is alive.
        """
        self._min_silence_seconds = min_silence_seconds
        self._queue.extend(client for client in clients if not client.is_poll)
        if self._next_run is None:
            self._run()

    def recheck_silent(self) -> None:
        """Check the silent clients again. Demote those that were silent for the whole write timeout."""
        now, timeout = self._loop.time(), self._timeout_seconds()
        for client, silence in list(self._silent_clients.items()):
            is_live = client in self._live
            silent_seconds = silence.measure_seconds(client.peer_silent_seconds(), now) if is_live else 0.0
            if not silent_seconds:
                del self._silent_clients[client]
            elif silent_seconds >= timeout:
                del self._silent_clients[client]
                client.is_peer_dead = True
                self._demote(client)

    def stop(self) -> None:
        """Stop checking."""
        if self._next_run is not None:
            self._next_run.cancel()
        self._queue.clear()

    def _run(self) -> None:
        """Check the next clients of the queue and schedule the rest."""
        now = self._loop.time()
        for _ in range(min(MAX_CHECKS_PER_ITERATION, len(self._queue))):
            client = self._queue.popleft()
            if client not in self._live or client in self._silent_clients:
                continue
            silent_seconds = client.peer_silent_seconds()
            if silent_seconds and silent_seconds >= self._min_silence_seconds:
                self._silent_clients[client] = silence = PeerSilence()
                silence.measure_seconds(silent_seconds, now)
        self._next_run = self._loop.call_soon(self._run) if self._queue else None
