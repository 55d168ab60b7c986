"""Ends a process whose event loop stands still, but not one that was paused with its machine.

The time of a pause (SIGSTOP, a frozen container, a suspended machine) must not count: at its end every loop seems to
have stood still for as long. So the watchdog counts its own waits, which a pause lengthens but does not multiply.

Code in C may hold Python's lock, so that no thread runs. It uses processor time, which a timer of the kernel measures
(``ITIMER_PROF`` of setitimer(2)), and at the end of which SIGPROF kills the process.
"""

import logging
import os
import signal
import sys
import threading
import traceback

from stream_server.runtime import output_thread

logger = logging.getLogger(__name__)

WAITS = 30
"""Number of waits in a row without a sign of life after which the process ends."""


class Watchdog:
    """Ends this process with exit code 1 if nobody calls :meth:`renew` for ``seconds`` in which the process runs.

    Create it in the main thread, whose stack it then logs.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._silent_waits = 0
        self._is_stopped = threading.Event()
        self._watched = threading.get_ident()
        self.renew()
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def renew(self) -> None:
        """Begin the time anew, because the event loop moves."""
        self._silent_waits = 0
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def stop(self) -> None:
        """Watch no longer."""
        self._is_stopped.set()
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _run(self) -> None:
        while not self._is_stopped.wait(self._seconds / WAITS):
            self._silent_waits += 1
            if self._silent_waits > WAITS:
                frame = sys._current_frames().get(self._watched)  # noqa: SLF001 - documented, in spite of its name
                stack = "".join(traceback.format_stack(frame)[-8:])  # the innermost calls
                logger.error("the event loop stands still for %g s, so the process ends, at\n%s", self._seconds, stack)
                output_thread.finish()
                os._exit(1)
