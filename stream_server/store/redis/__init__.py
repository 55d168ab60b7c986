"""Connections to Redis: few, shared by all calls, without hidden retries, and with clear errors.

This package distinguishes a command that was not sent (`Unavailable`) from a command that was sent and not answered
(`NoReply`). It repeats only a write with an idempotency key, once.

``client``                runs commands, and opens subscriptions
``engine``                the program that answers: Redis or Valkey, its version, and whether it is new enough
``derived``               derived data, on one Redis or on the nodes of a cluster, by the node that has each key
``protocol``              commands in Redis' protocol, made from ready pieces; positions and INFO in replies
``lanes``                 decides which calls share a connection, and opens the connections
``pipelined_connection``  one connection: sends the commands of all callers together, and gives each its replies
``connecting``            lets redis-py connect to the server that a guide names, and takes its transport
``subscription``          the messages of one subscription, handed to a function in order
``address``               parses the URL of Redis
``sentinel``              finds the primary or a replica through Sentinels
``replica_router``        selects the server for log reads: a replica, or the primary
``replica``               one replica from which requests read: its state and position, and its answers
``replicated_client``     lets a replica answer a request that only reads, if it has all that was acknowledged
``batched_reads``         asks Redis the questions of many opening streams in few calls
``timeout_budget``        limits how long one request waits for Redis in total, and has its trace
``scripts``               loads and calls the Lua scripts, and repeats a lost write once
``script_settings``       what stands in the texts of the scripts as constants: sizes, rules of the site, names of keys
``lua_library``           makes the text of a script: the functions of the library that its call needs
``stored_form``           the form of the stored data, and the refusal of another one
``refusals``              the API errors for an unreachable Redis, and for refusals of scripts and of Redis
``shared_query``          one question to Sentinels or nodes for all callers, repeated regularly
``cluster_nodes``         parses what one node of a cluster reports
``cluster_topology``      finds the node that owns a slot, by the word of several nodes; commands that a node refused
``cluster_check``         finds what is set up wrongly in a cluster
"""
