"""Random ids of requests and streams. The system is asked for random bytes once for many ids."""

import os
import secrets

ID_BYTES = 8
IDS_AT_ONCE = 256
"""Number of ids that one system call makes. It costs 5 µs and more, whatever the number."""

_unused: list[str] = []
os.register_at_fork(after_in_child=_unused.clear)  # else two processes would give the same ids


def random_id() -> str:
    """Return 16 hexadecimal digits from the system's secure random source."""
    if not _unused:
        digits = secrets.token_hex(ID_BYTES * IDS_AT_ONCE)
        _unused.extend(digits[at : at + 2 * ID_BYTES] for at in range(0, len(digits), 2 * ID_BYTES))
    return _unused.pop()
