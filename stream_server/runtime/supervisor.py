"""Supervising several worker processes: start, watch, restart and stop them. The module is independent of their work.

The supervisor starts each worker with ``--supervised FD``, the worker's end of a socket pair, and with ``--listening
FD`` for each listening socket that the workers inherit (see ``listening``). The worker sends one byte per second from
its event loop, and notices by the end of the socket that the supervisor is gone, however it died.

- The supervisor restarts a worker that ends, with a longer delay each time this repeats.
- It kills a worker that sends no heartbeat, because new connections to a frozen worker would hang.
- Workers run in sessions of their own, so Ctrl-C reaches only the supervisor, which then sends them SIGTERM.
"""

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from stream_server.runtime.watchdog import Watchdog

FROZEN_TIMEOUT_SECONDS = 30.0
"""Seconds after which a worker whose event loop stands still ends itself, in case no supervisor is left to kill it."""


class WorkerProcess:
    """The supervisor's handle of one worker process.

    Attributes:
        beats: Number of heartbeats that the worker sent.
        env: Environment variables with the settings that the worker uses.
    """

    def __init__(
        self, slot: int, process: asyncio.subprocess.Process, channel: socket.socket, env: Mapping[str, str],
        on_beat: "Callable[[WorkerProcess], None]",
    ) -> None:  # fmt: skip
        self.slot = slot
        self.process = process
        self.env = env
        self.beats = 0
        self._channel = channel
        self._on_beat = on_beat
        # One task for all waits: each call of `Process.wait` leaves a future in the process until the process ends.
        self._ended = asyncio.create_task(process.wait(), name=f"end of {self}")
        asyncio.get_running_loop().add_reader(channel, self._on_readable)

    def __str__(self) -> str:
        return f"worker {self.slot} (pid {self.process.pid})"

    async def wait_ended(self, seconds: float | None = None, unless: Iterable[asyncio.Task[Any]] = ()) -> bool:
        """Wait for the process to end, up to ``seconds`` or until a task of ``unless`` is done; return if it ended."""
        await asyncio.wait({self._ended, *unless}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return self.process.returncode is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker process; do nothing if it has ended."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def close(self) -> None:
        """Close the socket to the worker. If the worker still runs, it then stops, as if its supervisor had ended."""
        self._ended.cancel()
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()

    def _on_readable(self) -> None:
        received = _receive(self._channel)
        if received == b"":
            asyncio.get_running_loop().remove_reader(self._channel)
        elif received:
            self.beats += len(received)
            self._on_beat(self)


class Supervisor:
    """Keeps ``workers`` processes of ``command`` running: starts, watches, restarts and stops them.

    Args:
        beat_seconds: Longest time without a heartbeat before the supervisor kills a worker.
        stop_seconds: Time that a worker has to end after SIGTERM before the supervisor kills it.
        report: Receives a sentence about each worker that ends or is killed.
        listeners: Listening sockets that the workers inherit; empty if each binds its own.
        slot_options: Returns further options of ``command`` for the worker of this number, from 1.

    Attributes:
        ready: Event that is set when each worker, or its replacement, has sent a heartbeat.
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
        listeners: Sequence[socket.socket] = (),
        slot_options: Callable[[int], Sequence[str]] = lambda _: (),
    ) -> None:
        self.ready = asyncio.Event()
        self._command, self._env, self._slots = list(command), dict(env), range(1, workers + 1)
        self._beat_seconds, self._stop_seconds = beat_seconds, stop_seconds
        self._report, self._listeners, self._slot_options = report, listeners, slot_options
        self._served_slots: set[int] = set()
        self._stopping = asyncio.Event()
        self._kill_requested = asyncio.Event()

    async def run(self) -> int:
        """Keep the workers running until SIGTERM, SIGINT or :meth:`stop`, then stop them and return 0.

        If no worker can start, return the exit code of the last one. All workers have ended when this method returns or
        is cancelled. A second SIGINT kills them at once, because a person is waiting; a second SIGTERM does not. After
        the return both signals have no effect, so they cannot interrupt later steps, such as stopping Redis.
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
        """Ask the workers to stop, so that :meth:`run` returns. A second call kills the workers at once."""
        if self._stopping.is_set():
            self._kill_requested.set()
        self._stopping.set()

    def reload_workers(self, env: Mapping[str, str]) -> None:
        """Send SIGHUP to each worker at its next heartbeat: before its first one, the signal would kill it.

        Later workers get the new settings in their environment ``env``.
        """
        self._env = dict(env)

    async def _keep_slot_filled(self, slot: int) -> int:
        """Run worker number ``slot``, and another when it ends. If no worker could ever start, return the exit code."""
        failures = 0
        while True:
            worker = await self._start_worker(slot)
            try:
                await self._watch_worker(worker)
            finally:
                await self._stop_worker(worker)
            code = worker.process.returncode
            failures = 1 if worker.beats >= 10 else failures + 1  # those before a stable worker do not count
            if failures >= 3 and not self._served_slots:
                self._report(f"{worker} ended with code {code}; no worker could start: giving up")
                return code if code is not None and code > 0 else 1
            delay = min(0.1 * 2 ** (failures - 1), 5.0)
            self._report(f"{worker} ended with code {code}; restarting it in {delay:g} s")
            await asyncio.sleep(delay)

    async def _start_worker(self, slot: int) -> WorkerProcess:
        env = self._env
        own_end, worker_end = socket.socketpair()
        own_end.setblocking(False)
        inherited = [("--supervised", worker_end.fileno())]
        inherited += [("--listening", listener.fileno()) for listener in self._listeners]
        options = [*self._slot_options(slot), *(word for name, fd in inherited for word in (name, str(fd)))]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, *options, env=env,
                stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=[fd for _, fd in inherited],
            )  # fmt: skip
        except BaseException:
            own_end.close()
            raise
        finally:
            worker_end.close()
        return WorkerProcess(slot, process, own_end, env, self._on_beat)

    async def _watch_worker(self, worker: WorkerProcess) -> None:
        """Wait until the worker ends. Kill it after ``beat_seconds`` (at least 30 s for the first) without a heartbeat.

        The method adds up its own waits and reads no clock, so time in which the machine was suspended does not count.
        """
        tick = self._beat_seconds / 5
        silence, seen_beats = 0.0, 0
        while not await worker.wait_ended(tick):
            silence = 0.0 if worker.beats > seen_beats else silence + tick
            seen_beats = worker.beats
            # Before the first heartbeat a worker imports its code and connects to Redis.
            limit = self._beat_seconds if seen_beats else max(30.0, self._beat_seconds)
            if silence >= limit:
                self._report(f"{worker} sent no heartbeat for {limit:g} s: killing it")
                worker.signal(signal.SIGKILL)

    async def _stop_worker(self, worker: WorkerProcess) -> None:
        """End the worker with SIGTERM. Use SIGKILL after ``stop_seconds``, or at the supervisor's second SIGINT."""
        if worker.process.returncode is None:
            worker.signal(signal.SIGTERM)
            killing = asyncio.create_task(self._kill_requested.wait())
            if not await worker.wait_ended(self._stop_seconds, unless=[killing]):
                self._report(f"{worker} does not stop: killing it")
                worker.signal(signal.SIGKILL)
                await worker.wait_ended()
            killing.cancel()
        worker.close()

    def _on_beat(self, worker: WorkerProcess) -> None:
        self._served_slots.add(worker.slot)
        if len(self._served_slots) == len(self._slots):
            self.ready.set()
        if worker.env is not self._env:
            worker.env = self._env
            worker.signal(signal.SIGHUP)


class WorkerHeartbeat:
    """The worker's side of the connection to its supervisor: sends heartbeats and notices the end of the supervisor.

    ``fd`` is the descriptor that the worker got with ``--supervised``. Raises OSError if it is not a socket.
    """

    def __init__(self, fd: int) -> None:
        self._channel = socket.socket(fileno=fd)
        self._channel.setblocking(False)
        self._channel.set_inheritable(False)
        self._orphaned = asyncio.Event()

    @property
    def is_orphaned(self) -> bool:
        """Whether the supervisor has ended."""
        return self._orphaned.is_set()

    @contextmanager
    def exit_if_orphaned(self) -> Iterator[None]:
        """End this process if the supervisor ends during the ``with`` block. Use the block for the worker's start.

        A starting worker has no clients, and might wait forever for a Redis that ended with the supervisor.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, os._exit, 1)
        try:
            yield
        finally:
            loop.remove_reader(self._channel)

    async def run(self) -> None:
        """Send a heartbeat each second, and return when the supervisor has ended. The caller must then stop the worker.

        The first heartbeat reports that the worker serves clients. If stopping takes :data:`FROZEN_TIMEOUT_SECONDS`, or
        the event loop is blocked for that long, the watchdog ends the process.
        """
        loop, watchdog = asyncio.get_running_loop(), Watchdog(FROZEN_TIMEOUT_SECONDS)
        loop.add_reader(self._channel, self._on_readable)
        try:
            while not self._orphaned.is_set():
                watchdog.renew()
                with suppress(OSError):  # the buffer is full (a stopped supervisor), or the reader sees the end
                    self._channel.send(b".")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._orphaned.wait(), 1.0)
        except asyncio.CancelledError:
            watchdog.stop()
            raise
        finally:
            loop.remove_reader(self._channel)
            self._channel.close()

    def _on_readable(self) -> None:
        if _receive(self._channel) == b"":  # a supervisor never sends data, so this is its end
            self._orphaned.set()


def _receive(channel: socket.socket) -> bytes | None:
    """Return the bytes received on ``channel``: None if there are none yet, empty if the other side closed it."""
    try:
        return channel.recv(4096)
    except BlockingIOError:
        return None
    except ConnectionError:
        return b""
