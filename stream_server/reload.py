"""What SIGHUP does: the settings that may change are read again, and take effect without dropping anybody.

A file that is wrong changes nothing. What needs a restart is named, and stays as it is.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stream_server import logs
from stream_server.config import Config, InvalidSetting


class Outcome(NamedTuple):
    """How a reload went: the settings that ``changed``, as ``name: old -> new``, and those that need a restart.

    ``refused`` is the sentence for which nothing was changed.
    """

    changed: list[str]
    restart: list[str]
    refused: str = ""

    def sentences(self) -> list[str]:
        """The same for a person; no value of a secret is in it."""
        if self.refused:
            return [f"nothing was reloaded: {self.refused}"]
        told = [f"reloaded {', '.join(self.changed)}" if self.changed else "reloaded: nothing differs"]
        return told + [f"these need a restart: {', '.join(self.restart)}"] * bool(self.restart)


class Reload:
    """One process' answer to SIGHUP, made before anybody may signal; what is asked for before :meth:`run` is done then.

    ``config`` is as it was read, ``read`` reads it anew. A SIGHUP that means that the terminal is gone ends the
    process, as it would without this.
    """

    def __init__(self, config: Config, read: Callable[[], Config]) -> None:
        self._known = replace(config)  # `apply` may change the one that was given
        self._read = read
        self._asked = asyncio.Event()
        self._at_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _terminal()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

    async def run(self, apply: Callable[[Config], None], tell: Callable[[Outcome], None]) -> None:
        """Reload whenever it is asked for, until cancelled; ``apply`` has what runs take the newer settings."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            tell(self.once(apply))

    def once(self, apply: Callable[[Config], None]) -> Outcome:
        """Reload now."""
        try:
            newer = self._read()
        except InvalidSetting as error:
            return Outcome([], [], str(error))
        apply(newer)
        logs.set_level(newer.log_level)
        restart = self._known.outdated(newer)
        return Outcome([f"{name}: {old} -> {getattr(newer, name)}" for name, old in self._known.take(newer)], restart)

    def _hang_up(self) -> None:
        if self._at_terminal and not _terminal():
            signal.raise_signal(signal.SIGTERM)
        self._asked.set()


def _terminal() -> bool:
    """Whether this process has a terminal that could be closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
