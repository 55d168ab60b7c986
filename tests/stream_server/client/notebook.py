"""A program like a notebook, run by ``test_sync.py``: an event loop runs, and only the client's dependencies exist."""

import asyncio
import importlib.abc
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from types import ModuleType
from typing import Any

BASE = ("aiohttp", "msgspec")


def modules_of(names: Sequence[str]) -> set[str]:
    """Return the top-level modules of these distributions and of all that they require, without extras."""
    found: set[str] = set()
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        try:
            made = distribution(name)
        except PackageNotFoundError:  # this version of Python does not need it
            continue
        paths = (str(path) for path in made.files or ())
        found |= {path.partition("/")[0].partition(".")[0] for path in paths if path.endswith((".py", ".so"))}
        required = (row for row in made.requires or () if "extra ==" not in row)
        waiting += [match[0] for row in required if (match := re.match(r"[\w.-]+", row))]
    return found


class OnlyTheClient(importlib.abc.MetaPathFinder):
    """A finder without every module that an environment with only the client would lack."""

    def __init__(self, finder: Any, allowed: set[str]) -> None:
        self._finder = finder
        self._known = allowed | sys.stdlib_module_names | {"stream_server"}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top not in self._known:
            return None
        found: ModuleSpec | None = self._finder.find_spec(fullname, path, target)
        return found


allowed_modules = modules_of(BASE)
sys.meta_path[:] = [OnlyTheClient(finder, allowed_modules) for finder in sys.meta_path]

from stream_server.client import Post, RequestRefused  # noqa: E402 - after the import hook
from stream_server.client.sync import Client  # noqa: E402 - after the import hook


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


async def main(url: str) -> None:
    """Use the blocking client while this loop runs, as in the cell of a notebook."""
    with Client(url, "jwt", attempts=1) as client:
        say(f"posted {client.post('hi').message}")
        stream = client.stream(track="hi", since="-15m")
        for _ in range(2):
            event = next(stream)
            assert isinstance(event, Post)
            say(f"event {event.status.message}")
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            next(stream)
        except KeyboardInterrupt:
            say("interrupted")
        say(f"posted {client.post('hi').message}")
        event = next(stream)
        assert isinstance(event, Post)
        say(f"event {event.status.message}")
        poll = client.poll(track="hi", wait=0)
        try:
            next(poll)
        except RequestRefused as refused:
            say(f"refused {refused.status}")
    try:
        client.me()
    except RuntimeError:
        say("closed")


if __name__ == "__main__":
    loop = asyncio.new_event_loop()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    loop.run_until_complete(main(sys.argv[1]))
    loop.close()
    say(f"threads {threading.active_count()}")
    rooms = {name.split(".")[1] for name in sys.modules if name.startswith("stream_server.")}
    parts = sorted(rooms - {"client", "wire"})
    say(f"server parts {parts}")
    from stream_server.__main__ import main as command_line  # not before the modules were looked at

    try:
        command_line()  # which needs the server's libraries
    except SystemExit as end:
        say(str(end.code))
