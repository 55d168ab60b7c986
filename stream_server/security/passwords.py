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

MAX_PENDING_HASHES = 100
"""Hashes computed or waiting; about two seconds of work with the default parameters."""

T = TypeVar("T")


class Passwords:
    """Hashes and verifies; ``memory_kib`` and ``rounds`` are argon2's costs. Close it at the end."""

    def __init__(self, *, memory_kib: int, rounds: int) -> None:
        self._hasher = PasswordHasher(time_cost=rounds, memory_cost=memory_kib, parallelism=1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._pending = 0
        self._dummy_hash = self._hasher.hash("the password of nobody")

    def close(self) -> None:
        """End the thread; what waits is given up."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def hash(self, password: str) -> str:
        """The hash to keep, with its parameters inside; raises :class:`Unavailable` when too many wait."""
        return await self._run_in_thread(lambda: self._hasher.hash(password))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Whether the password belongs to the hash.

        Without a hash, as for an unknown login, the same work is done and the answer is no: the time taken
        tells nobody who has an account. Raises :class:`Unavailable` when too many wait.
        """
        matches = await self._run_in_thread(lambda: self._verify_hash(hashed or self._dummy_hash, password))
        return matches and bool(hashed)

    def _verify_hash(self, hashed: str, password: str) -> bool:
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        if self._pending >= MAX_PENDING_HASHES:
            raise Unavailable("too many are logging in right now", retry_after=2)
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._pending -= 1
