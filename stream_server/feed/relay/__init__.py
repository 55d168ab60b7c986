"""The relay of a host: one process hears Redis for all server processes of the host.

The one decision: **a link to the relay is as good as a subscription in Redis, and no better.** It exists only while the
relay's own subscription does, it may lose what a slow process does not take, and the numbers of the entries show any
loss. So the feed trusts it as little as it trusts Redis, and reads the log where something is missing.

``lines``          the lines that the relay sends: entries, questions, what was not signed, what was lost, its begin
``distribution``   the relay's side: hands each batch of lines to the links of all processes
``hearing``        the relay's link to Redis: subscription, canary, reconnect
``relay_link``     a process's side: one link to the relay
``entry_source``   from where a process hears the log: the relay while it works, otherwise Redis itself
"""
