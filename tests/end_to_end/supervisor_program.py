"""A supervisor and its workers as a program, for tests that kill, freeze and stop them.

A worker answers each connection: the request ``pid`` gets its process id. ``freeze`` blocks the event loop of the
worker, and ``hold`` all its threads. The supervisor prints its port, its reports, and when it is ready.
"""

import argparse
import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import uvloop

from stream_server.runtime import listening, supervisor
from stream_server.runtime.embedded_redis import EmbeddedRedis
from tests.program import say

MODULE = "tests.end_to_end.supervisor_program"

TOLD = "TOLD_TO_WORKERS"
"""An environment variable that the supervisor sets for workers when it reloads."""


async def work(arguments: argparse.Namespace) -> None:
    """Run one worker: serve and send heartbeats until SIGTERM or the end of the supervisor."""
    supervisor.FROZEN_TIMEOUT_SECONDS = arguments.frozen_seconds
    if arguments.gate:
        start_slowly(Path(arguments.gate))
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def end(why: str) -> None:
        if why == "SIGTERM" and arguments.deaf:
            return
        say(goodbye=why, of=os.getpid())
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number.name)
    loop.add_signal_handler(signal.SIGHUP, lambda: say(reloads=os.getpid()))
    inherited = () if arguments.listening is None else (arguments.listening,)
    listeners = listening.listen_as_worker("127.0.0.1", arguments.port, inherited)
    server = await asyncio.start_server(answer, sock=listeners.sockets[0])
    beating = asyncio.create_task(beat(arguments.supervised, end))
    await ended.wait()
    beating.cancel()
    server.close()


async def beat(supervised: int, end: Callable[[str], None]) -> None:
    """Send heartbeats until the supervisor has ended."""
    await supervisor.WorkerHeartbeat(supervised).run()
    end("orphaned")


def start_slowly(gate: Path) -> None:
    """Block without a signal handler until a test writes into the named pipe."""
    say(starting=os.getpid(), told=os.environ.get(TOLD))
    gate.read_text()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    asked = await reader.readline()
    writer.write(f"{os.getpid()}\n".encode())
    await writer.drain()
    writer.close()
    if asked == b"hold\n":
        re.fullmatch("(a+)+", "a" * 100 + "b")  # no thread of this process runs again
    if asked == b"freeze\n":
        threading.Event().wait()  # the loop never moves again


async def supervise(arguments: argparse.Namespace) -> int:
    embedded = await EmbeddedRedis.start(None) if arguments.redis else None
    if embedded is not None:
        say(redis=embedded.redis_pid, watcher=embedded.watcher_pid)
    reserved = listening.reserve_port("127.0.0.1", 0, workers_bind_sockets=not arguments.inherit)
    port = reserved.port
    say(port=port)
    options = [word for name in ("loop", "frozen_seconds") for word in (f"--{name}", str(getattr(arguments, name)))]
    command = [sys.executable, "-W", "error", "-m", MODULE, *options, "--port", str(port)]
    if arguments.deaf:
        command.append("--deaf")
    if arguments.gate:
        command += ["--gate", arguments.gate]
    keeper = supervisor.Supervisor(
        ["/bin/sh", "-c", "exit 3"] if arguments.hopeless else command,
        dict(os.environ),
        arguments.workers,
        beat_seconds=arguments.beat_seconds,
        stop_seconds=arguments.stop_seconds,
        report=lambda text: say(report=text),
        listeners=reserved.sockets if arguments.inherit else (),
    )

    def renew() -> None:
        keeper.reload_workers({**os.environ, TOLD: "newer"})
        say(renewed=True)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
    ready = asyncio.create_task(tell_ready(keeper))
    code = await keeper.run()
    ready.cancel()
    reserved.close()
    if embedded is not None:
        await embedded.stop()
    return code


async def tell_ready(keeper: supervisor.Supervisor) -> None:
    await keeper.ready.wait()
    say(ready=True)


def parsed(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=Path(__file__).name)
    for flag in ("--redis", "--inherit", "--deaf", "--hopeless"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--gate", default="")
    for name, default in {"--workers": 2, "--port": 0, "--supervised": None, "--listening": None}.items():
        parser.add_argument(name, type=int, default=default)
    for name, seconds in {"--beat-seconds": 10.0, "--stop-seconds": 8.0, "--frozen-seconds": 30.0}.items():
        parser.add_argument(name, "--" + name[2:].replace("-", "_"), type=float, default=seconds)
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="uvloop")
    return parser.parse_args(words)


def main() -> int:
    arguments = parsed(sys.argv[1:])
    factory = uvloop.new_event_loop if arguments.loop == "uvloop" else asyncio.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        if arguments.supervised is None:
            return runner.run(supervise(arguments))
        runner.run(work(arguments))
        return 0


if __name__ == "__main__":
    sys.exit(main())
