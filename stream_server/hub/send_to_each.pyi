from collections.abc import Sequence

from stream_server.hub.client import Client

def send_to_each(clients: tuple[Client, ...], data: bytes) -> Sequence[Client]: ...
