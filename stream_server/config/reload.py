"""Reloading: at SIGHUP a process reads its settings again, and uses those that are read at each use.

These are the log level, the limits, and who may ask for what. Any other setting needs a restart, which loses nothing.
An invalid settings file changes nothing.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace

from stream_server.config.settings import Config, InvalidSetting

logger = logging.getLogger(__name__)


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

    async def run(self, apply: Callable[[Config], None], *, is_worker: bool = False) -> None:
        """Reload at each SIGHUP until cancelled: pass the new settings to ``apply``, and log what has changed.

        A worker does not log that, because its supervisor does. It has also got settings that are in no file.
        """
        while True:
            await self._requested.wait()
            self._requested.clear()
            self.reload_now(apply, is_worker=is_worker)

    def reload_now(self, apply: Callable[[Config], None], *, is_worker: bool = False) -> None:
        """Read the settings again, pass them to ``apply`` and log what has changed. Invalid settings change nothing."""
        try:
            newer = self._read()
        except InvalidSetting as error:
            logger.warning("nothing was reloaded: %s", error)
            return
        apply(newer)
        if is_worker:
            return
        later = self._current.settings_needing_restart(newer)
        changes = [f"{name}: {old} -> {getattr(newer, name)}" for name, old in self._current.apply_reloadable(newer)]
        restart = f"; these settings need a restart: {', '.join(later)}" if later else ""
        logger.info("reloaded %s%s", ", ".join(changes) or "the settings: none has changed", restart)

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
