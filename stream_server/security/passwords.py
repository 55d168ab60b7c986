"""argon2id hashes of passwords, computed in a thread beside the event loop.

With OWASP's parameters the thread checks 60 passwords per second, and delays streams by less than a millisecond. If the
queue of the thread is full, a request fails at once.
"""

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from stream_server.runtime.event_loop import WorkThread

ROUNDS = 2
"""Passes of one hash over its memory, as OWASP advises. The memory is the setting that a larger machine changes."""

MAX_PENDING_HASHES = 100
"""Number of hashes being computed or waiting; about two seconds of work with the default parameters."""


class Passwords:
    """Hashes and verifies passwords with argon2id, in its ``thread``. One hash takes ``memory_kib`` KiB of memory."""

    def __init__(self, memory_kib: int) -> None:
        self._hasher = PasswordHasher(time_cost=ROUNDS, memory_cost=memory_kib, parallelism=1)
        busy = "too many concurrent log-ins; try again"
        self.thread = WorkThread("passwords", max_pending=MAX_PENDING_HASHES, busy_message=busy)
        self._dummy_hash = self._hasher.hash("the password of nobody")

    def close(self) -> None:
        """Cancel the waiting hashes, wait for the running one, and end the thread."""
        self.thread.close()

    async def hash(self, password: str, caller: str = "") -> str:
        """Return the argon2id hash of the password as text to store.

        Raises `Unavailable` if too many hashes wait, and `RateLimited` if too many of them were requested by one
        ``caller``, which is an address.
        """
        return await self.thread.run(lambda: self._hasher.hash(password), caller)

    async def verify(self, hashed: str | None, password: str, caller: str = "") -> bool:
        """Return whether ``hashed`` is a hash of the password. Raises `Unavailable` and `RateLimited` as `hash` does.

        If ``hashed`` is None, as for an unknown login, the method does the same work and returns False. So the time of
        the answer does not reveal which logins exist.
        """
        matches = await self.thread.run(lambda: self._verify_hash(hashed or self._dummy_hash, password), caller)
        return matches and bool(hashed)

    def _verify_hash(self, hashed: str, password: str) -> bool:
        """Return whether ``hashed`` is a hash of the password; False if it is not a valid hash."""
        try:
            return self._hasher.verify(hashed, password)
        except (Argon2Error, InvalidHashError):
            return False
