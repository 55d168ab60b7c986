"""Redis, and Redis only here: the data, the log, and the scripts that change both in one step.

The one decision: **a write is one script**. It checks everything, then appends to the log (its first write, so
that a refusal leaves nothing behind), then changes the data and the counters and PUBLISHes. A script keeps its
answer under a request key, so that a write whose answer was lost may be repeated once without being made twice.
Ids and times are made in the script from Redis' clock, so that id order = time order = log order. Scripts neither
decode nor encode JSON: Python hands over encoded fragments, Lua puts ids, logins, times and counters between them.

``store``        :class:`Store`: one object that holds the nouns below and their connections
``keys``         the table of all keys
``link``         the way to Redis: bounded connections that never repeat anything by themselves
``address``      where Redis is, as one writes it down; ``sentinel`` who says where its primary is
``budget``       how long one request may wait for Redis in all; ``lane`` how many of a crowd ask at once
``info``         what Redis says of itself
``near``         where the log is heard and read: a replica, or the primary
``scripts``      the Lua files of ``lua/``, called once, or twice with the same request key
``refusals``     what a script answers when it refuses, as :mod:`stream_server.errors`
``request``      the name of one write: a client's Idempotency-Key, or one made here
``users``        sign up, look up, change; ``user_json`` their one form on the wire
``sessions``     which tokens still stand; ``tickets`` what stands for one, once
``draft``        a status before it has an id
``statuses``     post, read, delete
``likes``        who likes what; ``favorites`` what users keep for themselves
``comments``     words under a status
``follows``      who follows whom; ``viewers`` what streams keep of that
``follow_requests``  who asks to follow whom
``relations``    how two users stand to each other, and whom they have in common
``blocks``       who blocks whom; ``mutes`` who wants to hear no more of whom
``notifications``  what others did that concerns a user, and the read mark
``reports``      reports of users and statuses, and what administrators decide
``suspensions``  who has lost the good standing
``lists``        people whom a user reads together; ``groups`` those who post among themselves
``talks``        messages among people named beforehand; ``words`` what lists, groups and talks are called
``timelines``    reading statuses in order; ``importance`` is the other order, ``page`` a piece of any list
``syndication``  what writes do to timelines in the same call; ``jobs`` the queue of the rest, ``passes`` the work
``rules``        what users save for their streams
``connects``     how often somebody connects
``repair``       looking everything over
``log``          reading the log, and hearing it; ``position`` its places as Redis writes them, ``portion`` a page of it
``rollbacks``    what it lost; ``retention`` how far back it reaches
"""
