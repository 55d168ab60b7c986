"""Connections to Redis: bounded, without hidden retries, and with clear errors.

The one decision: this package distinguishes a command that was not sent (`Unavailable`) from a command that was sent
and not answered (`NoReply`). Only a write with an idempotency key is repeated, once.

``client``          runs commands and subscriptions over a bounded pool of connections
``address``         parses the URL of Redis
``sentinel``        finds the primary or a replica through Sentinels
``replica_router``  selects the server for log reads: a replica, or the primary
``admission``       limits how many reads of opening streams run at once
``timeout_budget``  limits how long one request waits for Redis in total
``scripts``         loads and calls the Lua scripts, and repeats a lost write once
``errors``          the errors and messages for an unreachable Redis
``refusals``        translates refusals of scripts and of Redis into API errors
``positions``       parses log positions in replies
``server_info``     parses the reply to INFO
"""
