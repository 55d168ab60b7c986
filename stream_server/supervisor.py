"""Several worker processes on one port: started, watched, replaced, ended. Pure process management.

The parent reserves the port (:func:`reserve`), then runs a :class:`Supervisor`, which starts the workers with
``--supervised FD`` behind their command: the worker's end of a socket pair. Over it a worker sends a byte a second
from its event loop, and on it sees the end of its parent, however that died:

    parent:  reserved = reserve(host, port);  await Supervisor(command, env, n, report=…, listener=…).run()
    worker:  sock = listen(host, port, listening);  await Beat.from_fd(supervised, on_orphaned).run()

On Linux each worker binds a socket of its own (SO_REUSEPORT), over which the kernel spreads connections evenly, and
the parent's never listens. Elsewhere (:data:`OWN_SOCKETS` is false) the kernel does not spread, so the parent's
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

SUPERVISED = "--supervised"
"""The hidden option of a worker: the number of its descriptor to the supervisor."""

LISTENING = "--listening"
"""The hidden option of a worker that inherits its listening socket: the descriptor's number."""

OWN_SOCKETS = sys.platform == "linux"
"""Whether each worker binds its own socket."""

BACKLOG = 4096
"""Connections that may wait to be accepted, as far as the kernel allows (``net.core.somaxconn``)."""

BEAT_INTERVAL_SECONDS = 1.0

START_SECONDS = 30.0
"""Time to the first beat: a worker imports and connects before it serves."""

FROZEN_SECONDS = 30.0
"""A worker's own limit for a loop that stands still, for the case that no supervisor is left to kill it."""

LONGEST_PAUSE_SECONDS = 5.0
"""The longest pause before a worker that ended is started again; the first is 0.1 s, then double."""

STEADY_BEATS = 10
"""After so many beats the past failures of a place are forgotten."""

HOPELESS = 3
"""Failures in a row, with no worker having ever beaten, after which the supervisor ends."""


class CannotListen(OSError):
    """The address cannot be had; the message is a sentence."""


def reserve(host: str, port: int, *, own_sockets: bool = OWN_SOCKETS) -> socket.socket:
    """Hold ``port`` of ``host`` (0: a free one) for the workers; raises :class:`CannotListen`.

    The socket does not listen, unless the workers inherit it. A port that somebody serves is refused: SO_REUSEPORT
    alone would let two servers of one user share it, each getting half of the connections.
    """
    if not own_sockets:
        return listen_alone(host, port)
    if port:
        _bound(host, port, reuse_port=False).close()
    return _bound(host, port, reuse_port=True)


def listen(host: str, port: int, listening: int | None = None) -> socket.socket:
    """A worker's listening socket: its own, or the inherited descriptor ``listening``."""
    if listening is None:
        return _listening(_bound(host, port, reuse_port=True))
    inherited = socket.socket(fileno=listening)
    inherited.set_inheritable(False)
    return inherited


def listen_alone(host: str, port: int) -> socket.socket:
    """The listening socket of a server without workers, which shares its port with nobody; may refuse too."""
    return _listening(_bound(host, port, reuse_port=False))


def _listening(own: socket.socket) -> socket.socket:
    own.listen(BACKLOG)
    own.setblocking(False)
    return own


def _bound(host: str, port: int, *, reuse_port: bool) -> socket.socket:
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


class Beat:
    """The worker's side: proof of a moving event loop, and the news that the supervisor is gone.

    Start it when the worker listens: the first beat says that it serves. When the supervisor is gone ``on_orphaned``
    is called, once, and :meth:`run` returns: the worker should end in good order.
    """

    def __init__(self, line: socket.socket, on_orphaned: Callable[[], None] | None = None) -> None:
        line.setblocking(False)
        line.set_inheritable(False)
        self._line = line
        self._on_orphaned = on_orphaned
        self._orphaned = asyncio.Event()

    @classmethod
    def from_fd(cls, fd: int, on_orphaned: Callable[[], None] | None = None) -> Self:
        """The beat over the descriptor that came with ``--supervised``; raises OSError if it is no socket."""
        return cls(socket.socket(fileno=fd), on_orphaned)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While the worker starts: it ends at once if its supervisor does, there is nothing to end in good order yet.

        It may wait for a Redis that went with the supervisor, for ever.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._line, os._exit, 1)
        try:
            yield
        finally:
            loop.remove_reader(self._line)

    async def run(self) -> None:
        """Beat until the supervisor is gone or this is cancelled.

        An orphan that has not ended :data:`FROZEN_SECONDS` later, and a loop that stands still for so long, is ended
        by a thread of the interpreter, which prints where it stood.
        """
        loop = asyncio.get_running_loop()
        loop.add_reader(self._line, self._hear)
        try:
            while not self._orphaned.is_set():
                faulthandler.dump_traceback_later(FROZEN_SECONDS, exit=True, file=2)
                with suppress(OSError):  # full: the supervisor itself is stopped; broken: heard by the reader
                    self._line.send(b".")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._orphaned.wait(), BEAT_INTERVAL_SECONDS)
        except asyncio.CancelledError:
            faulthandler.cancel_dump_traceback_later()
            raise
        finally:
            loop.remove_reader(self._line)
            self._line.close()
        if self._on_orphaned is not None:
            self._on_orphaned()

    def _hear(self) -> None:
        """Nothing is ever said on this line: what can be read is its end."""
        try:
            heard = self._line.recv(64)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = b""
        if not heard:
            self._orphaned.set()


class Worker:
    """One running process and what its beats tell."""

    def __init__(
        self, place: int, process: asyncio.subprocess.Process, line: socket.socket, on_beat: Callable[[], None]
    ) -> None:
        self.place = place
        self.process = process
        self.beats = 0
        self._line = line
        self._on_beat = on_beat
        self._outdated = False
        asyncio.get_running_loop().add_reader(line, self._hear)

    def __str__(self) -> str:
        return f"worker {self.place} (pid {self.process.pid})"

    async def ended(self, seconds: float) -> bool:
        """Whether the process ends within ``seconds``."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), seconds)
        return self.process.returncode is not None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that is gone does not mind."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def renew(self) -> None:
        """Tell it to reload; one that has not beaten does not listen to that yet, it would die of it."""
        self._outdated = self.beats == 0
        if not self._outdated:
            self.signal(signal.SIGHUP)

    def close(self) -> None:
        """Let go of the line; the process, if there still is one, takes it as the end of its supervisor."""
        asyncio.get_running_loop().remove_reader(self._line)
        self._line.close()

    def _hear(self) -> None:
        try:
            heard = self._line.recv(4096)
        except BlockingIOError:
            return
        except ConnectionError:
            heard = b""
        self.beats += len(heard)
        if heard:
            self._on_beat()
            if self._outdated:
                self.renew()
        else:
            asyncio.get_running_loop().remove_reader(self._line)


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
        self._command, self._env, self._places = list(command), dict(env), range(1, workers + 1)
        self._beat_seconds, self._stop_seconds = beat_seconds, stop_seconds
        self._report, self._listener = report, listener
        self._serving: set[int] = set()
        self._running: set[Worker] = set()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()

    async def run(self) -> int:
        """Keep the workers until SIGTERM, SIGINT or :meth:`stop`; 0, or a worker's exit code if none can serve.

        When it returns or is cancelled, no worker is left. A second SIGINT kills them at once, since a person waits;
        a second SIGTERM does not: whoever is in a hurry has SIGKILL. Both stay without effect behind the end: what
        is still to be done then, such as ending Redis, must not be cut short.
        """
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stopping.set)
        loop.add_signal_handler(signal.SIGINT, self.stop)
        keepers = [asyncio.create_task(self._keep(place), name=f"worker {place}") for place in self._places]
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
            self._hurry.set()
        self._stopping.set()

    def renew(self, env: Mapping[str, str]) -> None:
        """From now on workers start with ``env``, and those that run are told by SIGHUP to reload."""
        self._env = dict(env)
        for worker in self._running:
            worker.renew()

    async def _keep(self, place: int) -> int:
        """Keep one place filled; returns only when it is hopeless, with the last exit code (1 for a signal)."""
        failures = 0
        while True:
            env = self._env
            worker = await self._start(place, env)
            self._running.add(worker)
            if env is not self._env:  # there was a reload meanwhile
                worker.renew()
            try:
                await self._attend(worker)
            finally:
                self._running.discard(worker)
                await self._end(worker)
            code = worker.process.returncode
            failures = 1 if worker.beats >= STEADY_BEATS else failures + 1
            if failures >= HOPELESS and not self._serving:
                self._report(f"{worker} ended with code {code}, as all before it: giving up")
                return code if code is not None and code > 0 else 1
            pause = min(0.1 * 2 ** (failures - 1), LONGEST_PAUSE_SECONDS)
            self._report(f"{worker} ended with code {code}; starting it again in {pause:g} s")
            await asyncio.sleep(pause)
            self.restarts += 1

    async def _start(self, place: int, env: Mapping[str, str]) -> Worker:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        inherited = {SUPERVISED: theirs.fileno()}
        if self._listener is not None:
            inherited[LISTENING] = self._listener.fileno()
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
        return Worker(place, process, ours, partial(self._served, place))

    async def _attend(self, worker: Worker) -> None:
        """Return when the worker has ended or is frozen.

        Silence is counted in ticks that the supervisor lived through, so that its own standstill (a stopped
        job, a paused machine) is not taken for theirs.
        """
        tick = self._beat_seconds / 5
        silence, heard = 0.0, 0
        while not await worker.ended(tick):
            silence = 0.0 if worker.beats > heard else silence + tick
            heard = worker.beats
            limit = self._beat_seconds if heard else max(START_SECONDS, self._beat_seconds)
            if silence >= limit:
                self._report(f"{worker} has not beaten for {limit:g} s: killing it")
                worker.signal(signal.SIGKILL)

    async def _end(self, worker: Worker) -> None:
        """Leave no process: SIGTERM if it still runs, SIGKILL when the time is over or a second signal comes."""
        if worker.process.returncode is None:
            worker.signal(signal.SIGTERM)
            hurry = asyncio.create_task(self._hurry.wait())
            ended = asyncio.create_task(worker.process.wait())
            await asyncio.wait({hurry, ended}, timeout=self._stop_seconds, return_when=asyncio.FIRST_COMPLETED)
            if worker.process.returncode is None:
                self._report(f"{worker} does not end: killing it")
                worker.signal(signal.SIGKILL)
            await ended
            hurry.cancel()
        worker.close()

    def _served(self, place: int) -> None:
        self._serving.add(place)
        if len(self._serving) == len(self._places):
            self.ready.set()
