"""WebSocket: the parser of frames, the handshake, and open sockets."""
