"""A client for streams whose messages end with CR LF and whose heartbeat is a line end alone."""

import json
from collections.abc import Iterator
from typing import Any

import aiohttp

from tests.end_to_end.consumer import Consumer
from tests.end_to_end.sse import Lines


class Crlf(Lines):
    """Splits bytes at CR LF only. An empty line is an empty message."""

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._rest = (self._rest + chunk).split(b"\r\n")
        for line in lines:
            assert b"\n" not in line
            yield json.loads(line) if line else {}


class Listener(Consumer):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        super().__init__(response, "ndjson")
        self.parser = Crlf()

    @property
    def tweets(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if "data" in message]

    @property
    def texts(self) -> list[str]:
        return [message["data"]["text"] for message in self.tweets]

    @property
    def heartbeats(self) -> int:
        return self.messages.count({})
