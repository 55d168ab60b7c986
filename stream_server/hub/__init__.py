"""Who is connected, what matches whom, who is live and who is catching up.

Pure asyncio: no Redis, no HTTP. It knows ``filters`` and the entry of ``events``; whoever owns it
hands it a clock, a loop and something that reads the log, and calls :meth:`Hub.publish` for each entry.

The one decision: **producers never await consumers**. ``publish`` and everything it calls are plain
functions. A client is live (its group's list of frames goes to its socket as it is) or it is catching up
(it reads on from its own position, through its own filter, at the pace of its own socket), and between
"I am at the head" and "I am live" there is no await. Connecting with a cursor, being too slow and
returning after an outage are all the second state.

``hub``         publish, flush, heartbeats; who is live
``group``       the live clients that ask the same: one index entry, one list of frames, one joined write
``batch``       one joined write on its way to the members of a group, in slices
``subscriber``  one client: position, socket, its life from hello to goodbye
``reader``      reading on from a position through a filter, with gaps told
``personal``    what one person's stream remembers: whom they follow, what they were sent
``ring``        the recent entries, bounded in bytes and age
``poll``        one long poll
``control``     the messages that are no events: hello, heartbeat, gap, goodbye
``closing``     the reasons for which a stream ends
"""
