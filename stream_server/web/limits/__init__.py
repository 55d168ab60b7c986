"""The limits of one user and of one address, so that no client can use up the server.

The one decision: **ordinary use costs nothing**. A process counts in its own memory, and reports to the shared counters
in Redis in portions of a twentieth of the limit. So most requests need no round trip, and a subject that has reached
its limit is refused without one. Small limits are exact over all processes. Large ones may be exceeded by a twentieth
for each process. The setting ``limits`` turns all of them off.

``rate_limits``      the table of rate limits: what each counts, of whom, in which time; counts their uses
``client_address``   the address of a client, also behind trusted proxies
``connections``      how many connections a process holds; how many requests of an address run at once
``byte_budget``      how many bytes of requests and answers the connections keep
``processor_time``   the processor time that a user or an address may take with what it sends, over all connections
"""
