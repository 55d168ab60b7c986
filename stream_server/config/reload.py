"""What SIGHUP does: the settings that may change are read again, and take effect without dropping anybody.

A file that is wrong changes nothing. What needs a restart is named, and stays as it is.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stream_server.config.config import Config, InvalidSetting
from stream_server.runtime import logs


class ReloadOutcome(NamedTuple):
    """How a reload went: the settings that ``changed``, as ``name: old -> new``, and those that need a restart.

    ``refused`` is the sentence for which nothing was changed.
    """

    changed: list[str]
    needs_restart: list[str]
    refused: str = ""

    def sentences(self) -> list[str]:
        """The same for a person; no value of a secret is in it."""
        if self.refused:
            return [f"nothing was reloaded: {self.refused}"]
        told = [f"reloaded {', '.join(self.changed)}" if self.changed else "reloaded: nothing differs"]
        return told + [f"these need a restart: {', '.join(self.needs_restart)}"] * bool(self.needs_restart)


class SettingsReloader:
    """One process' answer to SIGHUP, made before anybody may signal; what is asked for before :meth:`run` is done then.

    ``config`` is as it was read, ``read`` reads it anew. A SIGHUP that means that the terminal is gone ends the
    process, as it would without this.
    """

    def __init__(self, config: Config, read: Callable[[], Config]) -> None:
        self._current = replace(config)  # `apply` may change the one that was given
        self._read = read
        self._requested = asyncio.Event()
        self._had_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._on_sighup)

    async def run(self, apply: Callable[[Config], None], report: Callable[[ReloadOutcome], None]) -> None:
        """Reload whenever it is asked for, until cancelled; ``apply`` has what runs take the newer settings."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            report(self.reload_now(apply))

    def reload_now(self, apply: Callable[[Config], None]) -> ReloadOutcome:
        """Reload now."""
        try:
            newer = self._read()
        except InvalidSetting as error:
            return ReloadOutcome([], [], str(error))
        apply(newer)
        logs.set_level(newer.log_level)
        restart = self._current.settings_needing_restart(newer)
        return ReloadOutcome(
            [f"{name}: {old} -> {getattr(newer, name)}" for name, old in self._current.apply_reloadable(newer)], restart
        )

    def _on_sighup(self) -> None:
        if self._had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        self._requested.set()


def _has_terminal() -> bool:
    """Whether this process has a terminal that could be closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
