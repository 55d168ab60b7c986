"""Who is connected, what matches whom, who is live and who is catching up.

Pure asyncio: no Redis, no HTTP. It knows ``filters`` and the entry of ``events``; whoever owns it
hands it a clock, a loop and something that reads the log, and calls :meth:`Hub.publish` for each entry.

The one decision: **producers never await consumers**. ``publish`` and everything it calls are plain
functions. A client is live (its group's list of frames goes to its socket as it is) or it is catching up
(it reads on from its own position, through its own filter, at the pace of its own socket), and between
"I am at the head" and "I am live" there is no await. Connecting with a cursor, being too slow and
returning after an outage are all the second state.

``hub``         publish, heartbeats; who is live
``losses``      what the log lost, told at its place: what was heard here, and what was not
``pulse``       heartbeats, and the look at who takes no bytes; ``pace`` tells whether a client gets on
``roll``        the look at who acknowledges nothing: machines that are gone without a word
``limits``      the bounds of a hub, and what it counted
``outflow``     the way out: joined writes, on a tick, in slices
``group``       the live clients that ask the same: one index entry, one list of frames, one joined write
``batch``       one joined write on its way to the members of a group, in slices
``member``      a client as the hub knows it; ``people`` finds members by their user
``subscriber``  one stream's life: live without a task, catching up with one; ``errands`` owns those tasks
``turns``       how many of those who read on do so at once
``reader``      reading on from a position through a filter, with gaps told; ``sieve`` passes over what cannot match
``rulebook``    saved rules, changed by the entries that say so
``viewer``      what one person may see: the sets around them, shared by their streams; ``viewers`` has them all
``standing``    who is protected and who is suspended
``personal``    what a stream with a view of its own remembers: whom its filter follows, what it was sent
``ring``        the recent entries, bounded in bytes and age
``poll``        one long poll; ``preview`` what a rule would have brought of late
``control``     the messages that are no events: hello, heartbeat, gap, goodbye
``closing``     the reasons for which a stream ends
"""
