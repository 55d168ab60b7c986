"""Webhooks: the server sends the events of a named subscription to a URL.

The one decision: **a webhook is a long poll whose answer comes to the reader**. Each request has what a poll of the
subscription would answer at this moment, so filters and visibility are those of polls, also when a request is repeated.
An answer 2xx is the ack. There is one request at a time for each webhook, or each of its parts, so the order is that
of the log.

``addresses``   which addresses the server may connect to for its users
``names``       looks up the names of endpoints, with few threads for each user
``sender``      one signed request to an endpoint, with its deadline and its outcome
``answers``     bounds the bytes of an answer before they are parsed
``batches``     reads the events of the next request
``requests``    the bodies of requests
``held``        one webhook, or part, that this process delivers: its state, and what it has to report
``deliveries``  the deliveries of one process: claims webhooks, serves each in a task, reports
``proof``       asks a URL whether it wants the events; sends a test
"""
