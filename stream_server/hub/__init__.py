"""Live fan-out: which clients are connected, which entries each of them receives, and how it catches up.

Pure asyncio, without Redis and HTTP. The package imports `filters` and `events`. The server passes a clock and a reader
of the log, and calls `Hub.publish` for each entry.

The one decision: **publishing never waits for a client**. `Hub.publish` and everything that it calls are plain
functions. A client is live (the frames of its group go to its socket) or catching up (it reads from its own position,
through its own filter, at the pace of its own socket). Between "the client is at the head" and "the client is live"
there is no ``await``.

Each module imports only modules above it in this list, apart from the two packages:

``disconnect``        the reasons for which a stream ends
``messages``          control messages: hello, heartbeat, gap, notices, goodbye; how messages become bytes on the socket
``limits``            the bounds of a hub, and its counters
``visibility/``       which entries a user may see, and in which form
``delivery``          the decision what a client receives of an entry
``client``            one client: its request, position and socket
``send_to_each``      in C, where there was a compiler: the same bytes to each client of a group
``group``             the live clients with equal subscriptions: one index entry, one list of frames, one joined write
``flush_pause``       how busy the process is, and how long a flush waits
``flusher``           when waiting frames are written
``client_registry``   all clients by user, and the end of streams whose tokens expire
``catchup/``          reading past entries from the ring or the log
``live_clients``      joining and leaving the head, and the groups there
``heartbeats``        heartbeats; timers and checks for clients that take no bytes or gain nothing on the head
``router``            the way of an entry to the live clients
``hub``               builds these parts, and publishes each entry to them
``stream_session``    a client with a socket: one stream from hello to goodbye
``poll``              clients without a socket: a long poll, and the preview of a rule
"""
