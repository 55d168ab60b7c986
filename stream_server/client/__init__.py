"""The Python SDK: streams that reconnect without losing events, and calls whose writes happen once.

It uses only aiohttp, msgspec and the public HTTP API, and shares nothing with the server but ``wire``, the shapes of
what the server sends. So it can be installed on its own.

The one decision: **the cursor is the client's only state.** Every message moves the cursor, control messages included.
After a connection breaks, the next one continues behind the cursor. If the server cannot deliver something, it sends a
``gap``, and the client yields it.

``client``      one server: streams, long polling and calls, with one token
``sync``        the same without ``async``, for scripts and notebooks
``stream``      one stream: connects, parses, remembers the cursor, reconnects
``connection``  one connection of a stream, by HTTP or by WebSocket
``poll``        the same events by long polling
``filters``     what a stream selects, as typed arguments
``events``      reads the messages that a stream yields
``calls``       calls with one answer, one noun per file
``transport``   sends requests, and repeats them where that is safe
``tokens``      the client's token, and when it is renewed
``log_in``      tokens by a password or a refresh token
``prolonging``  puts a renewed token into open streams
``framing``     parses Server-Sent Events, or one JSON object a line
``backoff``     how long to wait before a retry
``errors``      the exceptions
"""

from stream_server.client.backoff import Backoff
from stream_server.client.calls.call_group import Page
from stream_server.client.client import Client, Token
from stream_server.client.errors import (
    ClientFailure,
    InvalidAddress,
    Malformed,
    OutcomeUnknown,
    RequestRefused,
    SessionLost,
    StreamEnded,
    Unreachable,
)
from stream_server.client.filters import Box, Filters, Since
from stream_server.client.log_in import LogIn, SavedSession
from stream_server.client.poll import Poll
from stream_server.client.stream import Stream
from stream_server.wire.messages import Delete, Event, Follow, Gap, Like, Post, Unfollow, Unlike

__all__ = [
    "Backoff", "Box", "Client", "ClientFailure", "Delete", "Event", "Filters", "Follow", "Gap", "InvalidAddress",
    "Like", "LogIn", "Malformed", "OutcomeUnknown", "Page", "Poll", "Post", "RequestRefused", "SavedSession",
    "SessionLost", "Since", "Stream", "StreamEnded", "Token", "Unfollow", "Unlike", "Unreachable",
]  # fmt: skip
