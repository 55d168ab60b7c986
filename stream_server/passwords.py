"""argon2id hashes of passwords, computed beside the event loop.

One thread of its own and OWASP's parameters: 60 log-ins a second on one core, while a worker's streams lose
less than a millisecond. Who comes when the queue is full is sent away at once instead of waiting for minutes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from stream_server.errors import Unavailable

MAX_WAITING = 100
"""Hashes computed or waiting; about two seconds of work with the default parameters."""

T = TypeVar("T")


class Passwords:
    """Hashes and verifies; ``memory_kib`` and ``rounds`` are argon2's costs. Close it at the end."""

    def __init__(self, *, memory_kib: int, rounds: int) -> None:
        self._hasher = PasswordHasher(time_cost=rounds, memory_cost=memory_kib, parallelism=1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._waiting = 0
        self._nobody = self._hasher.hash("the password of nobody")

    def close(self) -> None:
        """End the thread; what waits is given up."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def hash(self, password: str) -> str:
        """The hash to keep, with its parameters inside; raises :class:`Unavailable` when too many wait."""
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Whether the password belongs to the hash.

        Without a hash, as for an unknown login, the same work is done and the answer is no: the time taken
        tells nobody who has an account. Raises :class:`Unavailable` when too many wait.
        """
        matches = await self._run(lambda: self._matches(hashed or self._nobody, password))
        return matches and bool(hashed)

    def _matches(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= MAX_WAITING:
            raise Unavailable("too many are logging in right now", retry_after=2)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._waiting -= 1
