"""argon2id hashes of passwords, computed in a thread beside the event loop.

With OWASP's parameters the thread checks 60 passwords per second, and delays streams by less than a millisecond. If the
queue of the thread is full, a request fails at once.
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
    """Hashes and verifies passwords with argon2id. One hash makes ``rounds`` passes over ``memory_kib`` of memory."""

    def __init__(self, *, memory_kib: int, rounds: int) -> None:
        self._hasher = PasswordHasher(time_cost=rounds, memory_cost=memory_kib, parallelism=1)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._pending = 0
        self._dummy_hash = self._hasher.hash("the password of nobody")

    def close(self) -> None:
        """Cancel the waiting hashes, wait for the running one, and end the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def hash(self, password: str) -> str:
        """Return the hash of the password as text to store; raises :class:`Unavailable` if too many hashes wait."""
        return await self._run_in_thread(lambda: self._hasher.hash(password))

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Return whether ``hashed`` is a hash of the password; raises :class:`Unavailable` if too many hashes wait.

        If ``hashed`` is None, as for an unknown login, the method does the same work and returns False. So the time of
        the answer does not reveal which logins exist.
        """
        matches = await self._run_in_thread(lambda: self._verify_hash(hashed or self._dummy_hash, password))
        return matches and bool(hashed)

    def _verify_hash(self, hashed: str, password: str) -> bool:
        """Return whether ``hashed`` is a hash of the password; False if it is not a valid hash."""
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        if self._pending >= MAX_PENDING_HASHES:
            raise Unavailable("too many concurrent log-ins; try again", retry_after=2)
        self._pending += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._pending -= 1
