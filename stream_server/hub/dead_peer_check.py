"""The roll call: whose machine is gone without a word, and acknowledges nothing of what it is sent."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stream_server.hub.slow_client import PeerSilence

if TYPE_CHECKING:
    from stream_server.hub.client import Client
    from stream_server.hub.hub import Hub

MAX_CHECKS_PER_ITERATION = 512
"""So many are asked for in one turn of the loop, about 1 ms of it: then others have theirs."""


class DeadPeerCheck:
    """The live clients that are asked for, and those that did not answer.

    The kernel is asked, since a living machine's acknowledges what comes and answers a closed window's probes, however
    slowly its client reads. All are asked for a moment after their heartbeat was written, so that there is something
    to acknowledge; who has acknowledged nothing of late, again at each beat, until it does or its write deadline is
    over. Then its connection is dropped.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Client] = deque()
        self._next_run: asyncio.Handle | None = None
        self._silent_clients: dict[Client, PeerSilence] = {}
        self._min_silence_seconds = 0.0

    def check(self, clients: Iterable["Client"], min_silence_seconds: float) -> None:
        """Ask for these, some each turn; who has acknowledged something within so many seconds is there."""
        self._min_silence_seconds = min_silence_seconds
        self._queue.extend(member for member in clients if not member.is_poll)
        if self._next_run is None:
            self._run()

    def recheck_silent(self) -> None:
        """Ask again for who was silent; who still is, for a whole write deadline, is gone."""
        now, deadline = self._loop.time(), self._hub.limits.write_timeout_seconds
        for member, silence in list(self._silent_clients.items()):
            lasted = 0.0 if member.group is None else silence.measure_seconds(member.peer_silent_seconds(), now)
            if not lasted:
                del self._silent_clients[member]
            elif lasted >= deadline:
                del self._silent_clients[member]
                member.is_peer_dead = True
                self._hub.demote(member)

    def stop(self) -> None:
        """Nobody is asked for any more."""
        if self._next_run is not None:
            self._next_run.cancel()
        self._queue.clear()

    def _run(self) -> None:
        now = self._loop.time()
        for _ in range(min(MAX_CHECKS_PER_ITERATION, len(self._queue))):
            member = self._queue.popleft()
            if member.group is None or member in self._silent_clients:
                continue
            silent_seconds = member.peer_silent_seconds()
            if silent_seconds and silent_seconds >= self._min_silence_seconds:
                self._silent_clients[member] = silence = PeerSilence()
                silence.measure_seconds(silent_seconds, now)
        self._next_run = self._loop.call_soon(self._run) if self._queue else None
