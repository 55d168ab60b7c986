"""Faults that tests cause on purpose. Each fault counts its effects, so a test can check that it happened.

- ``proxy`` stands between two parties. It cuts connections, and swallows, delays or refuses data.
- ``clients`` speak HTTP badly over their own sockets: they never read, read one byte a second, reset the connection,
  vanish, or send half a request head.
- ``skewed_clock`` runs the real command with a wrong wall clock, which jumps when a file changes.

:mod:`tests.redis_process` is a Redis that a test can kill, pause, start again and copy.
"""
