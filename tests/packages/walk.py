"""The walk of a new user, from the command that starts the demo to the first stream."""

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.command_line import Running, running
from tests.packages.machines import Machine
from tests.waiting import PATIENCE

LISTEN = """
import asyncio, sys
from stream_server.client import Client, Post
from stream_server.wire.messages import Hello

async def main(address, token, word):
    async with Client(address, token) as client:
        async for event in client.stream(track=word, control=True):
            if isinstance(event, Hello):
                await client.post(f"a first {word}")
            elif isinstance(event, Post):
                print(event.status.login, event.status.text)
                return

asyncio.run(main(*sys.argv[1:]))
"""
"""A program with the Python client. It posts as soon as its stream is open, and prints the first post that it hears."""

WORD = "walkingstick"


class Walk(NamedTuple):
    """What a new user saw.

    Attributes:
        filters: The filters that the server prints.
        pages: The pages of the console and their files, by their paths.
        heard: What the Python client printed of the post.
        tailed: The event that the command ``tail`` printed; empty if it was not tried.
        seconds: Time from the command to the first event of a stream.
    """

    filters: list[str]
    pages: dict[str, str]
    heard: str
    tailed: dict[str, Any]
    seconds: float


def walk(
    machine: Machine, *start: str | Path, client: Path, programs: Path | None = None, cwd: Path | None = None
) -> Walk:
    """Start the demo, sign in by its link, open a stream, and post.

    The command ``start`` starts the demo in ``cwd``. The Python client of the environment with the folder ``client``
    reads the stream, and then the command ``tail`` of that with the folder ``programs``, if one is given.
    """
    begun = time.monotonic()
    with _interrupted(machine, *start, name="server", cwd=cwd) as server:
        server.until(lambda: "/v1/statuses" in server.out, seconds=5 * PATIENCE)
        address, code = re.findall(r"Open this in a browser: (http://\S+)/#code=(\S+)", server.out)[0]
        token = json.loads(fetched(f"{address}/v1/sessions", json.dumps({"code": code}).encode()))["token"]
        heard = machine.done(client / "python", "-I", "-c", LISTEN, address, token, WORD)
        seconds = time.monotonic() - begun
        filters = re.findall(r"^filters: (.+); documentation: ", server.out, re.MULTILINE)[0].split(", ")
        tailed = _tail(machine, programs / "stream-server", address, token) if programs else {}
        return Walk(filters, _pages(address), heard, tailed, seconds)


def _tail(machine: Machine, command: Path, address: str, token: str) -> dict[str, Any]:
    arguments = ["--url", address, "--token", token, "--track", WORD, "--since", "-5m", "--json"]
    with _interrupted(machine, command, "tail", *arguments, name="tail") as tail:
        tail.until(lambda: "\n" in tail.out)
        found: dict[str, Any] = json.loads(tail.out.splitlines()[0])
    return found


@contextmanager
def _interrupted(machine: Machine, *command: str | Path, name: str, cwd: Path | None = None) -> Iterator[Running]:
    """Run a command, and end it with Ctrl-C, which a terminal sends to all processes of the command."""
    here = machine.command(*command, cwd=cwd)
    folder, cwd = machine.folder / name, cwd or machine.folder
    with running("/usr/bin/setsid", *here, folder=folder, env=machine.environ, cwd=cwd) as program:
        try:
            yield program
            os.killpg(program.process.pid, signal.SIGINT)
            program.process.wait(PATIENCE)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.process.pid, signal.SIGKILL)
        assert "Traceback" not in program.err, program.err


def _pages(address: str) -> dict[str, str]:
    found = {path: fetched(address + path) for path in ("/", "/docs")}
    named = {f"/{path}" for page in found.values() for path in re.findall(r'(?:src|href)="(console/[^"]+)"', page)}
    return found | {path: fetched(address + path) for path in sorted(named)}


def fetched(url: str, body: bytes | None = None) -> str:
    """Return the answer to a request, which must succeed. With ``body`` it is a POST of JSON."""
    headers = {"Accept": "text/html, */*", "Content-Type": "application/json"}
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return str(answer.read().decode())
