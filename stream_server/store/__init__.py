"""The store: all data in Redis. Only this package talks to Redis.

The one decision: **a write is one script**. The script checks everything first. Then it appends to the log, changes the
data and the counters, and publishes the entry. The append to the log is its first write, so a refused write leaves no
trace. The script keeps its reply under an idempotency key. So the server may repeat a write whose reply was lost, and
Redis still makes the write once. The script makes ids and times from Redis' clock, so the order of ids is the order of
the log. Scripts neither decode nor encode JSON: Python passes encoded fragments, and Lua puts ids, logins, times and
counters between them. Reads need no script: they are pipelines of plain commands.

``store``                  :class:`Store`: one object with all nouns and their connections
``keys``                   the table of all Redis keys
``status_row``             the marks in the stored row of a status, for the scripts that write it and the reads
``idempotency``            the key under which a script keeps the reply of a write
``names``                  the beginnings of logins and names by which people are found
``pagination``             pages of lists, selected by opaque cursors
``rate_counters``          the counters behind the rate limits
``reads/``                 what a viewer may see, and what a read promises: rows, facts and JSON
``redis/``                 connections to Redis: client, Sentinel, replica, timeouts, scripts
``log/``                   the log: reading, subscribing, retention, rollbacks
``operation_samples``      the figures of the last hour, for operators
``write_guard``            memory and replicas of Redis; refuses writes before it is full, and without enough replicas
``jobs/``                  work that nobody waits for: what follows a write, repair, expiry, trimming
``social/``                users, statuses and all other nouns of the API
``timelines/``             timelines, the other order by importance, and fan-out in the request
``lua/``                   the library of Lua functions for scripts, one noun a file
"""
