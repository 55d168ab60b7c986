"""The Python SDK: streams that come back by themselves, and writes that happen once.

It owns the client's half of the wire and knows nothing of the server's rooms: only aiohttp and the HTTP API,
so that it can be read, and copied, on its own.

The one decision: **the cursor is the client's only memory.** Each message moves it, also those that are no events,
and whatever happens to a connection, the next one asks for what comes after it. What the server could not deliver it
says (``gap``), and the client passes it on.

``stream``    one stream for as long as it is read: parses, remembers, reconnects
``api``       the calls that answer once: posts, follows, long polling, with safe repeats
``message``   what a stream yields
``frame``     what a framing finds in the bytes
``sse``       Server-Sent Events, byte by byte (WHATWG HTML, "Event stream interpretation")
``ndjson``    one JSON object a line
``backoff``   how long to wait before coming back
``failures``  what can go wrong, by whose fault it is
"""

from stream_server.client.api import ApiClient
from stream_server.client.backoff import Backoff
from stream_server.client.errors import ClientFailure, Malformed, RequestRefused, StreamEnded, Unreachable
from stream_server.client.message import StreamMessage
from stream_server.client.stream import StreamClient

__all__ = [
    "ApiClient",
    "Backoff",
    "ClientFailure",
    "Malformed",
    "RequestRefused",
    "StreamClient",
    "StreamEnded",
    "StreamMessage",
    "Unreachable",
]
