"""Live fan-out: which clients are connected, which entries each of them receives, and how it catches up.

Pure asyncio, without Redis and HTTP. The package imports `filters` and `events`. The server passes a clock and a reader
of the log, and calls `Hub.publish` for each entry.

The one decision: **publishing never waits for a client**. `Hub.publish` and everything that it calls are plain
functions. A client is live (the frames of its group go to its socket) or catching up (it reads from its own position,
through its own filter, at the pace of its own socket). Between "the client is at the head" and "the client is live"
there is no ``await``.

The states of a stream::

    head and `hello` are written
     |
     +--------- it begins before the head, or has an end ---------+
     | it begins at the head                                      |
     v                                                            v
    LIVE ---------------------- demote -----------------------> CATCHING UP
    It is in a group, and has no task.                          Its task reads pages of the ring or
    Its position is the head of the hub.                        the log, from its own position on.
     |  ^                                                         |  |
     |  +------------ join: its position is the head -------------+  |
     |                                                               |
     +--- disconnect ---> ENDING <----------- disconnect ------------+
                          |   `goodbye` is written behind the unsent bytes
                          v
                         ENDED

    A live client is demoted if                  Then
    it has no room for a batch                   it catches up from the position before the batch
    it takes no unsent byte after a heartbeat    it is dropped, unless it takes one within the write timeout
    its machine acknowledges nothing             it is dropped after a write timeout without an acknowledgement
    its filters or its saved rules change        the new ones hold after its position
    one of its filters raises an exception       the reader asks it again, disables it, and warns the client
    there was no time to match its filters       the reader matches the entry, in small slices
    others of its group know of a loss already   it reads the entry of the log that records the loss

    ENDED with the code of `goodbye`: account_deleted backfill_done closed_by_operator closed_by_user rebalanced
    resync shutdown suspended taken_over token_expired token_revoked too_many_streams too_slow. Or without `goodbye`,
    from each state: left (the client closed the stream), aborted (it took no bytes in time), failed (an error of the
    server).

A stream that begins a little before the head gets what it missed in one write, and is live without a task. A client
that waits for its socket, or for the log to become readable, is catching up. A long poll (`poll`) has the same states.
The first frame for it demotes it, and it ends with its answer.

Each module imports only modules above it in this list, apart from the two packages:

``disconnect``        the reasons for which a stream ends
``messages``          control messages: hello, heartbeat, gap, notices, goodbye; how messages become bytes on the socket
``tally``             the numbers of events that were counted instead of sent
``window``            what a summary stream counts until its period ends
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
``live_clients``      joining and leaving the head, the groups there, and what summaries have counted
``heartbeats``        heartbeats; timers and checks for clients that take no bytes or gain nothing on the head
``router``            the way of an entry to the live clients
``hub``               builds these parts, and publishes each entry to them
``stream_session``    a client with a socket: one stream from hello to goodbye
``poll``              a client without a socket: one long poll
``look_back``         clients that read the log backwards: the preview of a rule, counts, and recent search
"""
