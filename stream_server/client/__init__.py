"""The Python SDK: streams that reconnect without losing events, and calls whose writes happen once.

It uses only aiohttp, msgspec and the public HTTP API, and imports nothing else of the server, so that it can be read or
copied on its own.

The one decision: **the cursor is the client's only state.** Every message moves the cursor, control messages included.
After a connection breaks, the next one continues behind the cursor. If the server cannot deliver something, it sends a
``gap``, and the client passes it on.

``stream``    one stream: connects, parses, remembers the cursor, reconnects
``api``       calls with one answer: posts, follows, long polling; repeats writes safely
``message``   the messages that a stream yields
``framing``   parses Server-Sent Events, or one JSON object a line
``backoff``   how long to wait before a retry
``errors``    the exceptions
"""

from stream_server.client.api import ApiClient
from stream_server.client.backoff import Backoff
from stream_server.client.errors import ClientFailure, Malformed, RequestRefused, StreamEnded, Unreachable
from stream_server.client.message import StreamMessage
from stream_server.client.stream import StreamClient

__all__ = [
    "ApiClient", "Backoff", "ClientFailure", "Malformed", "RequestRefused", "StreamClient", "StreamEnded",
    "StreamMessage", "Unreachable",
]  # fmt: skip
