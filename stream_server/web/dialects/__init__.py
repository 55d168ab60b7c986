"""Dialects: the server's streams in the protocols of Twitter's v1.1 and v2, for clients written for these.

The one decision: **a dialect only renders**. It translates a request into the parameters of ``/v1/stream``. The hub
serves the stream like any other, and a framing encodes each message in the dialect's format. The streams of a dialect
are impersonal: every user gets the same public posts, so equal requests share one group of the hub.

``status_text``      the text and the place of a status, as both dialects need them
``v1``               handlers of the v1.1 streams; reads their token and their parameters
``v1_framing``       renders statuses and users, and encodes messages, in v1.1 format
``v2``               handlers of the v2 streams
``v2_parameters``    reads the query of a v2 request, and renders errors in v2 format
``v2_framing``       renders a status as a Tweet of v2, and encodes messages in v2 format
``v2_recent``        handlers that count and search the past
``v2_rules``         handlers for saved rules, and their answers
"""
