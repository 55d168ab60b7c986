"""Catching up: clients read past entries from the ring or the log, through their own filter, at their own pace.

The one decision: a client that connects with a cursor, returns after an outage, or was too slow runs the same code.

``reader``        reads one page for a client: matching, visibility, gaps, and changes of its filters
``ring``          the recent entries of the log in memory
``replay_index``  finds the entries of the ring that may match a subscription
``scheduler``     decides which client reads its next page
"""
