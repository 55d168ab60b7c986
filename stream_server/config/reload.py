"""Reloading: at SIGHUP a process reads its settings again and takes the new values without closing a connection.

An invalid settings file changes nothing. A setting that needs a restart keeps its value, and the report names it.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from stream_server.config.settings import Config, InvalidSetting


class ReloadOutcome(NamedTuple):
    """The result of one reload.

    Attributes:
        changed: The settings that changed, each as ``name: old -> new``.
        needs_restart: Names of the settings with a new value that takes effect only after a restart.
        refused: Why the reload changed nothing; empty if it succeeded.
    """

    changed: list[str]
    needs_restart: list[str]
    refused: str = ""

    def sentences(self) -> list[str]:
        """Return the result of the reload as sentences for a person, without secret values."""
        if self.refused:
            return [f"nothing was reloaded: {self.refused}"]
        first = f"reloaded {', '.join(self.changed)}" if self.changed else "reloaded: no setting changed"
        return [first] + [f"these settings need a restart: {', '.join(self.needs_restart)}"] * bool(self.needs_restart)


class SettingsReloader:
    """Reloads the settings of one process at each SIGHUP. ``read`` is the function that reads them again.

    The constructor installs the signal handler, so a SIGHUP before :meth:`run` is handled when :meth:`run` starts. The
    system also sends SIGHUP when the terminal of the process closes: then the process ends, as it would without a
    handler.
    """

    def __init__(self, config: Config, read: Callable[[], Config]) -> None:
        self._current = replace(config)  # a copy, because `apply` may change the object that the caller passed
        self._read = read
        self._requested = asyncio.Event()
        self._had_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._on_sighup)

    async def run(self, apply: Callable[[Config], None], report: Callable[[ReloadOutcome], None]) -> None:
        """Reload at each SIGHUP until cancelled: pass the new settings to ``apply`` and the outcome to ``report``."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            report(self.reload_now(apply))

    def reload_now(self, apply: Callable[[Config], None]) -> ReloadOutcome:
        """Read the settings again, pass them to ``apply`` and return the outcome. Invalid settings change nothing."""
        try:
            newer = self._read()
        except InvalidSetting as error:
            return ReloadOutcome([], [], str(error))
        apply(newer)
        needs_restart = self._current.settings_needing_restart(newer)
        changed = self._current.apply_reloadable(newer)
        return ReloadOutcome([f"{name}: {old} -> {getattr(newer, name)}" for name, old in changed], needs_restart)

    def _on_sighup(self) -> None:
        """Request a reload or, if SIGHUP came because the terminal has closed, also end the process by SIGTERM."""
        if self._had_terminal and not _has_terminal():
            signal.raise_signal(signal.SIGTERM)
        self._requested.set()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
