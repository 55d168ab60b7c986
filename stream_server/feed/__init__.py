"""The feed: it carries every log entry from Redis to the hub, once and in log order.

The one decision: Redis PUBLISH is the fast path, and the log is the truth. The feed checks what it received against
the log, and it reads every missed entry from the log. The feed calls the hub. The hub never calls the feed.

``feed``                  subscribes, publishes entries to the hub, reads missed entries, and runs the canary
``rollback_detector``     finds out that Redis lost the end of the log, and announces the rollback on the log
``log_reader``            reads pages of the log for clients that catch up
``stream_directory``      lists, limits, closes and prolongs the open streams of a user over all processes
``stream_description``    describes an open stream for a list
``stream_sums``           adds open streams up by user
``stream_census``         lists the open streams of all users and processes for an operator, and finds one
``token_validity_cache``  remembers which tokens are valid, until the log says otherwise
``link_health``           says whether the subscription works, since when it does not, and when to reconnect
"""
