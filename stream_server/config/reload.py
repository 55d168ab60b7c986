"""Reloading: at SIGHUP a process reads its settings again, and uses those that are read at each use.

These are the log level, the limits, and who may ask for what. Any other setting needs a restart: clients continue at
their cursors and lose nothing, so code that changes such a value in a running process would gain nothing.
An invalid settings file changes nothing.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import replace

from stream_server.config.settings import Config, InvalidSetting
from stream_server.runtime import logs

logger = logging.getLogger(__name__)


class SettingsReloader:
    """Reloads the settings of one process at each SIGHUP. ``read`` is the function that reads them again.

    The constructor installs the signal handler, so a SIGHUP before :meth:`run` is handled when :meth:`run` starts. The
    system also sends SIGHUP when the terminal of the process closes: then the process ends, as it would without a
    handler.
    """

    def __init__(self, config: Config, read: Callable[[], Config]) -> None:
        self._known = replace(config)  # a copy, because a reload changes the object that the caller passed
        self._read = read
        self._requested = asyncio.Event()
        self._had_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN and _has_terminal()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._on_sighup)

    async def run(
        self, config: Config, *, is_worker: bool = False, on_reload: Callable[[], None] = lambda: None
    ) -> None:
        """Reload at each SIGHUP until cancelled, and call ``on_reload`` after each.

        The objects of this process read their settings from ``config`` at each use. A worker does not log what has
        changed, because its supervisor does. It has also got settings that are in no file.
        """
        while True:
            await self._requested.wait()
            self._requested.clear()
            if self.reload_now(config, is_worker=is_worker):
                on_reload()

    def reload_now(self, config: Config, *, is_worker: bool = False) -> bool:
        """Read the settings again, copy the reloadable ones into ``config``, and log what has changed.

        Return False if the settings are invalid, which changes nothing.
        """
        try:
            newer = self._read()
        except InvalidSetting as error:
            logger.warning("nothing was reloaded: %s", error)
            return False
        config.apply_reloadable(newer)
        logs.set_level(newer.log_level)
        later = self._known.settings_needing_restart(newer)
        changes = [f"{name}: {old} -> {getattr(newer, name)}" for name, old in self._known.apply_reloadable(newer)]
        if not is_worker:
            restart = f"; these settings need a restart: {', '.join(later)}" if later else ""
            logger.info("reloaded %s%s", ", ".join(changes) or "the settings: none has changed", restart)
        return True

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
