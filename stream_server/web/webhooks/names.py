"""Looks up the names of endpoints, in threads, because the resolver of the system knows no other way.

A name whose servers are silent holds a thread for several seconds, also when its request was given up long before. So
each user has few of the threads, and the names of one hold up no endpoint of another.
"""

import asyncio
import socket
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakValueDictionary

from aiohttp.abc import AbstractResolver, ResolveResult

LOOKUP_THREADS = 64
"""Threads that look up names. They are started when they are needed."""

THREADS_OF_USER = 2
"""Most threads that look up names of one user at the same time. The next name waits."""

OWNER: ContextVar[str] = ContextVar("owner of a webhook")
"""The id of the user whose webhook the present task serves. aiohttp passes nothing of its caller to a resolver."""


class Names(AbstractResolver):
    """Looks names up for the users in :data:`OWNER`."""

    def __init__(self, find: Callable[..., list[Any]] = socket.getaddrinfo) -> None:
        """``find`` has the form of `socket.getaddrinfo`."""
        self._find = find
        self._threads = ThreadPoolExecutor(LOOKUP_THREADS, thread_name_prefix="webhook-names")
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of a host. Raises OSError if it has none."""
        owner, loop = OWNER.get(), asyncio.get_running_loop()
        turn = self._turns.get(owner)
        if turn is None:
            turn = self._turns[owner] = asyncio.Semaphore(THREADS_OF_USER)
        await turn.acquire()

        def give_back(_: "Future[list[Any]]") -> None:
            """Called in the thread when the look-up has ended, which may be long after the request was given up."""
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(turn.release)

        running = self._threads.submit(self._find, host, port, type=socket.SOCK_STREAM, family=family)
        running.add_done_callback(give_back)
        return [
            ResolveResult(
                hostname=host, host=str(address[0]), port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
            )
            for kind, _, protocol, _, address in await asyncio.wrap_future(running)
        ]

    async def close(self) -> None:
        """Begin no further look-up. One that runs ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)
