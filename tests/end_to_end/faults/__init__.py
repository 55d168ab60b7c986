"""What breaks on purpose, to be asked afterwards whether it did: each fault counts what it has done.

- ``proxy`` stands between two parties and cuts, swallows, delays and refuses.
- ``clients`` speak HTTP over sockets of their own, badly: they never read, read a byte a second, leave with a reset,
  vanish without a word, or send half a head.
- ``skewed`` runs the real command with a wall clock that is wrong, and that jumps when a file says so.

A Redis that is killed, paused, started again and copied is :mod:`tests.redis_process`.
"""
