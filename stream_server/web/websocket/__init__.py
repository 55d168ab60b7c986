"""WebSocket (RFC 6455) on the URLs of the streams: the same messages as text frames, and operations upwards.

The one decision: **a WebSocket is a stream with another framing**. The hub, its groups and its joined writes are those
of the other streams. A frame from the server has no mask, so its bytes are shared by all clients. The reader of a
client's frames exists only while it sends something, so an idle connection takes hardly more memory than SSE does.

``frames``          encodes the server's frames
``deflate``         compresses and expands messages (`permessage-deflate`, RFC 7692)
``frame_reader``    reads the messages of a client, whose frames the library `websockets` parses
``handshake``       checks the request that opens a WebSocket, and encodes the head of status 101
``framing``         the framings for the hub, and the answers to operations
``connection``      the transport of an open WebSocket, to which the hub writes
``operations``      the operations of a client: update, token, ping
``first_message``   proves a socket by its first message, and opens the stream
``opening``         opens WebSockets from requests
"""
