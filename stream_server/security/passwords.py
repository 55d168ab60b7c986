"""argon2id hashes of passwords, computed in a thread beside the event loop.

With one thread and OWASP's parameters, one core does 60 log-ins per second, and streams are delayed by less than a
millisecond. If the queue is full, a request fails at once instead of waiting for minutes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from stream_server.errors import Unavailable

MAX_PENDING_HASHES = 100
"""Number of hashes being computed or waiting; about two seconds of work with the default parameters."""

T = TypeVar("T")


class Passwords:
    """Hashes and verifies passwords; close it at the end.

    Args:
        memory_kib: Memory of one argon2id hash in KiB.
        rounds: Time cost of one hash.
    """

    def __init__(self, *, memory_kib: int, rounds: int) -> None:
        self._hasher = PasswordHasher(time_cost=rounds, memory_cost=memory_kib, parallelism=1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._pending = 0
        self._dummy_hash = self._hasher.hash("the password of nobody")

    def close(self) -> None:
        """End the thread and cancel waiting hashes."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def hash(self, password: str) -> str:
        """Return the hash to store, including its parameters; raises :class:`Unavailable` if too many hashes wait."""
        return await self._run_in_thread(lambda: self._hasher.hash(password))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Return whether the password belongs to the hash; raises :class:`Unavailable` if too many hashes wait.

        Without a hash, as for an unknown login, the method does the same work and returns False. So the time of the
        answer does not reveal which logins exist.
        """
        matches = await self._run_in_thread(lambda: self._verify_hash(hashed or self._dummy_hash, password))
        return matches and bool(hashed)

    def _verify_hash(self, hashed: str, password: str) -> bool:
        """Return whether the hash matches; an invalid hash matches no password."""
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run ``work`` in the thread; raises :class:`Unavailable` if too many hashes wait."""
        if self._pending >= MAX_PENDING_HASHES:
            raise Unavailable("too many concurrent log-ins; try again", retry_after=2)
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._pending -= 1
