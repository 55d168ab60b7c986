"""Several worker processes on one port: started, watched, replaced, ended. Pure process management.

The parent reserves the port (:func:`reserve_port`), then runs a :class:`Supervisor`, which starts the workers with
``--supervised FD`` behind their command: the worker's end of a socket pair. Over it a worker sends a byte a second
from its event loop, and on it sees the end of its parent, however that died:

    parent:  reserved = reserve(host, port);  await Supervisor(command, env, n, report=…, listener=…).run()
    worker:  sock = listen(host, port, listening);  await Beat.from_fd(supervised, on_orphaned).run()

On Linux each worker binds a socket of its own (SO_REUSEPORT), over which the kernel spreads connections evenly, and
the parent's never listens. Elsewhere (:data:`WORKERS_BIND_SOCKETS` is false) the kernel does not spread, so the parent's
socket listens and is inherited: pass it as ``listener``, and workers get ``--listening FD`` too.

A worker that ends is started again, later each time it happens in a row. One that does not beat is frozen: it is
killed, since its share of new connections would hang. Workers are in sessions of their own, so that Ctrl-C reaches
the parent only, which then sends SIGTERM.
"""

import asyncio
import errno
import faulthandler
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Self

SUPERVISED_OPTION = "--supervised"
"""The hidden option of a worker: the number of its descriptor to the supervisor."""

LISTENING_OPTION = "--listening"
"""The hidden option of a worker that inherits its listening socket: the descriptor's number."""

WORKERS_BIND_SOCKETS = sys.platform == "linux"
"""Whether each worker binds its own socket."""

LISTEN_BACKLOG = 4096
"""Connections that may wait to be accepted, as far as the kernel allows (``net.core.somaxconn``)."""

BEAT_INTERVAL_SECONDS = 1.0

START_TIMEOUT_SECONDS = 30.0
"""Time to the first beat: a worker imports and connects before it serves."""

FROZEN_TIMEOUT_SECONDS = 30.0
"""A worker's own limit for a loop that stands still, for the case that no supervisor is left to kill it."""

MAX_RESTART_DELAY_SECONDS = 5.0
"""The longest pause before a worker that ended is started again; the first is 0.1 s, then double."""

STABLE_AFTER_BEATS = 10
"""After so many beats the past failures of a place are forgotten."""

MAX_START_FAILURES = 3
"""Failures in a row, with no worker having ever beaten, after which the supervisor ends."""


class CannotListen(OSError):
    """The address cannot be had; the message is a sentence."""


def reserve_port(host: str, port: int, *, workers_bind_sockets: bool = WORKERS_BIND_SOCKETS) -> socket.socket:
    """Hold ``port`` of ``host`` (0: a free one) for the workers; raises :class:`CannotListen`.

    The socket does not listen, unless the workers inherit it. A port that somebody serves is refused: SO_REUSEPORT
    alone would let two servers of one user share it, each getting half of the connections.
    """
    if not workers_bind_sockets:
        return listen_alone(host, port)
    if port:
        _bind(host, port, reuse_port=False).close()
    return _bind(host, port, reuse_port=True)


def listen_as_worker(host: str, port: int, inherited_fd: int | None = None) -> socket.socket:
    """A worker's listening socket: its own, or the inherited descriptor ``inherited_fd``."""
    if inherited_fd is None:
        return _start_listening(_bind(host, port, reuse_port=True))
    inherited = socket.socket(fileno=inherited_fd)
    inherited.set_inheritable(False)
    return inherited


def listen_alone(host: str, port: int) -> socket.socket:
    """The listening socket of a server without workers, which shares its port with nobody; may refuse too."""
    return _start_listening(_bind(host, port, reuse_port=False))


def _start_listening(own: socket.socket) -> socket.socket:
    own.listen(LISTEN_BACKLOG)
    own.setblocking(False)
    return own


def _bind(host: str, port: int, *, reuse_port: bool) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if reuse_port:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        other = " (choose another --port; 0 takes a free one)" if error.errno == errno.EADDRINUSE else ""
        message = f"cannot listen on {host} port {port}: {error.strerror}{other}"
        raise CannotListen(message) from None
    return bound


class WorkerHeartbeat:
    """The worker's side: proof of a moving event loop, and the news that the supervisor is gone.

    Start it when the worker listens: the first beat says that it serves. When the supervisor is gone ``on_orphaned``
    is called, once, and :meth:`run` returns: the worker should end in good order.
    """

    def __init__(self, channel: socket.socket, on_orphaned: Callable[[], None] | None = None) -> None:
        channel.setblocking(False)
        channel.set_inheritable(False)
        self._channel = channel
        self._on_orphaned = on_orphaned
        self._orphaned = asyncio.Event()

    @classmethod
    def from_fd(cls, fd: int, on_orphaned: Callable[[], None] | None = None) -> Self:
        """The beat over the descriptor that came with ``--supervised``; raises OSError if it is no socket."""
        return cls(socket.socket(fileno=fd), on_orphaned)

    @contextmanager
    def exit_if_orphaned(self) -> Iterator[None]:
        """While the worker starts: it ends at once if its supervisor does, there is nothing to end in good order yet.

        It may wait for a Redis that went with the supervisor, for ever.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, os._exit, 1)
        try:
            yield
        finally:
            loop.remove_reader(self._channel)

    async def run(self) -> None:
        """Beat until the supervisor is gone or this is cancelled.

        An orphan that has not ended :data:`FROZEN_TIMEOUT_SECONDS` later, and a loop that stands still for so long, is ended
        by a thread of the interpreter, which prints where it stood.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, self._on_readable)
        try:
            while not self._orphaned.is_set():
                faulthandler.dump_traceback_later(FROZEN_TIMEOUT_SECONDS, exit=True, file=2)
                with suppress(OSError):  # full: the supervisor itself is stopped; broken: heard by the reader
                    self._channel.send(b".")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._orphaned.wait(), BEAT_INTERVAL_SECONDS)
        except asyncio.CancelledError:
            faulthandler.cancel_dump_traceback_later()
            raise
        finally:
            loop.remove_reader(self._channel)
            self._channel.close()
        if self._on_orphaned is not None:
            self._on_orphaned()

    def _on_readable(self) -> None:
        """Nothing is ever said on this line: what can be read is its end."""
        try:
            heard = self._channel.recv(64)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = b""
        if not heard:
            self._orphaned.set()


class WorkerProcess:
    """One running process and what its beats tell."""

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
        """Whether the process ends within ``seconds``."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that is gone does not mind."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def reload(self) -> None:
        """Tell it to reload; one that has not beaten does not listen to that yet, it would die of it."""
        self._reload_pending = self.beats == 0
        if not self._reload_pending:
            self.signal(signal.SIGHUP)

    def close(self) -> None:
        """Let go of the line; the process, if there still is one, takes it as the end of its supervisor."""
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()

    def _on_readable(self) -> None:
        try:
            heard = self._channel.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = b""
        self.beats += len(heard)
        if heard:
            self._on_beat()
            if self._reload_pending:
                self.reload()
        else:
            asyncio.get_running_loop().remove_reader(self._channel)


class Supervisor:
    """Keeps ``workers`` processes of one command running.

    ``command`` and ``env`` start a worker; ``report`` is told in sentences what happens to them. ``beat_seconds`` is
    how long a worker may be silent, ``stop_seconds`` how long it may take to end after SIGTERM. ``restarts`` counts
    the workers started again, ``ready`` is set when every place has had a worker that beat.
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
        """Keep the workers until SIGTERM, SIGINT or :meth:`stop`; 0, or a worker's exit code if none can serve.

        When it returns or is cancelled, no worker is left. A second SIGINT kills them at once, since a person waits;
        a second SIGTERM does not: whoever is in a hurry has SIGKILL. Both stay without effect behind the end: what
        is still to be done then, such as ending Redis, must not be cut short.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopping.set)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        keepers = [asyncio.create_task(self._keep_slot_filled(place), name=f"worker {place}") for place in self._slots]
        stop = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait({stop, *keepers}, return_when=asyncio.FIRST_COMPLETED)
            return next((keeper.result() for keeper in keepers if keeper in done), 0)
        finally:
            for task in (stop, *keepers):
                task.cancel()
            await asyncio.gather(stop, *keepers, return_exceptions=True)

    def stop(self) -> None:
        """End the workers, and :meth:`run` after them; called again, kill them."""
        if self._stopping.is_set():
            self._kill_requested.set()
        self._stopping.set()

    def reload_workers(self, env: Mapping[str, str]) -> None:
        """From now on workers start with ``env``, and those that run are told by SIGHUP to reload."""
        self._env = dict(env)
        for worker in self._running:
            worker.reload()

    async def _keep_slot_filled(self, slot: int) -> int:
        """Keep one place filled; returns only when it is hopeless, with the last exit code (1 for a signal)."""
        failures = 0
        while True:
            env = self._env
            worker = await self._start_worker(slot, env)
            self._running.add(worker)
            if env is not self._env:  # there was a reload meanwhile
                worker.reload()
            try:
                await self._watch_worker(worker)
            finally:
                self._running.discard(worker)
                await self._stop_worker(worker)
            code = worker.process.returncode
            failures = 1 if worker.beats >= STABLE_AFTER_BEATS else failures + 1
            if failures >= MAX_START_FAILURES and not self._served_slots:
                self._report(f"{worker} ended with code {code}, as all before it: giving up")
                return code if code is not None and code > 0 else 1
            pause = min(0.1 * 2 ** (failures - 1), MAX_RESTART_DELAY_SECONDS)
            self._report(f"{worker} ended with code {code}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            self.restarts += 1

    async def _start_worker(self, slot: int, env: Mapping[str, str]) -> WorkerProcess:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        inherited = {SUPERVISED_OPTION: theirs.fileno()}
        if self._listener is not None:
            inherited[LISTENING_OPTION] = self._listener.fileno()
        options = [word for name, fd in inherited.items() for word in (name, str(fd))]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, *options, env=env,
                stdin=subprocess.DEVNULL, start_new_session=True, pass_fds=tuple(inherited.values()),
            )  # fmt: skip
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return WorkerProcess(slot, process, ours, partial(self._on_first_beat, slot))

    async def _watch_worker(self, worker: WorkerProcess) -> None:
        """Return when the worker has ended or is frozen.

        Silence is counted in ticks that the supervisor lived through, so that its own standstill (a stopped
        job, a paused machine) is not taken for theirs.
        """
        tick = self._beat_seconds / 5
        silence, heard = 0.0, 0
        while not await worker.wait_ended(tick):
            silence = 0.0 if worker.beats > heard else silence + tick
            heard = worker.beats
            limit = self._beat_seconds if heard else max(START_TIMEOUT_SECONDS, self._beat_seconds)
            if silence >= limit:
                self._report(f"{worker} has not beaten for {limit:g} s: killing it")
                worker.signal(signal.SIGKILL)

    async def _stop_worker(self, worker: WorkerProcess) -> None:
        """Leave no process: SIGTERM if it still runs, SIGKILL when the time is over or a second signal comes."""
        if worker.process.returncode is None:
            worker.signal(signal.SIGTERM)
            hurry = asyncio.create_task(self._kill_requested.wait())
            ended = asyncio.create_task(worker.process.wait())
            await asyncio.wait({hurry, ended}, timeout=self._stop_seconds, return_when=asyncio.FIRST_COMPLETED)
            if worker.process.returncode is None:
                self._report(f"{worker} does not end: killing it")
                worker.signal(signal.SIGKILL)
            await ended
            hurry.cancel()
        worker.close()

    def _on_first_beat(self, slot: int) -> None:
        self._served_slots.add(slot)
        if len(self._served_slots) == len(self._slots):
            self.ready.set()
