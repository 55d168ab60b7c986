"""The nouns of the social API: users, statuses, follows, lists and so on, read and written in Redis.

The one decision: **a write is one Lua script**. A write method passes its arguments to the script together with an
:class:`~stream_server.store.idempotency.IdempotencyKey`. The script checks everything, appends the log entry, and
changes the data in one atomic step. Where a write changes many timelines, the method then runs the first pass of the
job that the script has enqueued (:mod:`stream_server.store.timelines.syndication`). A read method runs plain commands
and returns JSON bytes (:mod:`stream_server.store.reads`).

Rules common to all methods:

* ``viewer`` is the user who reads and ``uid`` the user who writes. The caller has authenticated them.
* What the viewer may not see is answered as if it did not exist: NotFound.
* Every call raises Unavailable while Redis does not answer. A write raises OutcomeUnknown if its reply was lost twice.
* A write raises Forbidden ``suspended`` for a suspended user, and Conflict ``duplicate`` if its idempotency key was
used for another request.
* A page raises InvalidCursor for the cursor of another list.

``accounts``       how users delete their accounts
``users``          sign-up, profiles, look-up by id and login, credentials
``sessions``       log-in sessions, revoked tokens, one-time tickets, and one-use codes that begin a session
``open_streams``   which server process holds which stream of a user
``statuses``       drafts; posting, reading and deleting statuses, and the comments under them
``noun``           what all nouns have in common; how JSON and mentions are passed to scripts and read from the log
``likes``          likes (public, counted) and favorites (private)
``relations``      follows, blocks and mutes; how two users relate, and which users they have in common
``suggestions``    users whom somebody may want to follow
``user_graph``     what streams keep in memory of the graph
``circles``        lists of users, each with a timeline; groups whose members post among themselves
``talks``          direct messages
``notifications``  notifications and their read mark
``reports``        reports, the decisions and other deeds of administrators, and suspensions
``ingest``         users, statuses and follows of another site, under its own ids
``saved_rules``    the filter rules that a user saves for their streams
``webhooks``       which process delivers which webhook, what it reports, and the secrets that sign
``webhook_state``  how the deliveries of a webhook go, and what follows a failure
``subscriptions``  the named subscriptions of a user: parameters of a stream, and a cursor
``parts``          the parts of shared subscriptions, and who reads which
"""
