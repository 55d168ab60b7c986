"""The shapes of what the server sends, said once: the server documents them, the client decodes them.

The one decision: **a reader is tolerant, the document is strict**. A member that an answer always has may still have a
default here, so that a client reads the answers of an older or newer server. The OpenAPI document calls every member
required that is not in ``left_out``. Limits stand in the document only: a client does not check what a server sends.

The package imports msgspec and nothing of the project, because the client is installed without the server.

``objects``   statuses, users and the other objects of the API
``subscriptions``  named subscriptions and webhooks
``counts``    counts of events by rule
``messages``  the messages of a stream
``errors``    refusals, and the error codes with their HTTP statuses
"""
