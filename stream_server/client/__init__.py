"""The Python SDK: streams that reconnect without losing events, and calls whose writes happen once.

It uses only aiohttp, msgspec and the public HTTP API, and shares nothing with the server but ``wire``, the shapes of
what the server sends. So it can be installed on its own.

The one decision: **the cursor is the client's only state.** Every message moves the cursor, control messages included.
After a connection breaks, the next one continues behind the cursor. If the server cannot deliver something, it sends a
``gap``, and the client yields it.

``client``      one server: streams, long polling and calls, with one token that is renewed
``sync``        the same without ``async``, for scripts and notebooks
``stream``      one stream: connects, parses, remembers the cursor, reconnects
``connection``  one connection of a stream, by HTTP or by WebSocket, and the parsers of its bytes
``poll``        the same stream by long polling
``subscription_calls``  the calls about named subscriptions and webhooks
``acks``        acknowledges what a program has handled of a named subscription
``filters``     what a stream selects, as typed arguments
``calls``       the calls with one answer; ``call`` makes each from its declaration, as ``rule_calls``, ``circle_calls``
``transport``   sends requests, and repeats them where that is safe
``proxies``     the HTTP proxy of the environment through which a server is reached
``tokens``      the client's token, and when it is renewed
``bounds``      what a client takes from a server at most: bytes, and delays
``errors``      the exceptions
"""

from stream_server.client.call import Page
from stream_server.client.client import Client, LogIn, SavedSession, Token
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
from stream_server.client.poll import Poll
from stream_server.client.stream import Stream
from stream_server.client.transport import Backoff
from stream_server.wire.messages import Delete, Edit, Event, Follow, Gap, Like, Post, Summary, Unfollow, Unlike

__all__ = [
    "Backoff", "Box", "Client", "ClientFailure", "Delete", "Edit", "Event", "Filters", "Follow", "Gap",
    "InvalidAddress", "Like", "LogIn", "Malformed", "OutcomeUnknown", "Page", "Poll", "Post", "RequestRefused",
    "SavedSession", "SessionLost", "Since", "Stream", "StreamEnded", "Summary", "Token", "Unfollow",
    "Unlike", "Unreachable",
]  # fmt: skip
