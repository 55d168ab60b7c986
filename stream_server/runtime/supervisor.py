"""Supervising several worker processes: start, watch, restart and stop them.

This module knows nothing about the server.

The supervisor starts each worker with ``--supervised FD``, the worker's end of a socket pair, and with ``--listening
FD`` if the workers inherit the listening socket (see ``listening``). Over the socket pair the worker sends one byte per
second (see ``worker_heartbeat``), and notices when the supervisor ends, however it died.

- The supervisor restarts a worker that ends, with a longer delay each time this repeats.
- It kills a worker that sends no heartbeat, because new connections to a frozen worker would hang.
- Workers run in sessions of their own, so Ctrl-C reaches only the supervisor, which then sends them SIGTERM.
"""

import asyncio
import signal
import socket
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

SUPERVISED_OPTION = "--supervised"
"""Hidden option of a worker: the number of its descriptor to the supervisor."""

LISTENING_OPTION = "--listening"
"""Hidden option of a worker that inherits its listening socket: the number of the descriptor."""

START_TIMEOUT_SECONDS = 30.0
"""Seconds until the first heartbeat of a worker, which imports its code and connects to Redis first."""

MAX_RESTART_DELAY_SECONDS = 5.0
"""Longest delay in seconds before a worker is restarted. The first delay is 0.1 s and each further one is doubled."""

STABLE_AFTER_BEATS = 10
"""Number of heartbeats after which earlier failures of the worker's slot no longer count."""

MAX_START_FAILURES = 3
"""Number of failures in a row after which the supervisor gives up, if no worker has ever sent a heartbeat."""


class WorkerProcess:
    """One running worker process and the heartbeats that it sent."""

    def __init__(
        self, slot: int, process: asyncio.subprocess.Process, channel: socket.socket, on_beat: Callable[[], None]
    ) -> None:
        self.slot = slot
        self.process = process
        self.beats = 0
        self._channel = channel
        self._on_beat = on_beat
        self._reload_pending = False
        asyncio.get_running_loop().add_reader(channel, self._on_readable)

    def __str__(self) -> str:
        return f"worker {self.slot} (pid {self.process.pid})"

    async def wait_ended(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the process to end; return whether it has ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process; do nothing if it has ended."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def reload(self) -> None:
        """Send SIGHUP, so the worker reloads its settings.

        Before its first heartbeat the worker has no handler and SIGHUP would kill it, so the signal is sent after the
        first heartbeat.
        """
        self._reload_pending = self.beats == 0
        if not self._reload_pending:
            self.signal(signal.SIGHUP)

    def close(self) -> None:
        """Close the socket to the worker. A process that still runs takes this as the end of its supervisor."""
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()

    def _on_readable(self) -> None:
        """Count the heartbeats that arrived and send a pending reload; stop reading when the worker's end is closed."""
        try:
            received = self._channel.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            received = b""
        self.beats += len(received)
        if received:
            self._on_beat()
            if self._reload_pending:
                self.reload()
        else:
            asyncio.get_running_loop().remove_reader(self._channel)


class Supervisor:
    """Keeps ``workers`` processes of one command running.

    Args:
        command: Command that starts a worker.
        env: Environment of the workers.
        workers: Number of processes.
        beat_seconds: Longest time without a heartbeat before a worker is killed.
        stop_seconds: Time that a worker has to end after SIGTERM before it is killed.
        report: Receives a sentence about each worker that ends or is killed.
        listener: Listening socket that the workers inherit; None if each binds its own.

    Attributes:
        restarts: Number of workers that were restarted.
        ready: Event that is set when every slot has had a worker that sent a heartbeat.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        workers: int,
        *,
        beat_seconds: float = 10.0,
        stop_seconds: float = 8.0,
        report: Callable[[str], None],
        listener: socket.socket | None = None,
    ) -> None:
        self.restarts = 0
        self.ready = asyncio.Event()
        self._command, self._env, self._slots = list(command), dict(env), range(1, workers + 1)
        self._beat_seconds, self._stop_seconds = beat_seconds, stop_seconds
        self._report, self._listener = report, listener
        self._served_slots: set[int] = set()
        self._running: set[WorkerProcess] = set()
        self._stopping = asyncio.Event()
        self._kill_requested = asyncio.Event()

    async def run(self) -> int:
        """Keep the workers running until SIGTERM, SIGINT or :meth:`stop`.

        Return 0, or a worker's exit code if none can serve.

        No worker is left when this method returns or is cancelled. A second SIGINT kills the workers at once, because a
        person is waiting; a second SIGTERM does not, because SIGKILL exists for that. Both signals have no effect
        afterwards, so they cannot interrupt what remains to be done, such as stopping Redis.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopping.set)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        slot_tasks = [asyncio.create_task(self._keep_slot_filled(slot), name=f"worker {slot}") for slot in self._slots]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait({stop, *slot_tasks}, return_when=asyncio.FIRST_COMPLETED)
            return next((slot_task.result() for slot_task in slot_tasks if slot_task in done), 0)
        finally:
            for task in (stop, *slot_tasks):
                task.cancel()
            await asyncio.gather(stop, *slot_tasks, return_exceptions=True)

    def stop(self) -> None:
        """Stop the workers, after which :meth:`run` returns. The second call kills them."""
        if self._stopping.is_set():
            self._kill_requested.set()
        self._stopping.set()

    def reload_workers(self, env: Mapping[str, str]) -> None:
        """Send SIGHUP to the running workers, so they reload; start later workers with ``env``."""
        self._env = dict(env)
        for worker in self._running:
            worker.reload()

    async def _keep_slot_filled(self, slot: int) -> int:
        """Run a worker in the slot again and again.

        Return only if no worker can start, with the last exit code (1 for a signal).
        """
        failures = 0
        while True:
            env = self._env
            worker = await self._start_worker(slot, env)
            self._running.add(worker)
            if env is not self._env:  # a reload came while this worker started
                worker.reload()
            try:
                await self._watch_worker(worker)
            finally:
                self._running.discard(worker)
                await self._stop_worker(worker)
            code = worker.process.returncode
            failures = 1 if worker.beats >= STABLE_AFTER_BEATS else failures + 1
            if failures >= MAX_START_FAILURES and not self._served_slots:
                self._report(f"{worker} ended with code {code}; no worker could start: giving up")
                return code if code is not None and code > 0 else 1
            delay = min(0.1 * 2 ** (failures - 1), MAX_RESTART_DELAY_SECONDS)
            self._report(f"{worker} ended with code {code}; restarting it in {delay:g} s")
            await asyncio.sleep(delay)
            self.restarts += 1

    async def _start_worker(self, slot: int, env: Mapping[str, str]) -> WorkerProcess:
        """Start one worker process with its end of a new socket pair."""
        own_end, worker_end = socket.socketpair()
        own_end.setblocking(False)
        inherited = {SUPERVISED_OPTION: worker_end.fileno()}
        if self._listener is not None:
            inherited[LISTENING_OPTION] = self._listener.fileno()
        options = [word for name, fd in inherited.items() for word in (name, str(fd))]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, *options, env=env,
                stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=tuple(inherited.values()),
            )  # fmt: skip
        except BaseException:
            own_end.close()
            raise
        finally:
            worker_end.close()
        return WorkerProcess(slot, process, own_end, partial(self._on_first_beat, slot))

    async def _watch_worker(self, worker: WorkerProcess) -> None:
        """Return when the worker has ended; kill it if it sends no heartbeat in time.

        The method counts only ticks during which the supervisor itself ran, so a pause of the supervisor (a stopped
        job, a suspended machine) is not taken for silence of the worker.
        """
        tick = self._beat_seconds / 5
        silence, seen_beats = 0.0, 0
        while not await worker.wait_ended(tick):
            silence = 0.0 if worker.beats > seen_beats else silence + tick
            seen_beats = worker.beats
            limit = self._beat_seconds if seen_beats else max(START_TIMEOUT_SECONDS, self._beat_seconds)
            if silence >= limit:
                self._report(f"{worker} sent no heartbeat for {limit:g} s: killing it")
                worker.signal(signal.SIGKILL)

    async def _stop_worker(self, worker: WorkerProcess) -> None:
        """End the worker with SIGTERM, and with SIGKILL after ``stop_seconds`` or at a second SIGINT."""
        if worker.process.returncode is None:
            worker.signal(signal.SIGTERM)
            killing = asyncio.create_task(self._kill_requested.wait())
            ended = asyncio.create_task(worker.process.wait())
            await asyncio.wait({killing, ended}, timeout=self._stop_seconds, return_when=asyncio.FIRST_COMPLETED)
            if worker.process.returncode is None:
                self._report(f"{worker} does not stop: killing it")
                worker.signal(signal.SIGKILL)
            await ended
            killing.cancel()
        worker.close()

    def _on_first_beat(self, slot: int) -> None:
        """Record that a worker in this slot has served; set ``ready`` once all slots have."""
        self._served_slots.add(slot)
        if len(self._served_slots) == len(self._slots):
            self.ready.set()
