"""The roll call: whose machine is gone without a word, and acknowledges nothing of what it is sent."""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from stream_server.hub.pace import Silence

if TYPE_CHECKING:
    from stream_server.hub.hub import Hub
    from stream_server.hub.member import Member

CALLS = 512
"""So many are asked for in one turn of the loop, about 1 ms of it: then others have theirs."""


class Roll:
    """The live clients that are asked for, and those that did not answer.

    The kernel is asked, since a living machine's acknowledges what comes and answers a closed window's probes, however
    slowly its client reads. All are asked for a moment after their heartbeat was written, so that there is something
    to acknowledge; who has acknowledged nothing of late, again at each beat, until it does or its write deadline is
    over. Then its connection is dropped.
    """

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Member] = deque()
        self._turn: asyncio.Handle | None = None
        self._silent: dict[Member, Silence] = {}
        self._quiet_seconds = 0.0

    def call(self, members: Iterable["Member"], quiet_seconds: float) -> None:
        """Ask for these, some each turn; who has acknowledged something within so many seconds is there."""
        self._quiet_seconds = quiet_seconds
        self._waiting.extend(member for member in members if not member.polls)
        if self._turn is None:
            self._ask()

    def recall(self) -> None:
        """Ask again for who was silent; who still is, for a whole write deadline, is gone."""
        now, deadline = self._loop.time(), self._hub.limits.write_timeout_seconds
        for member, silence in list(self._silent.items()):
            lasted = 0.0 if member.group is None else silence.lasted(member.silence(), now)
            if not lasted:
                del self._silent[member]
            elif lasted >= deadline:
                del self._silent[member]
                member.vanished = True
                self._hub.send_back(member)

    def stop(self) -> None:
        """Nobody is asked for any more."""
        if self._turn is not None:
            self._turn.cancel()
        self._waiting.clear()

    def _ask(self) -> None:
        now = self._loop.time()
        for _ in range(min(CALLS, len(self._waiting))):
            member = self._waiting.popleft()
            if member.group is None or member in self._silent:
                continue
            silent_seconds = member.silence()
            if silent_seconds and silent_seconds >= self._quiet_seconds:
                self._silent[member] = silence = Silence()
                silence.lasted(silent_seconds, now)
        self._turn = self._loop.call_soon(self._ask) if self._waiting else None
